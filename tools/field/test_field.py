#!/usr/bin/env python3
"""Tests of the harness itself: small cases whose answer is known. Less than two seconds; `make lint` runs them."""
import itertools
import random
import struct
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
import cell
import ends
import measure
import oracle
import scenarios
import score
import systems
import table
import ts

VIDEO, AUDIO, TABLES = 0x100, 0x101, 0


def packet(pid, data, start=False, counter=0):
    """Returns a TS packet with `data` as its whole payload, made longer by an adaptation field."""
    stuffing = ts.PACKET - 4 - len(data)
    head = bytes([ts.SYNC, (0x40 if start else 0) | pid >> 8, pid & 0xFF, (0x30 if stuffing else 0x10) | counter & 15])
    field = bytes([stuffing - 1]) + (b"\0" + b"\xff" * (stuffing - 2) if stuffing > 1 else b"") if stuffing else b""
    return head + field + data


def stamp(prefix, ticks):
    """Returns a PTS or DTS as a PES header has it."""
    return bytes([
        prefix << 4 | (ticks >> 30 & 7) << 1 | 1, ticks >> 22 & 255, (ticks >> 15 & 127) << 1 | 1, ticks >> 7 & 255,
        (ticks & 127) << 1 | 1])


def pes(stream, pts, dts, body):
    both = stamp(3, pts) + stamp(1, dts) if dts is not None else stamp(2, pts)
    return b"\0\0\1" + bytes([stream, 0, 0, 0x80, 0xC0 if dts is not None else 0x80, len(both)]) + both + body


def slice_unit(kind):
    """Returns a slice NAL unit of a coded picture; the bits after the byte of the unit: ue(0), then ue(slice_type)."""
    unit = {"I": 0x65, "P": 0x41, "R": 0x21, "B": 0x01}[kind]
    bits = "1" + {"I": "0001000", "P": "1", "R": "010", "B": "010"}[kind]  # 7 = I, 0 = P, 1 = B
    return b"\0\0\1\x09\x10\0\0\1" + bytes([unit]) + int(bits.ljust(16, "1"), 2).to_bytes(2, "big") + b"\x80" * 8


def stream(kinds, first_ticks=0, step=3600):
    """Returns an MPEG-TS of frames of these kinds, 40 ms apart, two packets each; the clip that it is; and
    a table before it."""
    out, ticks = [packet(TABLES, b"table", True)], first_ticks
    for number, kind in enumerate(kinds):
        if kind == "A":
            out.append(packet(AUDIO, pes(0xC0, ticks, None, b"audio %d" % number), True))
            out.append(packet(AUDIO, b"rest of audio %d" % number))
            continue
        out.append(packet(VIDEO, pes(0xE0, ticks + 2 * step, ticks, slice_unit(kind) + b"%d" % number), True, number))
        out.append(packet(VIDEO, b"rest of %d" % number, False, number))
        ticks += step
    return b"".join(out)


def clip_of(kinds, **more):
    with tempfile.NamedTemporaryFile(suffix=".ts") as file:
        file.write(stream(kinds, **more))
        file.flush()
        return ts.read(file.name), [stream(kinds, **more)[at : at + 188] for at in range(0, len(stream(kinds, **more)), 188)]


