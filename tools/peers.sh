#!/usr/bin/env bash
# One line: which other implementations the tests were run against, and which not. Fails if one was
# not met whose parts are all there. tools/peers.sh LOG     the file that BRAIDCAST_PEERS named
# while the tests ran
set -euo pipefail
log=$(realpath -m "${1:?usage: tools/peers.sh LOG}")
cd "$(dirname "$0")/.."
touch "$log"

# Name, and a command that says whether its parts are there, for one that no test spoke of at all.
peers=(
    "usrsctp:test -x /usr/lib/usrsctp/rtcweb || compgen -G '/usr/lib/usrsctp/*'"
    "dcsctp:true"
    "sctp-proto:true"
    "tshark:command -v tshark"
    "baresip:command -v baresip"
    "srt-live-transmit:command -v srt-live-transmit"
    "GStreamer:false"
    "Linux:command -v qemu-system-x86_64 && test -e \"${BRAIDCAST_LINUX_PEER:-../shared/interop/linux-peer}/run.sh\""
)

met=() not=() status=0
for entry in "${peers[@]}"; do
    name=${entry%%:*} there=${entry#*:}
    said() { awk -F '\t' -v peer="$name" -v what="$1" '$1 == peer && $2 == what { n++; why = $3 } END { if (n) print n "\t" why; exit !n }' "$log"; }
    # One guest of several that did not start is no fault of ours: it was met.
    if count=$(said run); then
        met+=("$name (${count%%$'\t'*})")
    elif why=$(said fails); then
        not+=("$name (its parts are there: ${why#*$'\t'})")
        status=1
    elif why=$(said lacks); then
        not+=("$name (${why#*$'\t'})")
    elif eval "$there" >/dev/null 2>&1; then
        not+=("$name (its parts are there, and no test spoke of it)")
        status=1
    else
        not+=("$name (not installed)")
    fi
done
join() { local IFS=$'\n'; paste -sd ';' <<<"$*" | sed 's/;/; /g'; }
echo "other implementations met (how often): $(join "${met[@]:-none}"). Not met: $(join "${not[@]:-none}")."
exit $status
