#!/usr/bin/env python3
"""Follows docs/recipes.md word by word with the programs that it names, as far as they are on this machine.

    tools/recipes.py [--braidcast FILE] [--plugin FILE] [--only obs,ffmpeg,gstreamer,vlc,srt,srtla,rtmp,platform,mediamtx,nat]

The commands are read from the page; a block that is neither run nor listed below is an error. Field and
home are network namespaces with links between them (wlan0 5 and wwan0 3 Mbit/s), over this machine's own
files, none of which is changed: what is written is in memory (overlayfs). There is no camera, no microphone
and no screen; test sources and Xvfb take their place. Lines whose program is missing are named and left
out. `srtla_send` and `mediamtx` are looked for in the folder RECIPES_PEERS too. Needs root, and some eight
minutes.
"""

import argparse
import importlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "tools"))
quick = importlib.import_module("quick-starts")
BUILD, ROOT = quick.BUILD, quick.BUILD / "recipes/root"
quick.ROOT, quick.LOGS = ROOT, quick.BUILD / "recipes/logs"
say, die, check, do, run, Running, wait_for = quick.say, quick.die, quick.check, quick.do, quick.run, quick.Running, quick.wait_for
page = quick.Page("recipes", "docs")
TEXT = (HERE / "docs/recipes.md").read_text()
# Of the clip that is sent; 25 frames a second. What a stream that begins late may lack: two groups.
FRAMES, LATE = 300, 100
PASSPHRASE, STREAM = "a-passphrase-of-nobody", "live-key-1"
FIELD, CAMERA = "10.1.0.2", "192.168.1.20"
SHOWN = {"Camera and microphone": "there is none; `make encode` has the test sources", "systemd": "another process is the first one here"}
# OBS's profile, as the page describes it. Its preview is off: frames are drawn by the processor.
PROFILE = {
    "global.ini": "[General]\nFirstRun=true\nEnableAutoUpdates=false\nInfoIncrement=999\n[Basic]\nProfile=R\nProfileDir=R\nSceneCollection=R\nSceneCollectionFile=R\n"
                  "[BasicWindow]\nPreviewEnabled=false\n[OBSWebSocket]\nFirstLoad=false\nServerEnabled=true\nServerPort=4455\nAuthRequired=true\nServerPassword=secret\n",
    "basic/profiles/R/basic.ini": "[General]\nName=R\n[Video]\nBaseCX=640\nBaseCY=360\nOutputCX=640\nOutputCY=360\nFPSCommon=25 PAL\n[Output]\nMode=Advanced\n"
                                  "[AdvOut]\nRecType=FFmpeg\nFFOutputToFile=false\nFFURL={url}\nFFFormat={container}\nFFVEncoder={video}\nFFVEncoderId=27\nFFVCustom={custom}\n"
                                  "FFAEncoder={audio}\nFFAEncoderId=86018\nFFVBitrate=2000\nFFVGOPSize=50\nFFAudioMixes=1\n",
}
ASK = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
follow = importlib.import_module("obs-follow")
print(json.dumps(follow.request(follow.connect("127.0.0.1:4455", "secret"), sys.argv[2], **json.loads(sys.argv[3]))))
"""


def commands(heading, number=0):
    """The commands of a block, without what is said behind them."""
    return [re.sub(r" +# .*", "", line) for line in page(heading, number).replace("\\\n", " ").splitlines()]


def quoted(words):
    """What the page's text has in backticks."""
    if f"`{words}`" not in TEXT:
        die(f"docs/recipes.md does not say `{words}` any more")
    return words


def has(*programs, what):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        left_out.append(f"{what}: {', '.join(missing)} is not here")
    return not missing


left_out = []
PLAY = "ffmpeg -loglevel error -re -i clip.ts -c copy"


def frames(place, file):
    """How many video frames of a file are decoded; an error of the decoder is one of ours."""
    text = do(place, f"ffprobe -v error -count_frames -select_streams v:0 -show_entries stream=nb_read_frames -of csv=p=0 '{file}'")
    return max((int(number) for number in re.findall(r"^(\d+),?$", text, re.M)), default=0)


def came(place, file, least=FRAMES - LATE):
    found = sorted((ROOT / place).glob(file))
    check(found, f"{place} has {file}")
    number = sum(frames(place, it.name) for it in found)
    check(number >= least, f"{file}: {number} frames")
    [it.unlink() for it in found]


