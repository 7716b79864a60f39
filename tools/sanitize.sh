#!/usr/bin/env bash
# Runs the tests of what has real sockets, threads and C under a sanitizer, with the nightly compiler.
#   tools/sanitize.sh address|thread|c
# address, thread: tests of driver, socket and live. c: the C programs of the C library under
# AddressSanitizer, compiled with the C compiler's own. A part that is missing is named, and passes:
# nobody needs nightly to build Braidcast.
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:?usage: tools/sanitize.sh address|thread|c}
kind=$part
[ "$part" != c ] || kind=address
host=$(rustc -vV | sed -n 's/^host: //p')

skip() {
    printf '%s WAS NOT RUN: %s\n' "${kind^^} SANITIZER" "$1" >&2
    exit 0
}
cargo +nightly --version >/dev/null 2>&1 || skip "no nightly compiler (rustup toolchain install nightly --profile minimal)"
sysroot=$(rustc +nightly --print sysroot)
[ -e "$sysroot/lib/rustlib/$host/lib/librustc-nightly_rt.asan.a" ] || skip "this compiler has no sanitizers for $host"

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/sanitize
flags=(-Zsanitizer="$kind" -Cdebuginfo=1)
build=()
if [ "$kind" = thread ]; then
    # The standard library must be compiled with it too: else what its threads hand over looks like a race.
    [ -e "$sysroot/lib/rustlib/src/rust/library/Cargo.lock" ] || skip "the standard library's source is missing (rustup component add rust-src --toolchain nightly)"
    build=(-Zbuild-std)
fi
export RUSTFLAGS="${flags[*]}" CARGO_INCREMENTAL=0
# What ends by itself is not told of: threads of the tests' own may still run.
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 TSAN_OPTIONS=halt_on_error=1

if [ "$part" != c ]; then
    printf '\n==> %s sanitizer: driver, socket and live\n' "$kind"
    exec cargo +nightly test "${build[@]}" --locked --quiet --target "$host" --target-dir "$target" \
        --package braidcast-driver --package braidcast-socket --package braidcast-live --lib --tests
fi

# Valgrind does not run what is sanitized.
printf '\n==> address sanitizer: the C library\n'
wrapper=$(mktemp)
trap 'rm -f "$wrapper" "$wrapper.cpp"' EXIT
# The program brings the sanitizer's library, which the C library's own instrumentation then uses.
printf '#!/bin/sh\nexec cc -fsanitize=address "$@"\n' >"$wrapper"
printf '#!/bin/sh\nexec c++ -fsanitize=address "$@"\n' >"$wrapper.cpp"
chmod +x "$wrapper" "$wrapper.cpp"
BRAIDCAST_TEST_CC=$wrapper BRAIDCAST_TEST_CXX=$wrapper.cpp cargo +nightly test --locked --quiet --target "$host" --target-dir "$target" \
    --manifest-path bindings/Cargo.toml --package braidcast-c --test programs -- --skip valgrind
