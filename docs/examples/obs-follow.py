#!/usr/bin/env python3
"""Sets OBS's video bitrate to what Braidcast's networks carry, over OBS's WebSocket API (obs-websocket 5,
in OBS since 28).

    braidcast send udp://127.0.0.1:5000 --to home.example:9000 --rate-report sse:8081,interval=500ms
    OBS_PASSWORD=... obs-follow.py [--restart stream|record]
"""
import argparse, base64, hashlib, json, os, socket, struct, time, urllib.request

class WebSocket:
    """The client's side of RFC 6455, for short text messages."""
    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=10)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: obswebsocket.json\r\n\r\n".encode())
        if b" 101 " not in self.file.readline(): raise SystemExit(f"{host}:{port} is no WebSocket server")
        while self.file.readline().strip(): pass
    def send(self, op, data):
        text, mask = json.dumps({"op": op, "d": data}).encode(), os.urandom(4)
        length = struct.pack("!B", 128 | len(text)) if len(text) < 126 else struct.pack("!BH", 128 | 126, len(text))
        self.socket.sendall(b"\x81" + length + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(text)))
    def receive(self):
        while True:
            kind, length = self.read(2)
            length &= 127
            if length > 125: length = struct.unpack("!H" if length == 126 else "!Q", self.read(2 if length == 126 else 8))[0]
            text = self.read(length)
            if kind & 15 == 8: raise SystemExit(f"OBS ended the connection: {text[:2].hex()} {text[2:].decode()}")
            if kind & 15 == 1: return json.loads(text)
    def read(self, count):
        data = self.file.read(count)
        if len(data) < count: raise SystemExit("OBS is gone")
        return data

def authentication(password, salt, challenge):
    digest = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return digest(digest(password + salt) + challenge)

def connect(address, password):
    obs = WebSocket(*address.rsplit(":", 1))
    hello, answer = obs.receive()["d"], {"rpcVersion": 1, "eventSubscriptions": 0}
    if "authentication" in hello: answer["authentication"] = authentication(password, **hello["authentication"])
    obs.send(1, answer)
    if obs.receive()["op"] != 2: raise SystemExit("OBS does not take us in")
    return obs

def request(obs, kind, **data):
    """OBS's answer: its `requestStatus` says if it was done, and its `responseData` what was asked for."""
    obs.send(6, {"requestType": kind, "requestId": kind, "requestData": data})
    while (answer := obs.receive())["op"] != 7: pass
    return answer["d"]

def restart(obs, output):
    """Stops an output that runs, and starts it. OBS takes a request to start while it stops, and does
    nothing then: ask again."""
    active = lambda: request(obs, f"Get{output}Status")["responseData"]["outputActive"]
    if not request(obs, "Stop" + output)["requestStatus"]["result"]: return
    while active(): time.sleep(0.1)
    while not active():
        request(obs, "Start" + output)
        end = time.monotonic() + 2
        while not active() and time.monotonic() < end: time.sleep(0.1)

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--obs", default="127.0.0.1:4455", help="OBS: Tools, WebSocket Server Settings [%(default)s]")
    parser.add_argument("--rates", default="http://127.0.0.1:8081/", help="what --rate-report sse:PORT serves [%(default)s]")
    parser.add_argument("--parameter", default="AdvOut/FFVBitrate", help="of the profile: %(default)s, the custom output's (FFmpeg), or SimpleOutput/VBitrate")
    parser.add_argument("--change", type=float, default=0.1, help="a change by this share is set [%(default)s]")
    parser.add_argument("--hold", type=float, default=10, help="with --restart: seconds after a change before a higher rate is set [%(default)s]")
    parser.add_argument("--restart", choices=["stream", "record"], help="stop and start that output for each change that is set")
    args = parser.parse_args()
    obs = connect(args.obs, os.environ.get("OBS_PASSWORD", ""))
    category, parameter = args.parameter.split("/")
    told, since = 0, -args.hold
    for line in urllib.request.urlopen(args.rates):
        if not line.startswith(b"data: "): continue
        report = json.loads(line[6:])
        # 6 % are the transport stream's own.
        kbits = int(min(report["video_bits_per_second"], report["smoothed_bits_per_second"]) / 1060)
        if not report["connected"] or abs(kbits - told) <= args.change * told: continue
        # OBS has crashed of restarts that followed each other within a second.
        if args.restart and time.monotonic() < since + (args.hold if kbits > told else 3): continue
        status = request(obs, "SetProfileParameter", parameterCategory=category, parameterName=parameter, parameterValue=str(kbits))["requestStatus"]
        if not status["result"]: raise SystemExit(f"OBS: {status.get('comment', status['code'])}")
        print(f"{kbits} kbit/s", flush=True)
        told, since = kbits, time.monotonic()
        if args.restart: restart(obs, args.restart.title())

if __name__ == "__main__": main()