def stop(*all):
    for running in all:
        running.stop()


def prepare(args):
    layers = BUILD / "recipes/layers"
    for folder in (ROOT, layers):
        folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(quick.LOGS, ignore_errors=True)
    quick.LOGS.mkdir(parents=True)
    run("mount", "-t", "tmpfs", "tmpfs", layers)
    for layer in ("upper", "work"):
        (layers / layer).mkdir()
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work", ROOT)
    for kind in ("proc", "sys", "dev"):
        run("mount", "--rbind", f"/{kind}", ROOT / kind)
    run("mount", "-t", "tmpfs", "tmpfs", ROOT / "home")
    run("mount", "-t", "tmpfs", "tmpfs", ROOT / "tmp")
    (ROOT / "field").mkdir()
    shutil.copy(args.braidcast, ROOT / "usr/local/bin/braidcast")
    for peer in ("srtla_send", "mediamtx"):
        if found := shutil.which(peer, path=os.environ.get("RECIPES_PEERS", "") + ":" + os.environ["PATH"]):
            shutil.copy(found, ROOT / "usr/local/bin" / peer)
            # As it comes with the program: without it mediamtx takes no stream.
            for place in ("home", "field"):
                if (settings := pathlib.Path(found).parent / f"{peer}.yml").exists():
                    shutil.copy(settings, ROOT / place)
    (ROOT / "etc/hosts").write_text(f"127.0.0.1 localhost\n10.9.0.2 home.example studio.example live.example\n{FIELD} field.example\n")
    quick.networks()
    run("ip", "link", "add", "wwan0", "netns", "home", "type", "veth", "peer", "name", "to-home", "netns", "net")
    run("ip", "-n", "home", "address", "add", "10.10.0.2/24", "dev", "wwan0")
    run("ip", "-n", "net", "address", "add", "10.10.0.1/24", "dev", "to-home")
    for place, name in (("home", "wwan0"), ("net", "to-home")):
        run("ip", "-n", place, "link", "set", name, "up")
    run("ip", "-n", "home", "route", "add", "default", "via", "10.10.0.1", "dev", "wwan0", "metric", "9")
    run("ip", "-n", "field", "address", "add", f"{CAMERA}/32", "dev", "lo")
    # Programs that bind an address and not an interface (SRTLA) need a route for each source.
    for table, net, name in ((2, "10.2.0", "wwan0"), (3, "10.3.0", "wwan1")):
        run("ip", "-n", "field", "rule", "add", "from", f"{net}.2", "table", table)
        run("ip", "-n", "field", "route", "add", "default", "via", f"{net}.1", "dev", name, "table", table)
    do("field", "ffmpeg -loglevel error -f lavfi -i testsrc2=size=640x360:rate=25 -f lavfi -i sine -t 12 -c:v libx264 -preset veryfast -tune zerolatency "
                "-b:v 1500k -g 50 -c:a aac -f mpegts clip.ts && ffmpeg -loglevel error -i clip.ts -c copy clip.mp4 && cp clip.* /home")


def secret(file, text):
    """A file at both ends that nobody else may read."""
    for place in ("home", "field"):
        (ROOT / place / file).write_text(text + "\n")
        (ROOT / place / file).chmod(0o600)


def screen_of(place, number):
    screen = Running(place, f"exec Xvfb :{number} -noreset -screen 0 1024x768x24")
    end = time.monotonic() + 20
    while not (ROOT / f"tmp/.X11-unix/X{number}").exists():
        if time.monotonic() > end:
            die("Xvfb does not start")
        time.sleep(0.1)
    return screen


