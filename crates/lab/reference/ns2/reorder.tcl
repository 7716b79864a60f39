# One greedy TFRC flow over one link.   usage: ns tfrc.tcl key=value ...
array set o {
    agent tfrc  bw 1e6 rtt 0.1 loss 0 dur 300 warm 60 seed 1 qlim 50
    wire 1500 jit 0.01 reorder 0 late 0.05 spread 0.02 trace /dev/null samples /dev/null
}
foreach a $argv {
    if {![regexp {^([a-z0-9]+)=(.*)$} $a -> k v] || ![info exists o($k)]} {
        puts stderr "bad argument: $a"; exit 2
    }
    set o($k) $v
}
$defaultRNG seed [expr 4242 + 101 * $o(seed)]
proc stream {} {
    global o
    set r [new RNG]
    for {set i 0} {$i < $o(seed)} {incr i} { $r next-substream }
    return $r
}
set rStart [stream]; set rDelay [stream]; set rLoss [stream]

set ns [new Simulator]
set tf [open $o(trace) w]
set sf [open $o(samples) w]
set a [$ns node]; set b [$ns node]
set d [expr $o(rtt) / 2.0 * (1 + [$rDelay uniform -$o(jit) $o(jit)])]
$ns duplex-link $a $b $o(bw) $d DropTail
$ns queue-limit $a $b $o(qlim)
$ns queue-limit $b $a $o(qlim)
$ns trace-queue $a $b $tf
if {$o(reorder) > 0} {
    # Behind the bottleneck and its delay a classifier deals packets out in turn to 20011 slots, drawn at random: straight on, or
    # through one of 41 DelayLinks of late - spread to late + spread. (Not an ErrorModel: it marks packets, and DCCP drops those.)
    set last [[$ns link $a $b] link]
    set onward [$last target]
    set deal [new Classifier/MultiPath]
    $last target $deal
    for {set i 0} {$i <= 40} {incr i} {
        set line($i) [new DelayLink]
        $line($i) set bandwidth_ 1e12
        $line($i) set delay_ [expr $o(late) + $o(spread) * ($i - 20) / 20.0]
        $line($i) target $onward
        set gate($i) [new Queue/DropTail]
        $gate($i) set limit_ 1000
        $gate($i) target $line($i)
    }
    for {set i 0} {$i < 20011} {incr i} {
        if {[$rLoss uniform 0 1] < $o(reorder)} {
            $deal installNext $gate([expr int([$rLoss uniform 0 41])])
        } else {
            $deal installNext $onward
        }
    }
}
if {$o(loss) > 0} {
    set u [new RandomVariable/Uniform]
    $u use-rng $rLoss
    set em [new ErrorModel]
    $em unit pkt; $em set rate_ $o(loss); $em ranvar $u
    $ns link-lossmodel $em $a $b
}
if {$o(agent) eq "tfrc"} {
    set snd [new Agent/TFRC]
    set rcv [new Agent/TFRCSink]
    # the agent adds headersize_ (32 bytes) to packetSize_ on the wire
    $snd set packetSize_ [expr $o(wire) - 32]
    $rcv set printLoss_ 1
} else {
    set snd [new Agent/DCCP/TFRC]
    set rcv [new Agent/DCCP/TFRC]
    set s [expr $o(wire) - 32]    ;# DCCP-Data: 32 bytes of headers; DataAck: 40-44
    foreach x [list $snd $rcv] {
        $x set packetSize_ $s
        $x set s_s_ $s
        $x set r_s_ $s
        $x set s_initial_x_ $s
        $x set use_ecn_local_ 0
        $x set use_ecn_remote_ 0
    }
}
$ns attach-agent $a $snd
$ns attach-agent $b $rcv
$ns connect $snd $rcv
if {$o(agent) ne "tfrc"} { $ns at 0.0 "$rcv listen" }
set app [new Application/FTP]
$app attach-agent $snd

proc sample {} {
    global ns o snd rcv sf
    if {$o(agent) eq "tfrc"} {
        puts $sf "[$ns now] [expr [$snd set rate_] * 8] - -"
    } else {
        puts $sf "[$ns now] [expr [$snd set s_x_] * 8] [$snd set s_p_] [$snd set s_rtt_]"
    }
    $ns at [expr [$ns now] + 0.5] sample
}
set t0 [expr 0.1 + [$rStart uniform 0 1]]
$ns at $t0 "$app start"
$ns at [expr $t0 + $o(warm)] sample
$ns at [expr $t0 + $o(warm) + $o(dur)] { $ns flush-trace; close $tf; close $sf; exit 0 }
puts "T0 $t0"
$ns run
