"""How each system is started over the emulated links, between the feeder and the sink.

A system's `start` returns (receivers, senders), each a list of (name, command). The ports of a cell, on
127.0.0.1 from its base: +0 from the feeder to the sender, +1 from the receiver to the sink, +2 where the
emulators forward to, +3 SRT behind SRTLA, +4 SRTLA's sender, +5 its fork, +10 and on the emulators."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable, NamedTuple

HERE = Path(__file__).resolve().parent
ADDRESS = "127.0.0.1"
# Bytes that SRT's tools send at a time: seven packets of MPEG-TS.
CHUNK = 1316


class Missing(Exception):
    """A program that a system needs is not there."""


class System(NamedTuple):
    title: str
    start: Callable
    one_link: bool = False  # only the scenario's best link
    own_buffer: bool = True  # its latency comes on top of the one-way delay, so that it is told another one
    ours: bool = False
    asked: bool = False  # only where it is named


def at(port):
    return f"{ADDRESS}:{port}"


def tool(name):
    """Returns a program of the system."""
    if found := shutil.which(name):
        return found
    raise Missing(f"{name} is not installed (Debian: srt-tools, rist-tools)")


def peers_folder():
    return Path(os.environ.get("FIELD_PEERS", "")) if os.environ.get("FIELD_PEERS") else None


def peer(name):
    """Returns a program that the user has built, by its name in the folder FIELD_PEERS."""
    folder = peers_folder()
    if folder and os.access(folder / name, os.X_OK):
        return str((folder / name).resolve())
    raise Missing(f"no {name} in the folder that FIELD_PEERS names (tools/field/README.md)")


def braidcast(cell, *options):
    ms = f"{cell.told_ms}ms"
    to = [word for entry in cell.entries for word in ("--to", entry)]
    return (
        [("receive", [cell.braidcast, "receive", at(cell.port + 2), f"udp://{at(cell.port + 1)}", "-q", "--json"])],
        [("send", [cell.braidcast, "send", f"udp://{at(cell.port)}", *to, "--latency", ms, "-q", "--json", *options])])


def configured(cell):
    """Returns the environment of a cell's programs: what they keep is kept in its folder."""
    return {**os.environ, "XDG_CONFIG_HOME": str(cell.folder / "config")}


def braidcast_by_relay(cell):
    """Both ends dial out to a relay behind the emulators. The receiver is beside it, so that delays are those of the
    links; the ticket that the sender gets names the emulators as relays."""
    ms, port, ticket = f"{cell.told_ms}ms", cell.port, cell.folder / "ticket"
    cell.folder.mkdir(parents=True, exist_ok=True)
    relays = [word for entry in cell.entries for word in ("--relay", entry)]
    made = subprocess.run(
        [cell.braidcast, "key", "ticket", "field", *relays], env=configured(cell), capture_output=True, text=True)
    ticket.write_text(made.stdout)
    relay = at(port + 2)
    return (
        [("relay", [cell.braidcast, "relay", relay, "--open", "--threads", "1", "-q"]),
         ("receive", [cell.braidcast, "receive", "--relay", relay, "--ticket=field", "--relay-only", f"udp://{at(port + 1)}", "-q", "--json"])],
        [("send", [cell.braidcast, "send", f"udp://{at(port)}", "--to", f"@{ticket}", "--relay-only", "--latency", ms, "-q", "--json"])])


def _srt_live(program, source, target):
    return [program, "-q", "-chunk", str(CHUNK), source, target]


def srt(cell):
    program, ms = tool("srt-live-transmit"), cell.told_ms
    listen = f"srt://{at(cell.port + 2)}?mode=listener&latency={ms}"
    call = f"srt://{cell.entries[0]}?mode=caller&latency={ms}"
    return (
        [("receive", _srt_live(program, listen, f"udp://{at(cell.port + 1)}"))],
        [("send", _srt_live(program, f"udp://{at(cell.port)}", call))])


def srt_group(cell, kind):
    """libsrt's testing application, as the packaged tools have no bonding. In a backup group the best link
    goes first."""
    program, ms = peer("srt-test-live"), cell.told_ms
    members = [
        f"{entry}?weight={2 if number == cell.scenario.best else 1}" if kind == "backup" else entry
        for number, entry in enumerate(cell.entries)]
    listen = f"srt://{at(cell.port + 2)}?mode=listener&groupconnect=1&latency={ms}"
    return (
        [("receive", [program, "-c", str(CHUNK), listen, f"udp://{at(cell.port + 1)}"])],
        [("send", [program, "-c", str(CHUNK), f"udp://{at(cell.port)}", "-g", f"srt://*?type={kind}&latency={ms}", *members])])