class Obs:
    """OBS in a place, with a display of its own."""

    def __init__(self, place):
        self.place, display = place, {"home": 91, "field": 92}[place]
        values = {"url": quoted("udp://127.0.0.1:5000?pkt_size=1316"), "container": quoted("mpegts"), "video": quoted("libx264"),
                  "custom": quoted("tune=zerolatency"), "audio": quoted("aac")}
        for name, text in PROFILE.items():
            file = ROOT / place / ".config/obs-studio" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(re.sub(r"\{(\w+)\}", lambda it: values[it[1]], text))
        self.screen = screen_of(place, display)
        self.obs = Running(place, f"mkdir -p -m 700 run; DISPLAY=:{display} XDG_RUNTIME_DIR=$HOME/run QT_QPA_PLATFORM=xcb LIBGL_ALWAYS_SOFTWARE=1 "
                                  "exec obs --multi --disable-updater")
        wait_for(self.obs, "Server started successfully", 60)
        self.version = self.ask("GetVersion")["obsVersion"]
        time.sleep(1)

    def ask(self, kind, **data):
        asked = ["ip", "netns", "exec", self.place, sys.executable, "-c", ASK, str(HERE / "docs/examples"), kind, json.dumps(data)]
        answer = json.loads(subprocess.check_output(asked, text=True))
        check(answer["requestStatus"]["result"], f"OBS in {self.place}: {kind}")
        return answer.get("responseData") or {}

    def rate(self, seconds):
        """What is recorded, in kbit/s, with audio."""
        before = self.ask("GetRecordStatus")
        time.sleep(seconds)
        after = self.ask("GetRecordStatus")
        rate = 8 * (after["outputBytes"] - before["outputBytes"]) / (after["outputDuration"] - before["outputDuration"])
        say(f"OBS makes {rate:.0f} kbit/s")
        return rate

    def shows(self, name, **settings):
        self.ask("CreateInput", sceneName="Scene", inputName=name, inputKind="ffmpeg_source", inputSettings=settings)

    def sees(self, file):
        """How much its scene's pixels differ, of 255; 0 is one color. The screenshot is kept."""
        self.ask("SaveSourceScreenshot", sourceName="Scene", imageFormat="png", imageFilePath=f"/tmp/{file}")
        shutil.copy(ROOT / "tmp" / file, quick.LOGS)
        pixels = subprocess.check_output(["ffmpeg", "-loglevel", "error", "-i", quick.LOGS / file, "-vf", "scale=16:9", "-f", "rawvideo", "-pix_fmt", "gray", "-"])
        return max(pixels) - min(pixels)

    def stop(self):
        self.obs.stop(signal.SIGTERM)
        self.screen.stop(signal.SIGTERM)


def obs_in():
    """At home OBS shows what comes."""
    [send], [receive] = commands("OBS"), commands("OBS", 1)
    viewer = Obs("home")
    viewer.shows("field", is_local_file=False, input=quoted("udp://127.0.0.1:5001"), input_format="mpegts")
    check(viewer.sees("obs-before.png") < 20, "nothing is seen before something comes")
    receiver, sender = Running("home", receive), Running("field", send)
    feed = Running("field", f"{PLAY} -f mpegts 'udp://127.0.0.1:5000?pkt_size=1316'")
    time.sleep(9)
    check(viewer.sees("obs.png") > 60, f"OBS shows it: {quick.LOGS}/obs.png")
    feed.wait(30)
    stop(sender, receiver)
    viewer.stop()


def obs():
    if not has("obs", "Xvfb", what="OBS"):
        return
    [send], [receive] = commands("OBS"), commands("OBS", 1)
    studio = Obs("field")
    say(f"OBS {studio.version}")
    studio.shows("clip", local_file="/field/clip.ts", is_local_file=True, looping=True)
    receiver = Running("home", receive)
    player = Running("home", "ffmpeg -loglevel error -i 'udp://127.0.0.1:5001?timeout=60000000' -c copy obs.ts")
    sender = Running("field", send)
    studio.ask("StartRecord")
    time.sleep(12)
    studio.ask("StopRecord")
    time.sleep(2)
    stop(sender, player, receiver)
    came("home", "obs.ts", 200)

    # The bitrate follows: of the link that is there after a fall to 1 Mbit/s, a part.
    sender, example = commands("OBS", 2)
    receiver = Running("home", receive)
    sender = Running("field", sender)
    shutil.copy(HERE / "docs/examples/obs-follow.py", ROOT / "field")
    studio.ask("StartRecord")
    wait_for(sender, "connected", 20)
    studio.ask("SetProfileParameter", parameterCategory="AdvOut", parameterName="FFVBitrate", parameterValue="300")
    check(studio.rate(5) > 1000, "a custom output that runs keeps its rate")
    following = Running("field", example.replace("…", "secret") + f" {quoted('--restart record')} {quoted('--change 0.3')}")
    time.sleep(25)
    for name in ("wlan0", "wwan0"):
        run("tc", "-n", "field", "qdisc", "change", "dev", name, "root", "tbf", "rate", "500kbit", "burst", "5kb", "latency", "200ms")
    time.sleep(20)
    rates = [int(it) for it in re.findall(r"^(\d+) kbit/s$", following.text(), re.M)]
    value = studio.ask("GetProfileParameter", parameterCategory="AdvOut", parameterName="FFVBitrate")["parameterValue"]
    check(rates and int(value) in rates and min(rates) < 1000 < max(rates), f"OBS's bitrate follows: {rates} kbit/s, at last {value}")
    # Not while it is restarted.
    end = time.monotonic() + 15
    while not studio.ask("GetRecordStatus")["outputActive"]:
        check(time.monotonic() < end, "OBS is recording again, or will")
        time.sleep(0.3)
    following.stop()
    check(studio.rate(8) < 1000, "what it makes has fallen")
    studio.ask("StopRecord")
    for name, mbit in (("wlan0", 5), ("wwan0", 3)):
        run("tc", "-n", "field", "qdisc", "change", "dev", name, "root", "tbf", "rate", f"{mbit}mbit", "burst", "5kb", "latency", "200ms")
    stop(sender, receiver)
    studio.stop()

    obs_in()


