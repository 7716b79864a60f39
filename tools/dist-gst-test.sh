#!/usr/bin/env bash
# Installs the packages of `make dist` and `make dist-gst` with what they need into a clean Debian
# 12, and has x264 encode there. tools/dist-gst-test.sh [BRAIDCAST.deb BRAIDCAST-GSTREAMER.deb]
# Needs root, debootstrap and Debian's archive (or an unpacked root in BRAIDCAST_GST_ROOT, which is
# changed). Takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${CARGO_TARGET_DIR:-target}
arch=$(dpkg --print-architecture)
newest() { ls -t "$build"/dist/"$1"_*_"$arch".deb 2>/dev/null | head -n 1; }
deb=${1:-$(newest braidcast)}
gst=${2:-$(newest braidcast-gstreamer)}
root=${BRAIDCAST_GST_ROOT:-$build/dist/debian12-gst}
[ -e "$deb" ] && [ -e "$gst" ] || { echo "dist-gst-test: run \`make dist dist-gst\` first" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "dist-gst-test: needs root" >&2; exit 1; }
if [ ! -e "$root/etc/debian_version" ]; then
    command -v debootstrap >/dev/null || { echo "dist-gst-test: install debootstrap, or name a root in BRAIDCAST_GST_ROOT" >&2; exit 1; }
    debootstrap --variant=minbase bookworm "$root"
fi
cp "$deb" "$root/tmp/braidcast.deb"
cp "$gst" "$root/tmp/braidcast-gstreamer.deb"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
inside apt-get update -qq
# The one command of docs/recipes.md: what a user types, with what the package recommends.
inside apt-get install -y -qq /tmp/braidcast.deb /tmp/braidcast-gstreamer.deb >"$build/dist/gst-install.log" 2>&1 ||
    { tail -n 20 "$build/dist/gst-install.log" >&2; exit 1; }
inside sh -c 'command -v cc && exit 1; true'
for element in braidcastsink braidcastsrc; do
    inside gst-inspect-1.0 "$element" | grep -A 1 'Factory Details' >/dev/null || { echo "dist-gst-test: GStreamer does not load $element" >&2; exit 1; }
done
inside braidcast encode --help | grep -e '--encoder' >/dev/null
# x264 through the commands, then through the elements; what comes is a transport stream.
inside sh -c '
    set -e
    cd /tmp && rm -f out.ts sink.ts
    braidcast receive 127.0.0.1:19010 out.ts --quiet &
    timeout -s INT 6 braidcast encode test --size 320x180 --audio test --to 127.0.0.1:19010 --quiet || true
    wait $!
    timeout 30 gst-launch-1.0 -q braidcastsrc listen=127.0.0.1:19011 ! filesink location=sink.ts &
    sleep 1
    timeout 30 gst-launch-1.0 -q videotestsrc is-live=true num-buffers=120 ! video/x-raw,width=320,height=180,framerate=30/1 \
        ! x264enc tune=zerolatency bitrate=500 ! h264parse ! mpegtsmux ! braidcastsink to=127.0.0.1:19011
    wait $!
    for file in out.ts sink.ts; do
        gst-launch-1.0 -v filesrc location=$file ! tsdemux ! h264parse ! fakesink silent=false | grep -c chain >$file.count || true
        echo "dist-gst-test: $file: $(cat $file.count) pictures"
        [ "$(cat $file.count)" -gt 60 ]
    done'
inside dpkg -r braidcast-gstreamer braidcast >/dev/null
inside sh -c '! command -v braidcast-encode && ! gst-inspect-1.0 braidcastsink >/dev/null 2>&1'
# The next run has to install all of it again.
inside apt-get autoremove -y -qq --purge >>"$build/dist/gst-install.log" 2>&1
echo "dist-gst-test: installed, used and removed in $(cat "$root/etc/debian_version")"
