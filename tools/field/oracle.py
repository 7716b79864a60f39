"""What could be on time over the same links: with all of the future known (`foresight`), and without (`causal`).

Links are ideal: what they carry is a fluid without headers, mean loss is taken off the rate, nobody has to
find the rate out."""
import bisect
import heapq
from typing import NamedTuple

import score
from scenarios import LEAD_S

# The clip's time is cut into so many seconds.
SLOT_S = 0.005
EPS = 1e-6


class Slot(NamedTuple):
    """A moment at which a link takes bytes, and how long these are under way."""

    at_s: float
    bytes: float
    delay_s: float


def _seconds(text):
    """Returns the seconds of a time for example 20ms or 3s."""
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text[:-1])


def _bits_per_s(text):
    for unit, factor in (("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * factor
    raise SystemExit(f"the oracle does not know the rate {text}: write for example 3mbit or 0s:3mbit,10s:1mbit")


def slots(link, seconds):
    """Returns the slots of a link over the clip's time, which begins LEAD_S after the link's own."""
    steps, delay, through, dead = [], 0.0, 1.0, []
    for option, value in zip(link[::2], link[1::2]):
        if option == "--rate":
            for step in value.split(","):
                at, _, rate = step.rpartition(":")
                steps.append((_seconds(at) if at else 0.0, _bits_per_s(rate)))
        elif option == "--delay":
            delay = _seconds(value)
        elif option == "--loss":
            through = 1 - float(value.replace("burst:", "").split("%")[0]) / 100
        elif option == "--outage":
            dead.append(tuple(_seconds(time) for time in value.replace(",hold", "").split("-")))
        else:
            raise SystemExit(f"the oracle does not know {option}: leave it out of the links, or --no-oracle")
    if not steps:
        raise SystemExit("the oracle needs the --rate of each link")
    starts, found = [at for at, _ in steps], []
    for number in range(round(seconds / SLOT_S)):
        begin = number * SLOT_S + LEAD_S
        rate = steps[bisect.bisect_right(starts, begin + EPS) - 1][1]
        lost = sum(max(0.0, min(begin + SLOT_S, until) - max(begin, since)) for since, until in dead)
        carried = rate / 8 * max(0.0, SLOT_S - lost) * through
        if carried > EPS:
            found.append(Slot(number * SLOT_S, carried, delay))
    return found


class Plan:
    """Bytes of frames put into slots, so that each frame has arrived by its deadline.

    A slot at s of a link with delay d serves the frames captured from s + d - latency to s: an interval of
    frames in order of capture. Serving frames in that order, each from the earliest slots, then finds a
    plan wherever there is one (Glover 1967, convex bipartite graphs). A frame that is added takes slots
    from later frames, which look for others."""

    def __init__(self, frames, links, latency_s):
        self.frames, self.latency_s = frames, latency_s
        self.slots = sorted(slot for link in links for slot in link)
        self.starts = [slot.at_s for slot in self.slots]
        self.users = [{} for _ in self.slots]
        self.uses = {}

    def _put(self, frame, slot, amount, undo):
        undo.append((frame, slot, self.users[slot].get(frame)))
        if amount > EPS:
            self.users[slot][frame] = amount
            self.uses.setdefault(frame, set()).add(slot)
        else:
            self.users[slot].pop(frame, None)
            self.uses.get(frame, set()).discard(slot)

    def add(self, frame):
        """Returns true and keeps the frame if all that were added can be on time with it; else nothing changes."""
        undo, waiting = [], [frame]
        while waiting:
            now = heapq.heappop(waiting)
            while waiting and waiting[0] == now:
                heapq.heappop(waiting)
            if not self._serve(now, waiting, undo):
                for who, slot, before in reversed(undo):
                    self._put(who, slot, before or 0.0, [])
                return False
        return True

    def _serve(self, frame, waiting, undo):
        capture, need = self.frames[frame].capture_s, float(self.frames[frame].bytes)
        for slot in list(self.uses.get(frame, ())):
            self._put(frame, slot, 0.0, undo)
        at = bisect.bisect_left(self.starts, capture - EPS)
        while need > EPS:
            if at == len(self.slots) or self.slots[at].at_s > capture + self.latency_s + EPS:
                return False
            slot, users = self.slots[at], self.users[at]
            if slot.at_s + slot.delay_s <= capture + self.latency_s + EPS:
                room = slot.bytes - sum(amount for who, amount in users.items() if who < frame)
                mine = min(need, room)
                if mine > EPS:
                    need -= mine
                    over = sum(users.values()) + mine - slot.bytes
                    for other in sorted(users, reverse=True):
                        if over <= EPS:
                            break
                        if other > frame:
                            taken = min(over, users[other])
                            self._put(other, at, users[other] - taken, undo)
                            heapq.heappush(waiting, other)
                            over -= taken
                    self._put(frame, at, mine, undo)
            at += 1
        return True


def _outcome(frames, good):
    kinds = [frame.kind for frame in frames]
    shown = score.playable(kinds, good)

    def of(which, values):
        return score.share(value for kind, value in zip(kinds, values) if kind in which)

    return {
        "video": of(score.VIDEO, good), "playable": of(score.VIDEO, shown), "I": of("I", good), "P": of("P", good),
        "B": of("RB", good), "audio": of("A", good)}


def most(frames, links, latency_s):
    """Returns shares with the most frames on time that this greedy choice finds: audio first, then the
    smallest frame first."""
    plan, good = Plan(frames, links, latency_s), [False] * len(frames)
    for number in sorted(range(len(frames)), key=lambda n: (frames[n].kind != "A", frames[n].bytes, n)):
        good[number] = plan.add(number)
    return _outcome(frames, good)


def most_playable(frames, links, latency_s):
    """Returns shares with the most frames playable that this greedy choice finds: audio, I, then P by their
    distance from it, so that each group loses its end; then B frames that others need, then the rest."""
    rank, depth = [], 0
    for number, frame in enumerate(frames):
        depth = 0 if frame.kind == "I" else depth + (frame.kind == "P")
        order = {"A": 0, "I": 1, "P": 2, "R": 3}.get(frame.kind, 4)
        rank.append((order, depth if frame.kind == "P" else 0, number))
    kinds = [frame.kind for frame in frames]
    needs = dependencies(kinds)
    plan, good = Plan(frames, links, latency_s), [False] * len(frames)
    for _, _, number in sorted(rank):
        good[number] = all(good[other] for other in needs[number]) and plan.add(number)
    return _outcome(frames, good)


def dependencies(kinds):
    """Returns for each frame the frames that it needs directly: of P and R the last I or P, of B that and
    the R of its group. A frame that needs one before the clip's first I needs itself: it is never playable."""
    found, last, middle = [], None, None
    for number, kind in enumerate(kinds):
        if kind == "A":
            found.append([])
        elif kind == "I":
            found.append([])
            last, middle = number, None
        elif last is None:
            found.append([number])
        elif kind == "P":
            found.append([last])
            last, middle = number, None
        elif kind == "R":
            found.append([last])
            middle = number
        else:
            found.append([last] if middle is None else [last, middle])
    return found


def causal(frames, links, latency_s):
    """Returns shares of a sender that does not know the future. At each moment a link takes what was
    captured: audio first, then frames in order. A frame is begun only if it would be through in time at the
    rate of the last half second, and if what it needs is not lost. A link is left out by what could not
    arrive over it in time."""
    window_s = 0.5
    needs = dependencies([frame.kind for frame in frames])
    left = [float(frame.bytes) for frame in frames]
    arrived, lost, queue, coming = [0.0] * len(frames), [False] * len(frames), [], 0
    moments = sorted((slot.at_s, link, slot) for link, of in enumerate(links) for slot in of)
    oldest, carried = 0, 0.0
    for at, _, slot in moments:
        carried += slot.bytes
        while moments[oldest][0] < at - window_s:
            carried -= moments[oldest][2].bytes
            oldest += 1
        rate = carried / max(SLOT_S, min(window_s, at - moments[0][0]) or SLOT_S)
        while coming < len(frames) and frames[coming].capture_s <= at + EPS:
            queue.append(coming)
            coming += 1
        room = slot.bytes
        for number in sorted(queue, key=lambda n: (frames[n].kind != "A", n)):
            if room <= EPS:
                break
            due, begun = frames[number].capture_s + latency_s, left[number] < frames[number].bytes
            if at > due or (not begun and any(lost[other] for other in needs[number])):
                lost[number] = True
            elif at + slot.delay_s > due + EPS:
                continue
            elif not begun and at + slot.delay_s + left[number] / rate > due + EPS:
                continue
            else:
                sent = min(room, left[number])
                left[number] -= sent
                room -= sent
                arrived[number] = max(arrived[number], at + slot.delay_s)
        queue = [number for number in queue if left[number] > EPS and not lost[number]]
    good = [
        rest <= EPS and time <= frame.capture_s + latency_s + EPS for frame, rest, time in zip(frames, left, arrived)]
    return _outcome(frames, good)


def capacity(links, seconds):
    """Returns the mean bits per second of each link over the clip."""
    return [sum(slot.bytes for slot in link if slot.at_s < seconds) * 8 / seconds for link in links]