def ffmpeg():
    pipe, udp, receive = commands("ffmpeg")
    into = commands("OBS")[0]
    for feed, sender in ((pipe, None), (udp.replace("ffmpeg …", PLAY), into)):
        receiver = Running("home", receive)
        time.sleep(1)
        sending = sender and Running("field", sender)
        time.sleep(1)
        do("field", feed, 60)
        time.sleep(1)
        stop(*filter(None, (sending, receiver)))
        came("home", "out.mkv")


def gstreamer():
    if not has("gst-launch-1.0", "Xvfb", what="GStreamer"):
        return
    source = lambda line: line.replace("v4l2src", "videotestsrc is-live=true num-buffers=300 ! video/x-raw,width=640,height=360,framerate=25/1") \
        .replace("autoaudiosrc", "audiotestsrc is-live=true samplesperbuffer=960 num-buffers=600")
    counted = lambda line: line.replace("gst-launch-1.0", "gst-launch-1.0 -v") \
        .replace("autovideosink", "fpsdisplaysink video-sink=autovideosink text-overlay=false")
    plugin = "export GST_PLUGIN_PATH=/opt/gst DISPLAY=:93; "
    (ROOT / "opt/gst").mkdir(parents=True)
    if options.plugin:
        shutil.copy(options.plugin, ROOT / "opt/gst")
    screen = screen_of("home", 93)
    # Without the plugin, by the commands of OBS's section. What is shown at home is counted.
    # A busy machine drops what it decodes too late for its clock.
    udp, show = commands("GStreamer", 4)
    receiver, sender = Running("home", commands("OBS", 1)[0]), Running("field", commands("OBS")[0])
    player = Running("home", plugin + counted(show))
    do("field", source(udp), 60)
    time.sleep(2)
    stop(sender, receiver, player)
    rendered = [int(it) for it in re.findall(r"rendered: (\d+)", player.text())]
    check(rendered and rendered[-1] > 50, f"autovideosink showed {rendered[-1:]} frames")
    if not options.plugin:
        left_out.append("GStreamer's elements: no plugin (make gst-plugin, and --plugin)")
        [page("GStreamer", number) for number in (0, 1, 2, 3)]
        screen.stop()
        return
    show, send = commands("GStreamer")
    player = Running("home", plugin + counted(show))
    time.sleep(2)
    sender = Running("home", plugin + send)
    time.sleep(12)
    stop(sender, player)
    rendered = [int(it) for it in re.findall(r"rendered: (\d+)", player.text())]
    check(rendered and rendered[-1] > 50, f"braidcastsrc showed {rendered[-1:]} frames")

    camera, keep = commands("GStreamer", 1)
    do("home", "braidcast key new >stream.key && chmod 600 stream.key && cp -p stream.key /field")
    for receive in (keep, "braidcast receive 9000 show.ts --key-file stream.key"):
        receiver = Running("home", plugin + receive)
        time.sleep(1)
        do("field", plugin + source(camera), 60)
        time.sleep(2)
        receiver.stop()
        check("Audio: opus" in do("home", "ffprobe -hide_banner show.ts 2>&1"), "audio is Opus")
        came("home", "show.ts")
    player = Running("home", plugin + counted(commands("GStreamer", 2)[0]))
    time.sleep(2)
    do("field", plugin + source(camera), 60)
    time.sleep(2)
    stop(player)
    rendered = [int(it) for it in re.findall(r"rendered: (\d+)", player.text())]
    check(rendered and rendered[-1] > 50, f"uridecodebin showed {rendered[-1:]} frames")
    table = re.findall(r"^\| (`[^|]*`) \| (sink|source|both) \|", TEXT, re.M)
    for element, kinds in (("braidcastsink", ("sink", "both")), ("braidcastsrc", ("source", "both"))):
        real = set(re.findall(r"^  ([a-z-]+) +: ", do("home", plugin + f"gst-inspect-1.0 {element}"), re.M)) - {"name", "parent"}
        said = {name for names, kind in table if kind in kinds for name in re.findall(r"`([a-z-]+)`", names)}
        say(f"{element}: only in gst-inspect {sorted(real - said)}, only in the table {sorted(said - real)}")
        check(said <= real, f"{element} has all properties of the table")
    (ROOT / "home/follow.py").write_text(page("GStreamer", 3).replace("sink.props.suggested_bitrate // 1000))", "sink.props.suggested_bitrate // 1000) or print(sink.props.suggested_bitrate, flush=True))"))
    receiver = Running("home", "braidcast receive 9000 show.ts")
    time.sleep(1)
    example = Running("home", plugin + "exec /usr/bin/python3 follow.py")
    time.sleep(10)
    stop(example, receiver)
    rates = re.findall(r"^(\d+)$", example.text(), re.M)
    check(rates, f"the example sets the bitrate: {rates[:5]} …")
    came("home", "show.ts", 150)
    screen.stop()


