#!/usr/bin/env bash
# Runs two commands at once: the second in front, the first at a lower priority, with its output
# shown when both are done. Fails if either fails. For work that only computes, beside tests that
# mostly wait.
#   tools/beside.sh BEHIND FRONT
set -euo pipefail

behind=${1:?usage: tools/beside.sh BEHIND FRONT} front=${2:?usage: tools/beside.sh BEHIND FRONT}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# What runs behind does not hear Ctrl-C by itself.
trap 'trap - TERM; kill 0' INT TERM
(
    export BRAIDCAST_LANE=behind
    status=0
    nice -n 5 bash -c "$behind" || status=$?
    tools/steps.py begin end
    exit $status
) >"$log" 2>&1 </dev/null &
status=0
bash -c "$front" || status=$?
tools/steps.py begin "waiting for what runs beside the tests"
wait $! || status=$?
cat "$log"
exit "$status"
