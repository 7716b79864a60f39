#!/usr/bin/env bash
# Live video by `send` and `receive` beside the tools that their users would pick instead, over the
# same emulated links, and beside what foresight could have done. The harness is apart;
# FIELD_HARNESS names its folder (default: ../shared/bench/field). Peers are those under FIELD_PEERS
# (built by the harness's build.sh) and rist-tools; what is missing is left out. Without a harness
# the lab has the same links.
#
#   FIELD_SCENARIOS=S4,S5  FIELD_CLIPS=c2  FIELD_LATENCY=500  FIELD_REPS=1  FIELD_SLOTS=2  tools/field.sh
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

harness=${FIELD_HARNESS:-../shared/bench/field}
scenarios=${FIELD_SCENARIOS:-S3,S4,S5} clips=${FIELD_CLIPS:-c2,c4} latency=${FIELD_LATENCY:-500}
reps=${FIELD_REPS:-1} slots=${FIELD_SLOTS:-2}
target=${CARGO_TARGET_DIR:-target}
export FIELD_WORK=${FIELD_WORK:-$target/field}

cargo build --locked --release --quiet --package braidcast
braidcast=$target/release/braidcast

if [ ! -e "$harness/field.py" ]; then
    echo "field: no harness in $harness (FIELD_HARNESS names it): the lab's simulation of the same links instead, ours and the oracle alone"
    exec "$braidcast" lab run live-s3 live-s4 live-s5 --runs "$reps" --param "latency=${latency%%,*}ms" --results "$target/field/lab"
fi

mkdir -p "$FIELD_WORK"
FIELD_WORK=$(cd "$FIELD_WORK" && pwd)
[ -x "$FIELD_WORK/bin/feed" ] || make -s -C "$harness/c" BIN="$FIELD_WORK/bin"
for clip in ${clips//,/ }; do
    [ -e "$FIELD_WORK/clips/$clip.ts" ] || { "$harness/field.py" --work "$FIELD_WORK" clip ${FIELD_INPUT:+"$FIELD_INPUT"}; break; }
done

peers=${FIELD_PEERS:-$FIELD_WORK/peers}
systems=braidcast,braidcast-fec tuned=
add() { systems=$systems,$1 tuned=$tuned,$1; }
if [ -x "$peers/srt/build/srt-test-live" ]; then add srt-broadcast; add srt-backup; fi
if [ -x "$peers/belabox-srt/build/srt-live-transmit" ] && [ -x "$peers/srt/build/srt-live-transmit" ] && [ -x "$peers/srtla/srtla_rec" ]; then
    [ ! -x "$peers/srtla/srtla_send" ] || add srtla
    [ ! -x "$peers/srtla_send/target/release/srtla_send" ] || add srtla-irl
fi
if command -v ristsender >/dev/null && command -v ristreceiver >/dev/null; then add rist-weights; add rist-duplicate; fi
tuned=${tuned#,}
echo "field: $systems over $scenarios"
[ -n "$tuned" ] || echo "field: no peers in $peers and no rist-tools: ours and the oracle alone"

field() { "$harness/field.py" --work "$FIELD_WORK" "$@"; }
cells=(--scenarios "$scenarios" --clips "$clips" --latency "$latency")
run() { field run "${cells[@]}" --braidcast "$braidcast" --slots "$slots" "$@"; }
run --systems braidcast,braidcast-fec --reps "$reps" --again
if [ -n "$tuned" ]; then
    # A peer's buffer comes on top of the way: it is told what makes it hand out when ours does.
    run --systems "$tuned" --reps 1
    field tune
    run --systems "$tuned" --reps "$reps" --tuned
fi
field oracle "${cells[@]}"
field table --summary