def vlc():
    if not has("cvlc", what="VLC"):
        return
    send, show = commands("VLC")
    nobody = lambda command: "mkdir -p /tmp/v && chmod 777 /tmp/v && HOME=/tmp/v setpriv --reuid 65534 --regid 65534 --clear-groups " + command
    receiver, sender = Running("home", commands("OBS", 1)[0]), Running("field", commands("OBS")[0])
    player = Running("home", nobody(show.replace("vlc ", "vlc -I dummy --sout '#std{access=file,mux=ts,dst=/tmp/v/vlc.ts}' ")))
    time.sleep(1)
    feed = Running("field", nobody(send.replace("v4l2:///dev/video0", "/field/clip.mp4 vlc://quit")))
    feed.wait(60)
    time.sleep(2)
    stop(sender, receiver, player)
    shutil.copy(ROOT / "tmp/v/vlc.ts", ROOT / "home/vlc.ts")
    came("home", "vlc.ts")


def srt():
    if not has("srt-live-transmit", what="SRT"):
        return
    waits, calls, receive = commands("SRT")
    feeds = {"ffmpeg": quoted("ffmpeg … -f mpegts 'srt://127.0.0.1:5000?latency=200000'").replace("ffmpeg …", PLAY)}
    gst = quoted("… ! mpegtsmux alignment=7 ! srtsink uri=srt://127.0.0.1:5000 latency=200")
    if has("gst-launch-1.0", what="GStreamer's srtsink"):
        feeds["GStreamer"] = gst.replace("…", "gst-launch-1.0 -e videotestsrc is-live=true num-buffers=300 ! video/x-raw,framerate=25/1 ! x264enc tune=zerolatency key-int-max=50 ! h264parse config-interval=1")
    feeds["srt-live-transmit"] = "ffmpeg -loglevel error -re -i clip.ts -c copy -f mpegts 'udp://127.0.0.1:7000?pkt_size=1316' & srt-live-transmit -a no -t 14 udp://:7000 srt://127.0.0.1:5000"
    camera = f"ffmpeg -loglevel error -re -i clip.ts -c copy -f mpegts 'srt://{CAMERA}:4000?mode=listener'"
    for name, sender, feed in [*((name, waits, feed) for name, feed in feeds.items()), ("a camera that listens", calls, camera)]:
        say(f"SRT from {name}")
        studio = Running("home", "srt-live-transmit -a no srt://:4000 file://con >studio.ts")
        receiver = Running("home", receive)
        time.sleep(1)
        caller = Running("home", "ffmpeg -loglevel error -i srt://127.0.0.1:5001 -c copy called.ts" if name != "GStreamer" else
                         "gst-launch-1.0 srtsrc uri=srt://127.0.0.1:5001 ! filesink location=called.ts")
        sending = Running("field", sender)
        time.sleep(1)
        feeding = Running("field", feed)
        feeding.wait(60)
        time.sleep(2)
        stop(sending, feeding, receiver)
        stop(caller, studio)
        [came("home", file) for file in ("studio.ts", "called.ts", "show.ts")]

    [receive] = commands("SRT", 1)
    secret("srt.key", PASSPHRASE)
    receiver = Running("home", receive)
    time.sleep(1)
    callers = [Running("field", f"{PLAY} -f mpegts 'srt://home.example:5000?streamid=live/cam1&passphrase={PASSPHRASE}'"),
               Running("field", f"{PLAY} -f rtp_mpegts rtp://home.example:5004"),
               Running("field", f"ffmpeg -loglevel error -re -i clip.ts -c copy -f mpegts - | braidcast send - --to home.example:9000 --via wwan0 --name cam9"),
               Running("field", f"{PLAY} -f mpegts 'srt://home.example:5000?streamid=cam2&passphrase=not-the-right-one'")]
    [caller.wait(60) for caller in callers]
    check(callers[3].process.returncode != 0, "a wrong passphrase is refused")
    time.sleep(2)
    receiver.stop()
    [came("home", f"{name}.ts") for name in ("cam1", "studio", "cam9")]
    check(not (ROOT / "home/cam2.ts").exists(), "the refused one has no file")
    refused = Running("field", waits.replace("latency=200", "latency=200000"))
    check(refused.wait(10) != 0 and "write latency=200ms" in refused.text(), "ffmpeg's microseconds are refused")


