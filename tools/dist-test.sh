#!/usr/bin/env bash
# Installs the package of `make dist` into a clean Debian 12 without compilers, and tries it there;
# then runs the container's root, which has nothing but the program, under bubblewrap.
# tools/dist-test.sh [DEB] Needs root and debootstrap (or an unpacked root in BRAIDCAST_ROOT, which
# is changed). Takes some minutes for the root.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${CARGO_TARGET_DIR:-target}
deb=${1:-$(ls -t "$build"/dist/braidcast_*_"$(dpkg --print-architecture)".deb | head -n 1)}
root=${BRAIDCAST_ROOT:-$build/dist/debian12}
[ "$(id -u)" = 0 ] || { echo "dist-test: needs root" >&2; exit 1; }
if [ ! -e "$root/etc/debian_version" ]; then
    command -v debootstrap >/dev/null || { echo "dist-test: install debootstrap, or name a root in BRAIDCAST_ROOT" >&2; exit 1; }
    debootstrap --variant=minbase bookworm "$root"
fi
cp "$deb" "$root/tmp/braidcast.deb"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
inside dpkg -i /tmp/braidcast.deb
inside braidcast --version
inside sh -c 'command -v cc && exit 1; test -e /usr/share/man/man1/braidcast-send.1.gz && test -e /usr/share/bash-completion/completions/braidcast'
# A file goes through the installed program, whole; with a key, over two paths.
inside sh -c '
    set -e
    cd /tmp && rm -f out.bin && head -c 3000000 /dev/urandom >in.bin && braidcast key new >key && chmod 600 key
    braidcast receive 127.0.0.1:19000,127.0.0.1:19001 out.bin --key-file key --quiet &
    braidcast send in.bin --to 127.0.0.1:19000 --to 127.0.0.1:19001 --reliable --key-file key --quiet
    wait $! && cmp in.bin out.bin'
# An emulated link, and a scenario of the lab.
inside braidcast emulate 127.0.0.1:0 127.0.0.1:9 --rate 1mbit --duration 200ms --json >/dev/null
inside sh -c 'cd /tmp && braidcast lab run cmt-loss --runs 1 --duration 5s >/dev/null'
inside sh -c 'systemd-analyze verify /lib/systemd/system/braidcast-receive@.service 2>/dev/null || test ! -e /usr/bin/systemd-analyze'
inside cat /usr/bin/braidcast >"$build/dist/braidcast"
inside dpkg -r braidcast
inside sh -c '! command -v braidcast'
echo "dist-test: installed, used and removed in $(cat "$root/etc/debian_version")"

# The image of packaging/Containerfile: a static program and an empty folder for data.
if readelf -d "$build/dist/braidcast" | grep -q NEEDED; then
    echo "dist-test: the program is not static, so there is no container image to try"
    exit
fi
command -v bwrap >/dev/null || { echo "dist-test: install bubblewrap to try the container's root" >&2; exit 1; }
image=$build/dist/image
rm -rf "$image"
install -d "$image/data" "$image/dev" "$image/proc"
install -m 755 "$build/dist/braidcast" "$image/braidcast"
head -c 3000000 /dev/urandom >"$image/data/in.bin"
contained() { bwrap --bind "$image" / --dev /dev --proc /proc --unshare-pid --unshare-ipc --die-with-parent --clearenv --chdir /data /braidcast "$@"; }
contained --version
contained receive 127.0.0.1:19002 out.bin --quiet &
contained send in.bin --to 127.0.0.1:19002 --reliable --quiet
wait $!
cmp "$image/data/in.bin" "$image/data/out.bin"
echo "dist-test: the container's root sends and receives"
