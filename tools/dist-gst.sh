#!/usr/bin/env bash
# A second Debian package, braidcast-gstreamer, into target/dist: the elements braidcastsink and
# braidcastsrc, and the program behind `braidcast encode`. It needs GStreamer's libraries, which the
# package braidcast does not; for this machine's architecture and Debian.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo build --locked --release --manifest-path gst/Cargo.toml --package braidcast-gst --package braidcast-gst-plugin --target-dir "$target/gst"

arch=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
root=$target/dist/gst-root
rm -rf "$root"
install -D -m 755 --strip "$target/gst/release/libgstbraidcast.so" "$root/usr/lib/$triplet/gstreamer-1.0/libgstbraidcast.so"
install -D -m 755 --strip "$target/gst/release/braidcast-encode" "$root/usr/bin/braidcast-encode"
install -D -m 644 packaging/copyright "$root/usr/share/doc/braidcast-gstreamer/copyright"
tools/deb.sh "$root" braidcast-gstreamer "$arch" "libglib2.0-0, libgstreamer1.0-0 (>= 1.20)" <<FIELDS
Section: video
Recommends: gstreamer1.0-plugins-base, gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad, gstreamer1.0-plugins-ugly, gstreamer1.0-alsa, gstreamer1.0-tools
Suggests: braidcast, gstreamer1.0-libav
Description: live video over several bad networks at once, for GStreamer
 The elements braidcastsink and braidcastsrc send and receive an MPEG
 transport stream over several networks at once, and say what an encoder may
 make; braidcast-encode is the program that "braidcast encode" starts.
FIELDS