def srtla():
    if not (ROOT / "usr/local/bin/srtla_send").exists():
        left_out.append("SRTLA: srtla_send is not here (RECIPES_PEERS)")
        page("SRTLA: phones that bond")
        return
    receive, send = commands("SRTLA: phones that bond")
    secret("srt.key", PASSPHRASE)
    feed = f"{PLAY} -f mpegts 'srt://127.0.0.1:6000?latency=1500000&passphrase={PASSPHRASE}&pkt_size=1316'"
    (ROOT / "field/ips").write_text("10.1.0.2\n10.2.0.2\n")
    receiver = Running("home", receive + " --json")
    player = Running("home", "ffmpeg -loglevel error -i 'udp://127.0.0.1:5001?timeout=60000000' -c copy out.ts")
    time.sleep(1)
    phone = Running("field", "srtla_send 6000 10.9.0.2 5000 ips")
    time.sleep(2)
    do("field", feed, 60)
    time.sleep(3)
    stop(phone, receiver, player)
    say("SRTLA's links:", *re.findall(r'"links":.{0,300}', receiver.text())[-1:])
    came("home", "show-2*.ts")
    came("home", "out.ts")
    receiver = Running("home", "braidcast receive 9000 show.ts")
    sender = Running("field", send)
    time.sleep(1)
    phone = Running("field", "srtla_send 6000 127.0.0.1 5000 loopback")
    (ROOT / "field/loopback").write_text("127.0.0.1\n127.0.0.2\n")
    phone.stop()
    phone = Running("field", "srtla_send 6000 127.0.0.1 5000 loopback")
    time.sleep(2)
    do("field", feed, 60)
    time.sleep(3)
    stop(phone, sender, receiver)
    came("home", "show.ts")