def srtla(cell, sender):
    """Its sender knows links apart by their source addresses: 127.0.0.2, .3 … Those are forked to an emulator each."""
    port, ms = cell.port, cell.told_ms
    addresses = cell.folder / "addresses"
    programs = [peer(name) for name in ("srtla-srt-live-transmit", "srtla_rec", sender)]
    cell.folder.mkdir(parents=True, exist_ok=True)
    addresses.write_text("".join(f"127.0.0.{2 + number}\n" for number in range(len(cell.entries))))
    listen = f"srt://{at(port + 3)}?mode=listener&latency={ms}&lossmaxttl=40"
    call = f"srt://{at(port + 4)}?mode=caller&latency={ms}"
    return (
        [("srt-receive", _srt_live(programs[0], listen, f"udp://{at(port + 1)}")),
         ("receive", [programs[1], str(port + 2), ADDRESS, str(port + 3)])],
        [("fork", [sys.executable, str(HERE / "ends.py"), "fork", str(port + 5), *cell.entries]),
         ("send", [programs[2], str(port + 4), ADDRESS, str(port + 5), str(addresses)]),
         ("srt-send", _srt_live(tool("srt-live-transmit"), f"udp://{at(port)}", call))])


def srtla_in(cell):
    """The sender of our own tests, which shares packets out as srtla_send does, into `receive`."""
    phone = Path(cell.braidcast).parent / "examples/phone"
    if not os.access(phone, os.X_OK):
        raise Missing(f"no {phone} (cargo build --release -p braidcast-gateway --example phone)")
    port, ms = cell.port, cell.told_ms
    listen = f"srtla://:{port + 2}?latency={ms}"
    return (
        [("receive", [cell.braidcast, "receive", listen, f"udp://{at(port + 1)}", "-q", "--json"])],
        [("send", [str(phone), str(port), str(ms), *cell.entries])])


def rist(cell, weights):
    """Main profile. Weights share the packets out among the links; a weight of 0 sends every packet over each."""
    ms, port = cell.told_ms, cell.port
    to = ",".join(f"rist://{entry}?weight={weight}&buffer={ms}" for entry, weight in zip(cell.entries, weights))
    return (
        [("receive", [tool("ristreceiver"), "-p", "1", "-b", str(ms), "-i", f"rist://@{at(port + 2)}", "-o", f"udp://{at(port + 1)}"])],
        [("send", [tool("ristsender"), "-p", "1", "-b", str(ms), "-i", f"udp://@{at(port)}", "-o", to])])


def systems():
    """Returns all systems by name; each `srtla_send…` in the folder FIELD_PEERS is one."""
    found = {
        "braidcast": System("braidcast", braidcast, own_buffer=False, ours=True),
        "braidcast-single": System("braidcast, better link", braidcast, one_link=True, own_buffer=False, ours=True),
        "srtla-in": System("SRTLA in, our test's sender", srtla_in, ours=True),
        "braidcast-relay": System("braidcast by a relay", braidcast_by_relay, own_buffer=False, ours=True, asked=True),
        "srt-broadcast": System("SRT group, broadcast", lambda cell: srt_group(cell, "broadcast")),
        "srt-backup": System("SRT group, backup", lambda cell: srt_group(cell, "backup")),
        "srt": System("SRT, better link", srt, one_link=True),
        "rist-weights": System("RIST, weights", lambda cell: rist(cell, cell.scenario.weights)),
        "rist-duplicate": System("RIST, duplicate", lambda cell: rist(cell, [0] * len(cell.entries))),
    }
    folder = peers_folder()
    senders = [program.name for program in sorted(folder.glob("srtla_send*"))] if folder else []
    for name in senders or ["srtla_send"]:
        found[name.replace("srtla_send", "srtla")] = System(f"SRTLA ({name})", lambda cell, name=name: srtla(cell, name))
    return found


def _printed(command):
    """Returns the first version number in what a command prints."""
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\d+\.\d+\.\d+", shown.stdout + shown.stderr)
    return match and match[0]


def _revision(folder):
    """Returns the commit of the checkout that a folder is in, if it is in one."""
    shown = subprocess.run(["git", "-C", str(folder), "log", "-1", "--format=%h"], capture_output=True, text=True)
    return shown.stdout.strip() or None


def version(program, ours):
    """Returns a program's name with the version that it prints, else with the commit of the checkout that
    it was built in."""
    name, flag = Path(program).name, "--help" if Path(program).name.startswith("rist") else "-version"
    if ours and name != "phone":
        return f"braidcast {_printed([program, '--version'])} {_revision(Path(program).parent) or ''}".strip()
    packaged = program == shutil.which(name)
    known = _printed([program, flag]) if packaged else _revision(Path(program).parent)
    return f"{name} {known or 'of unknown version'}"
