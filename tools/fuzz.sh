#!/usr/bin/env bash
# Fuzzes with libFuzzer for a bounded time, with the stable compiler and without cargo-fuzz.
#   tools/fuzz.sh SECONDS [TARGET...]    SECONDS for each target; all targets if none is named
#   tools/fuzz.sh keep [TARGET...]       what was found, less what covers nothing of its own, into
#                                        fuzz/seeds/TARGET.tar.gz, to be committed
#   tools/fuzz.sh replay TARGET FILE     one input again
# Inputs: fuzz/seeds (committed: single files in TARGET/, what earlier runs found in TARGET.tar.gz)
# and fuzz/corpus/TARGET (what runs here found). A target that takes more than 512 MiB, or 128 MiB
# at once, is broken too: a bomb is a finding. Fails with the path of the input that broke a target.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: tools/fuzz.sh SECONDS [TARGET...] | tools/fuzz.sh keep [TARGET...] | tools/fuzz.sh replay TARGET FILE}
shift
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fuzz

# What cargo-fuzz passes, less the sanitizers, which need a nightly compiler. `make miri` runs the
# tests of `fec`'s kernels, which have `unsafe` code, under Miri. With --target the flags reach the
# fuzzed code only, not build scripts.
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
flags+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Awarnings"
RUSTFLAGS=$flags cargo build --quiet --release --target "$host" --manifest-path fuzz/Cargo.toml
bin=$CARGO_TARGET_DIR/$host/release

if [ "$seconds" = replay ]; then
    exec "$bin/${1:?TARGET}" "${2:?FILE}"
fi
if [ $# = 0 ]; then
    for program in fuzz/src/bin/*.rs; do
        set -- "$@" "$(basename "$program" .rs)"
    done
fi

# The corpus of a target, with what earlier runs kept.
corpus_of() {
    mkdir -p "fuzz/corpus/$1" "fuzz/seeds/$1"
    if [ -z "$(ls -A "fuzz/corpus/$1")" ] && [ -f "fuzz/seeds/$1.tar.gz" ]; then
        tar -xzf "fuzz/seeds/$1.tar.gz" -C "fuzz/corpus/$1"
    fi
}

if [ "$seconds" = keep ]; then
    for target; do
        corpus_of "$target"
        least=$(mktemp -d) log=$(mktemp)
        if ! "$bin/$target" -merge=1 -rss_limit_mb=2048 -max_len=32768 "$least" "fuzz/corpus/$target" "fuzz/seeds/$target" </dev/null >"$log" 2>&1; then
            tail -n 40 "$log"
            echo "fuzz $target: its corpus could not be merged; nothing was kept"
            exit 1
        fi
        # The same inputs make the same bytes.
        tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - -C "$least" . | gzip -9n >"fuzz/seeds/$target.tar.gz"
        echo "fuzz $target: $(find "$least" -type f | wc -l) inputs, $(stat -c %s "fuzz/seeds/$target.tar.gz") bytes"
        rm -rf "$least" "$log"
    done
    exit
fi

status=0
for target; do
    corpus=fuzz/corpus/$target seeds=fuzz/seeds/$target artifacts=fuzz/artifacts/$target/ log=$(mktemp)
    corpus_of "$target"
    mkdir -p "$artifacts"
    if RUST_BACKTRACE=0 "$bin/$target" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=512 -malloc_limit_mb=128 -max_len=32768 -print_final_stats=1 \
        -artifact_prefix="$artifacts" "$corpus" "$seeds" </dev/null >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        covered=$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1)
        echo "fuzz $target: $runs executions, ${covered#cov: } edges covered, nothing broke"
    else
        status=1
        tail -n 40 "$log"
        echo "fuzz $target: broken by $(grep -oE "$artifacts[^ ]+" "$log" | tail -n 1)"
    fi
    rm -f "$log"
done
exit $status