def rtmp():
    [receive] = commands("RTMP: OBS, action cameras, drones")
    secret("stream.key", STREAM)
    server, both = quoted("rtmp://home.example/live"), quoted("rtmp://home.example:1935/live/KEY")
    receiver = Running("home", receive)
    time.sleep(1)
    wrong = Running("field", f"ffmpeg -loglevel error -re -i clip.mp4 -c copy -f flv {server}/not-the-key")
    check(wrong.wait(20) != 0, "a wrong key is refused")
    do("field", f"ffmpeg -loglevel error -re -i clip.mp4 -c copy -f flv {both.replace('KEY', STREAM)}", 60)
    time.sleep(1)
    receiver.stop()
    came("home", "show.ts")
    if has("obs", "Xvfb", what="OBS by RTMP"):
        receiver = Running("home", receive)
        studio = Obs("field")
        studio.shows("clip", local_file="/field/clip.ts", is_local_file=True, looping=True)
        studio.ask("SetStreamServiceSettings", streamServiceType="rtmp_custom", streamServiceSettings={"server": server, "key": STREAM})
        studio.ask("StartStream")
        time.sleep(12)
        status = studio.ask("GetStreamStatus")
        check(status["outputActive"], f"OBS streams: {status['outputBytes']} bytes")
        studio.ask("StopStream")
        time.sleep(2)
        studio.stop()
        receiver.stop()
        came("home", "show.ts", 150)


def platform():
    if not has("nginx", "openssl", what="a server with RTMP"):
        return
    modules = [pathlib.Path(f"/usr/lib/nginx/modules/ngx_{name}_module.so") for name in ("rtmp", "stream")]
    if missing := [module.name for module in modules if not module.exists()]:
        left_out.append(f"a server with RTMP: nginx lacks {', '.join(missing)}")
        page("To a platform: Twitch, YouTube, a server with RTMP")
        return
    [receive] = commands("To a platform: Twitch, YouTube, a server with RTMP")
    secret("stream.key", STREAM)
    (ROOT / "home/nginx.conf").write_text("".join(f"load_module {module};\n" for module in modules) + """user root;
daemon off; pid /tmp/nginx.pid; error_log stderr;
events {}
rtmp { server { listen 1935; application app { live on; record all; record_path /home/rec; } } }
stream { server { listen 443 ssl; ssl_certificate /home/live.pem; ssl_certificate_key /home/live.key; ssl_protocols TLSv1.3; proxy_pass 127.0.0.1:1935; } }
""")
    do("home", """mkdir -p rec && openssl req -quiet -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj '/CN=an authority' -addext basicConstraints=critical,CA:TRUE 2>/dev/null ||
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj '/CN=an authority' -addext basicConstraints=critical,CA:TRUE
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout live.key -out live.csr -subj /CN=live.example
        printf 'subjectAltName=DNS:live.example' >ext; openssl x509 -req -in live.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -extfile ext -out live.pem""")
    server = Running("home", "nginx -c /home/nginx.conf -e /tmp/nginx-errors")
    receiver = Running("home", receive)
    time.sleep(1)
    do("field", f"{PLAY} -t 4 -f mpegts - | braidcast send - --to home.example:9000", 60)
    receiver.stop()
    check(not list((ROOT / "home/rec").glob("*")), "nothing goes to a server whose authority nobody trusts")
    say(*(line for line in receiver.text().splitlines() if "rtmps" in line))
    (ROOT / "home/show.ts").unlink()
    do("home", "cp ca.pem /usr/local/share/ca-certificates/recipes.crt && update-ca-certificates")
    for line in (receive, receive.replace("rtmps://", "rtmp://")):
        receiver = Running("home", line)
        time.sleep(1)
        do("field", f"{PLAY} -f mpegts - | braidcast send - --to home.example:9000 --via wlan0,wwan0", 60)
        time.sleep(2)
        receiver.stop()
        came("home", "show.ts")
        files = sorted((ROOT / "home/rec").glob("*.flv"))
        number = sum(frames("home", f"rec/{file.name}") for file in files)
        check(number > FRAMES - LATE, f"{line.split()[3].split('@')[0]}: the server recorded {number} frames in {[file.name for file in files]}")
        [file.unlink() for file in files]
    server.stop()


