# TCP flows, SACK or NewReno, over one link, for comparison with crates/sim/src/tcp.   usage: ns tcp.tcl key=value ...
# Prints one line per flow: RESULT seed flow goodput_bit_s retransmitted timeouts
# Goodput: payload acknowledged in the window [warm, warm + dur) seconds.
array set o { bw 10e6 rtt 0.1 loss 0 dur 300 warm 10 seed 1 qlim 1000 flows 1 minrto 0.2 delack 0.1 window 2000 jit 0 agent Sack1 }
foreach a $argv {
    if {![regexp {^([a-z0-9]+)=(.*)$} $a -> k v] || ![info exists o($k)]} { puts stderr "bad argument: $a"; exit 2 }
    set o($k) $v
}
$defaultRNG seed [expr 4242 + 101 * $o(seed)]
proc stream {} {
    global o
    set r [new RNG]
    for {set i 0} {$i < $o(seed)} {incr i} { $r next-substream }
    return $r
}
set rLoss [stream]; set rStart [stream]
set ns [new Simulator]
set a [$ns node]; set b [$ns node]
$ns duplex-link $a $b $o(bw) [expr $o(rtt) / 2.0] DropTail
$ns queue-limit $a $b $o(qlim)
$ns queue-limit $b $a 1000
if {$o(loss) > 0} {
    set u [new RandomVariable/Uniform]; $u use-rng $rLoss
    set em [new ErrorModel]; $em unit pkt; $em set rate_ $o(loss); $em ranvar $u
    $ns link-lossmodel $em $a $b
}
for {set i 0} {$i < $o(flows)} {incr i} {
    set tcp($i) [new Agent/TCP/$o(agent)]
    # 1460 bytes of payload; ns-2 adds 40 of headers by itself: 1500 on the wire. The granularity of the clock is fine, as in our code.
    $tcp($i) set packetSize_ 1460; $tcp($i) set window_ $o(window); $tcp($i) set maxcwnd_ 0; $tcp($i) set windowInit_ 2
    $tcp($i) set minrto_ $o(minrto); $tcp($i) set tcpTick_ 0.001; $tcp($i) set timestamps_ 0; $tcp($i) set overhead_ 0
    if {$o(agent) eq "Sack1"} { set sink($i) [new Agent/TCPSink/Sack1/DelAck] } else { set sink($i) [new Agent/TCPSink/DelAck] }
    $sink($i) set interval_ $o(delack)
    $ns attach-agent $a $tcp($i); $ns attach-agent $b $sink($i); $ns connect $tcp($i) $sink($i)
    set ftp($i) [new Application/FTP]; $ftp($i) attach-agent $tcp($i)
    $ns at [expr 0.1 + [$rStart uniform 0 $o(jit)]] "$ftp($i) start"
}
proc mark {} { global o tcp base; for {set i 0} {$i < $o(flows)} {incr i} { set base($i) [$tcp($i) set ack_] } }
proc done {} {
    global o tcp base
    for {set i 0} {$i < $o(flows)} {incr i} {
        set bits [expr ([$tcp($i) set ack_] - $base($i)) * 1460 * 8.0 / $o(dur)]
        puts "RESULT $o(seed) $i [format %.0f $bits] [$tcp($i) set nrexmitpack_] [$tcp($i) set nrexmit_]"
    }
    exit 0
}
$ns at $o(warm) mark
$ns at [expr $o(warm) + $o(dur)] done
$ns run