class Streams(unittest.TestCase):
    def test_kinds_sizes_and_times_are_read(self):
        # From an odd number of ticks above 2^32, so that each bit of the time counts.
        clip, _ = clip_of("IAPRBA", first_ticks=(1 << 32) + 12_345)
        self.assertEqual("".join(frame.kind for frame in clip.frames), "IAPRBA")
        self.assertEqual([frame.bytes for frame in clip.frames], [376] * 6)
        self.assertEqual([round(f.capture_s, 6) for f in clip.frames], [0, 0.04, 0.04, 0.08, 0.12, 0.16])
        self.assertEqual(clip.other_pids, {TABLES})
        self.assertEqual(clip.keys[0], None)

    def test_datagrams_have_seven_packets_of_one_moment_at_most(self):
        found = list(ends.groups([0.0] * 9 + [1.0] * 2))
        self.assertEqual(found, [(0, 7), (7, 9), (9, 11)])

    def test_what_is_no_stream_is_refused(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x" * 376)
            file.flush()
            self.assertRaisesRegex(SystemExit, "not an MPEG-TS", ts.read, file.name)


class Scoring(unittest.TestCase):
    def setUp(self):
        self.clip, self.packets = clip_of("IPBA")
        self.sent = [10 + 0.01 * number for number in range(len(self.packets))]

    def delays(self, log, latency=0.5):
        out, unknown, twice = score.arrivals(self.clip, self.sent, log, latency)
        return [d and round(d, 3) for d in score.delays(self.clip, self.sent, out)], unknown, twice

    def test_the_last_packet_of_a_frame_counts(self):
        log = [(sent + 0.5, it) for sent, it in zip(self.sent, self.packets)]
        log[4] = (self.sent[4] + 0.6, self.packets[4])
        self.assertEqual(self.delays(log), ([0.5, 0.6, 0.5, 0.5], 0, 0))

    def test_a_frame_without_one_of_its_packets_never_came(self):
        log = [(sent + 0.5, it) for sent, it in zip(self.sent, self.packets)]
        del log[1]
        self.assertEqual(self.delays(log)[0], [None, 0.5, 0.5, 0.5])

    def test_second_copies_and_strange_packets_are_counted(self):
        log = [(sent + 0.5, it) for sent, it in zip(self.sent, self.packets)]
        log += [(20, self.packets[3]), (20, packet(VIDEO, b"not of the clip")), (20, b"\0" * 188), (20, self.packets[0])]
        self.assertEqual(self.delays(log), ([0.5] * 4, 2, 1))

    def test_a_counter_that_was_rewritten_is_no_difference(self):
        altered = bytes([*self.packets[3][:3], self.packets[3][3] ^ 1]) + self.packets[3][4:]
        log = [(sent + 0.5, it) for sent, it in zip(self.sent, self.packets)]
        log[3] = (self.sent[3] + 0.5, altered)
        self.assertEqual(self.delays(log), ([0.5] * 4, 0, 0))

    def test_of_equal_packets_the_delay_nearest_to_the_nominal_one_tells_which_it_is(self):
        clip, packets = clip_of("IA")
        twin = ts.Clip([ts.Frame("A", [0], 0.0), ts.Frame("A", [1], 1.0)], [b"same", b"same"], [0.0, 1.0], set())
        same = packets[3]
        twin = twin._replace(keys=[ts.key(same)] * 2)
        out, _, twice = score.arrivals(twin, [10.0, 11.0], [(11.5, same)], 0.5)
        self.assertEqual((out, twice), ([None, 11.5], 0))
        out, _, twice = score.arrivals(twin, [10.0, 11.0], [(10.6, same), (11.5, same), (11.6, same)], 0.5)
        self.assertEqual((out, twice), ([10.6, 11.5], 1))

    def test_a_log_that_was_cut_short_is_read_to_its_last_whole_record(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(score.RECORD.pack(1.0, 3) + b"abc" + score.RECORD.pack(2.0, 9) + b"abc")
            file.flush()
            self.assertEqual(list(score.read_log(file.name)), [(1.0, b"abc")])

    def playable(self, text):
        """`text` has a kind for each frame, in small letters where it is not on time; returns what is shown."""
        shown = score.playable(text.upper(), [kind.isupper() for kind in text])
        return "".join(kind.upper() if can else "." for kind, can in zip(text, shown))

    def test_a_frame_needs_those_that_it_refers_to(self):
        self.assertEqual(self.playable("IPRBBPRBB"), "IPRBBPRBB")
        self.assertEqual(self.playable("IpRBBPRBB IPB".replace(" ", "")), "I........IPB")
        self.assertEqual(self.playable("IPrBBPRBB"), "IP...PRBB")
        self.assertEqual(self.playable("IPBbBP"), "IPB.BP")
        self.assertEqual(self.playable("iPAB"), "..A.")
        self.assertEqual(self.playable("PBI"), "..I")

    def test_shares_are_of_each_kind(self):
        kinds, delay = "IPBRA", [0.5, 0.551, 0.4, None, 0.56]
        found = score.shares(kinds, delay, 0.5)
        expected = {"video": 0.5, "video_wide": 0.75, "video_ever": 0.75, "playable": 0.25, "I": 1, "P": 0, "B": 0.5, "audio": 0}
        self.assertEqual({name: found[name] for name in expected}, expected)
        self.assertEqual(found["delay_p50_s"], 0.5)

    def test_a_whole_run_is_scored_from_its_logs(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "clip.ts").write_bytes(b"".join(self.packets))
            (folder / "sent").write_bytes(struct.pack(f"<{len(self.sent)}d", *self.sent))
            log = b"".join(
                score.RECORD.pack(sent + 0.52, 188) + it for sent, it in list(zip(self.sent, self.packets))[:7])
            (folder / "came").write_bytes(log)
            figures, frames = score.score(folder / "clip.ts", folder / "sent", folder / "came", 0.5)
            self.assertEqual((figures["video"], figures["audio"], figures["playable"]), (1.0, 0.0, 1.0))
            self.assertEqual([kind for _, _, kind, _ in frames], list("IPBA"))
            self.assertEqual(frames[3][3], None)


def frames(*triples):
    return [ts.Frame(kind, [0] * (size // ts.PACKET), capture) for kind, size, capture in triples]


class Oracle(unittest.TestCase):
    def link(self, text, seconds):
        return oracle.slots(text.split(), seconds)

    def test_a_link_carries_its_rate_without_what_is_lost(self):
        link = self.link("--rate 8mbit --delay 20ms --loss burst:5%,3", 2)
        self.assertAlmostEqual(oracle.capacity([link], 2)[0], 7.6e6, delta=1)
        self.assertEqual({slot.delay_s for slot in link}, {0.02})

    def test_steps_and_outages_count_from_the_link_s_start(self):
        link = self.link("--rate 0s:1mbit,4s:2mbit --outage 5s-6s --outage 3500ms-3600ms,hold", 4)
        # Seconds 0 to 4 of the clip are 3 to 7 of the link: 0.9 s of 1 Mbit/s, 1 s of 2, one dead, 1 s of 2.
        self.assertAlmostEqual(sum(slot.bytes for slot in link) * 8, 0.9e6 + 4e6, delta=1)

    def test_what_it_cannot_reckon_is_refused(self):
        self.assertRaisesRegex(SystemExit, "does not know --jitter", self.link, "--rate 1mbit --jitter 5ms", 1)

    def test_a_plan_is_found_wherever_there_is_one(self):
        """Against every assignment of whole units to slots, on small random cases."""
        rng = random.Random(1)
        unit = ts.PACKET
        for _ in range(300):
            captures = sorted(rng.choice([0.0, 0.1, 0.2, 0.3, 0.4]) for _ in range(4))
            some = frames(*(("P", unit * rng.randint(1, 3), capture) for capture in captures))
            links = [
                [oracle.Slot(round(0.1 * n, 1), float(unit * rng.randint(0, 2)), delay) for n in range(6)]
                for delay in (0.0, 0.1)]
            plan = oracle.Plan(some, links, 0.2)
            order = rng.sample(range(4), 4)
            kept = []
            for number in order:
                can = feasible([some[n] for n in sorted(kept + [number])], links, 0.2)
                self.assertEqual(plan.add(number), can)
                kept += [number] if can else []
            for number in kept:
                planned = sum(plan.users[slot][number] for slot in plan.uses[number])
                self.assertAlmostEqual(planned, some[number].bytes)

    def test_one_large_frame_gives_way_to_two_small_ones(self):
        some = frames(("I", 188 * 4, 0.0), ("P", 188 * 2, 0.0), ("P", 188 * 2, 0.0))
        link = [oracle.Slot(0.0, 188.0 * 4, 0.0)]
        self.assertAlmostEqual(oracle.most(some, [link], 0.5)["video"], 2 / 3)
        found = oracle.most_playable(some, [link], 0.5)
        self.assertEqual((found["I"], found["P"], found["playable"]), (1.0, 0.0, 1 / 3))

    def test_a_group_loses_its_end(self):
        some = frames(("I", 188, 0.0), ("P", 376, 0.0), ("P", 188, 0.0), ("I", 188, 1.0), ("P", 188, 1.0))
        link = [oracle.Slot(0.0, 188.0 * 3, 0.0), oracle.Slot(1.0, 188.0 * 2, 0.0)]
        found = oracle.most_playable(some, [link], 0.5)
        self.assertAlmostEqual(found["playable"], 4 / 5)

    def test_a_link_that_is_too_far_carries_nothing_in_time(self):
        some = frames(("I", 188, 0.0))
        self.assertEqual(oracle.most(some, [[oracle.Slot(0.0, 1e6, 0.6)]], 0.5)["video"], 0)
        self.assertEqual(oracle.causal(some, [[oracle.Slot(0.0, 1e6, 0.6)]], 0.5)["video"], 0)

    def test_without_foresight_audio_goes_first_and_no_frame_is_begun_in_vain(self):
        link = self.link("--rate 1504kbit", 1)  # a packet of 188 bytes each millisecond
        # 100 packets, of which 50 pass in time: not begun, so that what comes after passes.
        some = frames(("I", 188 * 20, 0.0), ("P", 188 * 100, 0.02), ("P", 188 * 10, 0.03), ("A", 188, 0.03), ("I", 188, 0.5))
        found = oracle.causal(some, [link], 0.05)
        self.assertEqual((found["I"], found["P"], found["audio"]), (1.0, 0.5, 1.0))
        found = oracle.causal(some, [link], 0.2)
        self.assertEqual((found["video"], found["audio"], found["playable"]), (1.0, 1.0, 1.0))

    def test_foresight_is_never_worse_than_none(self):
        rng = random.Random(2)
        for _ in range(5):
            kinds = "IPBBPBB" * 4
            some = frames(*(
                (kind, 188 * rng.randint(2, 40 if kind == "I" else 12), 0.04 * n) for n, kind in enumerate(kinds)))
            links = [self.link(f"--rate {rng.randint(200, 900)}kbit --delay {rng.randint(1, 200)}ms", 2) for _ in range(2)]
            causal = oracle.causal(some, links, 0.3)
            self.assertGreaterEqual(oracle.most(some, links, 0.3)["video"] + 1e-9, causal["video"])
            self.assertGreaterEqual(oracle.most_playable(some, links, 0.3)["playable"] + 1e-9, causal["playable"])


def feasible(some, links, latency):
    """Returns by the condition of Hall's theorem whether all frames can be on time: no set of them needs
    more than its slots have."""
    slots = [slot for link in links for slot in link]
    serves = [
        {n for n, slot in enumerate(slots) if frame.capture_s - 1e-6 <= slot.at_s and slot.at_s + slot.delay_s <= frame.capture_s + latency + 1e-6}
        for frame in some]
    for size in range(1, len(some) + 1):
        for chosen in itertools.combinations(range(len(some)), size):
            usable = set().union(*(serves[n] for n in chosen))
            if sum(some[n].bytes for n in chosen) > sum(slots[n].bytes for n in usable) + 1e-6:
                return False
    return True


class Others(unittest.TestCase):
    def test_the_scenarios_are_such_as_the_oracle_knows(self):
        for name, it in scenarios.built_in().items():
            links = [oracle.slots(link, scenarios.CLIP_S) for link in it.links]
            rates = oracle.capacity(links, scenarios.CLIP_S)
            self.assertEqual(len(it.weights), len(it.links), name)
            self.assertEqual(max(rates), rates[it.best], f"{name}: the better link, {rates}")

    def test_a_recorded_link_is_what_the_file_says(self):
        with tempfile.NamedTemporaryFile("w") as file:
            rates = ",".join(str(number) for number in range(200))
            file.write(f"one a {rates} 100-200,11000-11050\none b {rates} -\n")
            file.flush()
            found = scenarios.recorded("one", "a", 10, 20, file.name)
            self.assertTrue(found[1].startswith("0ms:200kbit,500ms:210kbit,"), found[1][:40])
            self.assertEqual(found[1].count(","), 139)
            self.assertTrue(scenarios.recorded("one", "b", 0, 20, file.name)[1].startswith("0ms:1kbit,500ms:10kbit,"))
            self.assertEqual(found[2:], ["--delay", "20ms", "--outage", "1000ms-1050ms,hold"])
            self.assertRaisesRegex(SystemExit, "too short", scenarios.recorded, "one", "b", 60, 20, file.name)
            self.assertRaisesRegex(SystemExit, "no run two", scenarios.recorded, "two", "b", 0, 20, file.name)

    def test_what_is_unknown_is_named(self):
        self.assertRaisesRegex(SystemExit, "no scenario S9; there are S1", scenarios.load, ["S9"])

    def test_a_peer_is_told_what_makes_it_hand_out_in_time(self):
        def plain(p50, ever=1.0):
            return {"figures": {"delay_p50_s": p50, "video_ever": ever}}

        self.assertEqual(table.told_ms(500, plain(0.615)), 400)
        self.assertEqual(table.told_ms(500, plain(0.9)), 300)
        self.assertEqual(table.told_ms(500, plain(0.4)), 500)
        self.assertEqual(table.told_ms(500, plain(0.615, ever=0.3)), 500)
        self.assertEqual(table.told_ms(500, None), 500)

    def test_a_result_is_another_one_if_a_link_or_program_changes(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            program, clip = folder / "braidcast", folder / "clip.ts"
            program.write_text("one")
            clip.write_bytes(b"")

            def key(scenario, told=500):
                cell.fingerprint.cache_clear()
                it = cell.Cell("braidcast", systems.systems()["braidcast"], "S4", scenario, clip, 500, told, False, 1, str(program), folder)
                return it.key()

            some = scenarios.built_in()
            before = key(some["S4"])
            self.assertEqual(key(some["S4"]), before)
            self.assertNotEqual(key(some["S5"]), before)
            self.assertNotEqual(key(some["S4"], 400), before)
            program.write_text("two")
            self.assertNotEqual(key(some["S4"]), before)

    def test_tables_have_the_mean_and_the_spread(self):
        figures = dict.fromkeys(("video_wide", "playable", "I", "P", "B", "audio"), 1.0)
        runs = [
            {"key": str(n), "name": f"n{n}", "system": "braidcast", "scenario": "S4", "clip": "c2", "latency_ms": 500, "told_ms": 500,
             "tuned": False, "date": "2026-11-26", "processor": "one", "versions": ["braidcast 0"], "load": [1.0], "clip_bytes": 7_500_000,
             "cpu_ends_s": 2.0, "link_bytes": [8_000_000, 1_000_000], "figures": {**figures, "video": video, "delay_p50_s": 0.5}}
            for n, video in enumerate((0.9, 1.0))]
        cells = table.shown(runs, systems.systems())
        text = "\n".join([*table.cell_tables(cells, systems.systems(), {}, {"S4": "title"}), *table.origin(cells)])
        self.assertIn("S4: title; c2, 1.00 Mbit/s, 500 ms", text)
        self.assertIn("| braidcast | 2 | 95.0 (90.0–100.0) | 100.0 |", text)
        self.assertIn("| 8.0 + 1.0 |", text)
        self.assertIn("programs: braidcast 0", text)
        self.assertIn("| braidcast | 95.0 / 100.0 |", "\n".join(table.summary(cells, systems.systems(), {})))

    def test_a_processor_is_named_with_what_it_has_and_lacks(self):
        text = "processor\t: 0\nmodel name\t: Some CPU\ncpu family\t: 6\nmodel\t\t: 207\nflags\t\t: fpu avx2 gfni\nprocessor\t: 1\n"
        self.assertEqual(measure.processor(text), "Some CPU (family 6, model 207), 2 CPUs; GFNI; without AVX-512, VAES")
        self.assertEqual(measure.features(["avx2", "gfni", "avx512f", "vaes"]), "AVX-512, GFNI, VAES")
        self.assertEqual(measure.features(["avx2", "gfni", "avx512f"], "avx512,gfni,vaes"), "AVX2; hidden AVX-512, GFNI, VAES")
        self.assertEqual(measure.features(["asimd"]), "NEON")


if __name__ == "__main__":
    unittest.main()