def mediamtx():
    heading = "mediamtx, as a front for what Braidcast does not speak"
    if not (ROOT / "usr/local/bin/mediamtx").exists():
        left_out.append("mediamtx: it is not here (RECIPES_PEERS)")
        page(heading)
        return
    front, send = commands(heading)
    server = Running("field", front.rstrip(" &"))
    time.sleep(1.5)
    for feed in ("-f flv rtmp://127.0.0.1/live/cam", "-f rtsp rtsp://127.0.0.1:8554/live/cam"):
        receiver = Running("home", "braidcast receive 9000 show.ts")
        camera = Running("field", f"ffmpeg -loglevel error -re -stream_loop 1 -i clip.mp4 -c copy {feed}")
        time.sleep(2)
        sender = Running("field", send)
        camera.wait(60)
        time.sleep(2)
        stop(sender, receiver)
        came("home", "show.ts", FRAMES)
    stop(server)
    server = Running("home", front.rstrip(" &"))
    receiver = Running("home", quoted("braidcast receive 9000 rtmp://127.0.0.1/live/cam --keep"))
    time.sleep(1)
    sender = Running("field", "ffmpeg -loglevel error -re -stream_loop 1 -i clip.ts -c copy -f mpegts - | braidcast send - --to home.example:9000")
    time.sleep(5)
    readers = [Running("home", f"ffmpeg -loglevel error -i rtsp://127.0.0.1:8554/live/cam -t 4 -c copy rtsp.ts"), Running("home", "ffmpeg -loglevel error -i http://127.0.0.1:8888/live/cam/index.m3u8 -t 2 -c copy hls.ts")]
    [reader.wait(40) for reader in readers]
    stop(sender, receiver, server)
    [came("home", file, 25) for file in ("rtsp.ts", "hls.ts")]


def nat():
    send, receive = quoted("send camera.ts --at 9000"), quoted("receive --from field.example:9000 --via eth0,wwan0 show.ts")
    sender = Running("field", quick.fed("braidcast " + send))
    receiver = Running("home", "braidcast " + receive)
    sender.wait(60)
    receiver.wait(30)
    for path in ("eth0", "wwan0"):
        check(re.search(rf"^{path} +active ", receiver.text(), re.M), f"the receiver's {path} is a path")
    came("home", "show.ts")
    firewall = quoted("sudo nft add rule inet filter input udp dport 9000 accept").replace("sudo ", "")
    do("home", "braidcast key new >stream.key && chmod 600 stream.key && cp -p stream.key /field")
    do("home", "nft 'add table inet filter; add chain inet filter input { type filter hook input priority 0; policy drop; }'")
    receiver, sender = Running("home", "braidcast receive 9000 show.ts"), Running("field", "braidcast send clip.ts --to home.example:9000 --reliable")
    time.sleep(3)
    check("connected" not in sender.text(), "a firewall keeps it out: " + sender.text().splitlines()[-1])
    do("home", firewall)
    check(sender.wait(60) == 0, "the rule lets it in")
    stop(receiver)
    came("home", "show.ts", FRAMES)
    do("home", "nft flush ruleset")
    for server, client in ((quoted("braidcast perf server 9000"), quoted("braidcast perf client home.example:9000")),
                           (quoted("braidcast perf server --from field.example:9000"), quoted("braidcast perf client --at 9000"))):
        for key in ("", " --key-file stream.key"):
            home, field = Running("home", server + key), Running("field", client + key)
            check(field.wait(90) == 0, f"{client}{key}: " + " / ".join(field.text().splitlines()[-3:]))
            home.stop()


def main():
    global options
    sections = dict(obs=obs, ffmpeg=ffmpeg, gstreamer=gstreamer, vlc=vlc, srt=srt, srtla=srtla, rtmp=rtmp, platform=platform, mediamtx=mediamtx, nat=nat)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--braidcast", default=BUILD / "release/braidcast", help="the program [%(default)s]")
    parser.add_argument("--plugin", help="GStreamer's plugin, libgstbraidcast.so")
    parser.add_argument("--only", default=",".join(sections), help="which sections")
    options = parser.parse_args()
    if os.geteuid() != 0:
        die("needs root, for namespaces")
    if os.environ.get("BRAIDCAST_UNSHARED") != "1":
        os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv], {**os.environ, "BRAIDCAST_UNSHARED": "1"})
    wanted = options.only.split(",")
    try:
        prepare(options)
        for name in wanted:
            say(f"docs/recipes.md: {name}")
            sections[name]()
        if set(wanted) == set(sections):
            unknown = [key for key in page.blocks if key not in page.used and key[0] not in SHOWN]
            if unknown and not left_out:
                die(f"recipes.md has blocks that are not followed: {unknown}")
        for line in left_out:
            say("NOT RUN:", line)
        say("each line works that was run")
    finally:
        for running in quick.started:
            running.end()


if __name__ == "__main__":
    main()
