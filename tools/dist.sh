#!/usr/bin/env bash
# Builds what others install, into target/dist: a stripped binary in a tarball, a Debian package,
# and the root of a container image. tools/dist.sh [--target TRIPLE] [--binary FILE]     --binary
# packs one that is built already The target is musl where its compiler is there, so that the binary
# is static and runs on any Linux; otherwise it needs the C library of this machine, or a newer one,
# and the package says so. aarch64: --target aarch64-unknown-linux-gnu, with gcc-aarch64-linux-gnu.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

die() { echo "dist: $*" >&2; exit 1; }
target= binary=
while [ $# -gt 0 ]; do
    case $1 in
    --target) target=${2:?TRIPLE}; shift 2 ;;
    --binary) binary=${2:?FILE}; shift 2 ;;
    *) die "unknown argument $1" ;;
    esac
done
host=$(rustc -vV | sed -n 's/^host: //p')
if [ -z "$target" ]; then
    target=$host
    musl=${host%-gnu}-musl
    if [ -z "$binary" ] && command -v musl-gcc >/dev/null && [ -d "$(rustc --print sysroot)/lib/rustlib/$musl" ]; then target=$musl; fi
fi
case $target in
x86_64-*) arch=amd64 ;;
aarch64-*) arch=arm64 ;;
*) die "no Debian architecture for $target" ;;
esac

build=${CARGO_TARGET_DIR:-target}
if [ -z "$binary" ]; then
    case $target in aarch64-unknown-linux-gnu) export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc ;; esac
    cargo build --locked --release --package braidcast-cli --bin braidcast --target "$target"
    binary=$build/$target/release/braidcast
fi
# Man pages and completions are made by a program that runs here: this one, by itself or in
# emulation, or one built for this machine.
runs=("$binary")
if [ "$target" != "$host" ] && ! "${runs[@]}" --version >/dev/null 2>&1; then
    runs=(qemu-aarch64 -L /usr/aarch64-linux-gnu "$binary")
    if ! "${runs[@]}" --version >/dev/null 2>&1; then
        cargo build --locked --quiet --package braidcast-cli --bin braidcast
        runs=("$build/debug/braidcast")
    fi
fi

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
out=$build/dist
root=$out/root
rm -rf "$root"
install -d "$root/usr/bin" "$root/usr/share/man/man1" "$root/usr/share/doc/braidcast" "$root/lib/systemd/system" \
    "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d"
install -m 755 "$binary" "$root/usr/bin/braidcast"
strip=strip
case $target in aarch64-*) [ "$(uname -m)" = aarch64 ] || strip=aarch64-linux-gnu-strip ;; esac
"$strip" "$root/usr/bin/braidcast"

"${runs[@]}" generate man "$root/usr/share/man/man1"
gzip -9 -n "$root"/usr/share/man/man1/*.1
"${runs[@]}" generate completions bash >"$root/usr/share/bash-completion/completions/braidcast"
"${runs[@]}" generate completions zsh >"$root/usr/share/zsh/vendor-completions/_braidcast"
"${runs[@]}" generate completions fish >"$root/usr/share/fish/vendor_completions.d/braidcast.fish"
install -m 644 packaging/*.service "$root/lib/systemd/system/"
install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$root/usr/share/doc/braidcast/"
cp packaging/copyright "$root/usr/share/doc/braidcast/copyright"
cp -r docs "$root/usr/share/doc/braidcast/manual"

tools/deb.sh "$root" braidcast "$arch" <<FIELDS
Section: net
Description: live video and voice over several bad networks at once
 Braidcast sends live video over several networks at once, each of which may
 be bad: every frame is played at a fixed time after its capture, or skipped.
 It carries files and any application's UDP as well, encrypted, without root.
FIELDS
tar -C "$root/usr/bin" --owner 0 --group 0 -czf "$out/braidcast-$version-$target.tar.gz" braidcast
echo "dist: $out/braidcast-$version-$target.tar.gz"
