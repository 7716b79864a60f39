#!/usr/bin/env bash
# Runs the property tests of whole protocols for a time, with one seed after the other.
# tools/soak.sh SECONDS [FIRST_SEED]     FIRST_SEED: the clock's, if none is named
# SOAK_PROFILE, SOAK_CASES, SOAK_SEEDS and SOAK_TESTS say with which profile, how many cases for
# each seed, how many seeds at most, and which tests; `make test` sets them. Fails with the line
# that runs the same cases again.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: tools/soak.sh SECONDS [FIRST_SEED]}
first=${2:-$(date +%s)}
most=${SOAK_SEEDS:-1000000}
profile=${SOAK_PROFILE:-soak}
cases=${SOAK_CASES:-1000}
tests="--package braidcast-sim --package braidcast-fec --package braidcast-queue --package braidcast-dccp --package braidcast-sctp"
tests+=" --package braidcast-session --test it -- sim:: traffic:: codes:: properties:: transfer:: recovery::"
tests=${SOAK_TESTS:-$tests}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# shellcheck disable=SC2086
cargo test --locked --quiet --profile "$profile" --no-run $tests
end=$((SECONDS + seconds))
for ((seed = first; SECONDS < end && seed < first + most; seed++)); do
    run="PROPTEST_RNG_SEED=$seed PROPTEST_CASES=$cases cargo test --locked --profile $profile $tests"
    if ! env RUST_BACKTRACE=0 bash -c "$run" >"$log" 2>&1; then
        grep -E '^(test .*FAILED|Test failed|\[[^]]*\] Test failed)' "$log" | cut -c 1-400 || tail -n 40 "$log"
        echo "soak: broken; run it again with: $run"
        echo "and keep the case as a test of its own: what proptest prints as the smallest one"
        exit 1
    fi
    left="$((end > SECONDS ? end - SECONDS : 0)) s left"
    [ -z "${SOAK_SEEDS:-}" ] || left="of $SOAK_SEEDS"
    printf '\rsoak: %d seeds of %d cases for each property, nothing broke; %s ' $((seed - first + 1)) "$cases" "$left" >&2
done
echo >&2
