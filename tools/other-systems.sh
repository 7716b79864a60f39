#!/usr/bin/env bash
# Whether what does not need Linux compiles for macOS and Windows: the program with `lab`, `viz`,
# `emulate` and `generate`, and the libraries below it. Only checks, so that no linker and no C
# compiler for those systems is needed. Needs Rust's libraries for both; a line says which are
# missing, and how to get them.
set -euo pipefail
cd "$(dirname "$0")/.."

for target in aarch64-apple-darwin x86_64-pc-windows-gnu; do
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
        echo "NOT CHECKED for $target: Rust's library is missing (rustup target add $target)" >&2
        continue
    fi
    RUSTFLAGS="-D warnings" cargo check --locked --quiet --package braidcast-cli --package braidcast-lab --package braidcast-emulate --target "$target"
    echo "other systems: compiles for $target"
done
