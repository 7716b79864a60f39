#!/bin/sh
# Runs tcp.tcl with ns-2.35 (Debian: apt-get install ns2) and writes tcp.csv beside it. Half a minute.
cd "$(dirname "$0")" || exit 1
echo "agent,rate_bit_s,rtt_ms,queue_packets,loss,flows,seed,flow,goodput_bit_s,retransmitted,timeouts" > tcp.csv
run() { # rate queue loss flows seed agent
    ns tcp.tcl agent="$6" bw="$1" qlim="$2" loss="$3" flows="$4" seed="$5" jit=1 |
        awk -v h="$6,$1,100,$2,$3,$4" '/^RESULT/ { print h "," $2 "," $3 "," $4 "," $5 "," $6 }' >> tcp.csv
}
for agent in Sack1 Newreno; do
    for seed in 1 2 3 4 5 6 7 8 9 10; do
        for loss in 0.005 0.01 0.02 0.04; do run 10000000 1000 $loss 1 $seed $agent; done
        run 2000000 20 0 1 $seed $agent
        run 2000000 20 0 2 $seed $agent
    done
done
