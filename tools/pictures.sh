#!/usr/bin/env bash
# Makes the screenshots of docs/viz.md anew, with the program in PATH or the one that BRAIDCAST
# names, and Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${BRAIDCAST:-braidcast}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A run of the lab is the same each time: so are its traces and its page.
"$program" lab run live-s5 --variant both --param mbit=3.6 --param latency=500ms --seed 9 --viz --results "$work" --quiet >/dev/null
"$program" lab run cmt-wifi-3g-ns2 --variant sack --param packet=1000B-packet --param rwnd=10pkt --seed 1 --duration 10s \
    --viz --results "$work" --quiet >/dev/null

picture() { # NAME HEIGHT PAGE PLACE
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="1200,$2" --virtual-time-budget=4000 \
        --screenshot="docs/pictures/viz-$1.png" "file://$work/$3#$4" 2>/dev/null
}
picture frames 760 live-s5.main.html 'view=frames&t=22.8-23.8'
picture exchange 700 live-s5.main.html 'view=exchange&t=23-23.6&frame=784'
picture timeline 900 live-s5.main.html 'view=timeline&t=21-27'
picture blocking 700 cmt-wifi-3g-ns2.main.html 'view=sequence&t=4-5'
# ns-2's trace of the same scenario, where there is one (reference/ns2/transfer.tcl agent=cmt
# bw1=1.6e6 bw2=0.4e6 rtt1=0.02 rtt2=0.2 chunk=968 mtu=1000 rwnd=9680 dur=10 trace=FILE).
if [ $# = 1 ]; then
    "$program" viz "$1" --out "$work/ns2.html" --quiet
    picture blocking-ns2 700 ns2.html 'view=sequence&t=4-5'
fi
