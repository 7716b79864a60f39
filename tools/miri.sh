#!/usr/bin/env bash
# Runs under Miri what computes without I/O and without C: core, fec with its kernels, and of secure
# the records, offers and windows that are its own. If Miri is missing, a line says so, and it passes.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "MIRI WAS NOT RUN: it is not installed (rustup toolchain install nightly --profile minimal --component miri,rust-src)" >&2
    exit 0
fi
export PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation
run() {
    printf '\n==> Miri: %s\n' "$*"
    cargo +nightly miri test --locked --package "$@"
}
run braidcast-core --lib
run braidcast-fec --lib
# The kernels that processors with these features have.
RUSTFLAGS='-C target-feature=+avx2,+gfni' run braidcast-fec --test it kernels::
# Not what derives keys from words, which is slow on purpose, nor what calls AWS-LC.
run braidcast-secure --lib -- courier:: doubt:: inquiry:: insecure:: offer:: record:: replay::
