#!/usr/bin/env bash
# GStreamer's plugin (gst/plugin): tools/gst-plugin.sh build | test | install build, test   with the
# profile and the target directory of all tests; where GStreamer lacks, a line says that nothing was
# tested install       with optimization, into the folder where GStreamer looks for this user's
# plugins
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
plugin=(--locked --manifest-path gst/Cargo.toml --package braidcast-gst-plugin)

# What lacks, in words; nothing if all is there.
lacks() {
    command -v pkg-config >/dev/null || { echo "pkg-config"; return; }
    pkg-config --exists gstreamer-1.0 gstreamer-base-1.0 || { echo "libgstreamer1.0-dev"; return; }
    command -v gst-inspect-1.0 >/dev/null || { echo "gstreamer1.0-tools"; return; }
    local element
    for element in videotestsrc x264enc h264parse mpegtsmux tsdemux; do
        gst-inspect-1.0 --exists "$element" || { echo "GStreamer's element $element"; return; }
    done
    gst-inspect-1.0 --exists avdec_h264 || gst-inspect-1.0 --exists openh264dec || echo "a decoder of H.264"
}

case ${1:?usage: tools/gst-plugin.sh build | test | install} in
build | test)
    missing=$(lacks)
    if [ -n "$missing" ]; then
        if [ "$1" = test ]; then
            echo "GSTREAMER'S ELEMENTS WERE NOT TESTED: $missing is not there; \`make gst-plugin\` installs what lacks" >&2
            printf 'GStreamer\tlacks\t%s is not there\n' "$missing" >>"${BRAIDCAST_PEERS:-/dev/null}"
        fi
        exit 0
    fi
    if [ "$1" = build ]; then
        cargo test --quiet "${plugin[@]}" --target-dir "$target" --no-run
        exit
    fi
    printf '\n==> GStreamer'"'"'s elements\n'
    cargo build --locked --quiet --package braidcast-cli
    BRAIDCAST=$target/debug/braidcast cargo test --quiet "${plugin[@]}" --target-dir "$target"
    printf 'GStreamer\trun\t\n' >>"${BRAIDCAST_PEERS:-/dev/null}"
    ;;
install)
    cargo build --release "${plugin[@]}" --target-dir "$target/gst"
    folder=${XDG_DATA_HOME:-$HOME/.local/share}/gstreamer-1.0/plugins
    install -D -m 755 --strip "$target/gst/release/libgstbraidcast.so" "$folder/libgstbraidcast.so"
    # --exists would ask for a version as GStreamer has it.
    gst-inspect-1.0 braidcastsink >/dev/null || { echo "GStreamer does not load $folder/libgstbraidcast.so: gst-inspect-1.0 $folder/libgstbraidcast.so says why" >&2; exit 1; }
    echo "$folder/libgstbraidcast.so is there: gst-inspect-1.0 braidcastsink"
    ;;
*) echo "usage: tools/gst-plugin.sh build | test | install" >&2; exit 2 ;;
esac
