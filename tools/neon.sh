#!/usr/bin/env bash
# The kernels' tests for 64-bit ARM, in emulation: NEON beside the portable kernel. Says so where a
# part of it is not installed, and passes.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu root=/usr/aarch64-linux-gnu

lacks=()
has() { command -v "$1" >/dev/null 2>&1; }
has aarch64-linux-gnu-gcc || lacks+=("the cross linker (Debian: gcc-aarch64-linux-gnu)")
[ -e "$root/lib/libc.so.6" ] || lacks+=("its C library (Debian: libc6-dev-arm64-cross)")
has qemu-aarch64 || lacks+=("the emulator (Debian: qemu-user)")
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || lacks+=("Rust's library (rustup target add $target)")
if [ ${#lacks[@]} != 0 ]; then
    printf 'NEON WAS NOT RUN: %s\n' "$(printf '%s; ' "${lacks[@]}" | sed 's/; $//')" >&2
    exit 0
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $root"
# What the best kernel is, is among the tests: on this processor it is NEON.
cargo test --locked --quiet --package braidcast-fec --test it kernels:: --target "$target"
