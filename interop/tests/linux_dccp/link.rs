//! Emulated links, all in the guest: `netem` at both ends.

use braidcast_interop::linux::Guest;

/// Which link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ends {
    /// Between us and the guest.
    Ours,
    /// That, and one between the guest and a namespace `far` in it, at 10.99.0.2.
    OursAndFar,
}

/// `netem` works on what leaves, so what comes from us leaves through `ifb0` first. (The kernel's module may make it unasked.)
const OURS: &str = "
ip link add ifb0 type ifb || ip link show ifb0
ip link set ifb0 up
tc qdisc add dev net1 ingress
tc filter add dev net1 parent ffff: matchall action mirred egress redirect dev ifb0
";

const FAR: &str = "
ip netns add far
ip link add va type veth peer name vb netns far
ip addr add 10.99.0.1/24 dev va
ip link set va up
ip -n far addr add 10.99.0.2/24 dev vb
ip -n far link set vb up
ip -n far link set lo up
";

fn run(guest: &Guest, script: &str) {
    let (said, status) = guest.shell(&format!("set -e; exec 2>&1\n{script}"));
    assert!(status.success(), "{said}");
}

/// Makes the links, with nothing in their way.
pub(crate) fn prepare(guest: &Guest, ends: Ends) {
    run(guest, &[OURS, if ends == Ends::OursAndFar { FAR } else { "" }].concat());
}

/// What goes from us to the guest becomes like `netem`; what comes back meets nothing.
pub(crate) fn emulate_towards_guest(guest: &Guest, netem: &str) {
    run(guest, &format!("tc qdisc replace dev ifb0 root netem {netem}\ntc qdisc del dev net1 root || true\n"));
}

/// Both directions of the links become like `netem`.
pub(crate) fn emulate(guest: &Guest, ends: Ends, netem: &str) {
    let mut devices = vec!["tc qdisc replace dev net1", "tc qdisc replace dev ifb0"];
    if ends == Ends::OursAndFar {
        devices.extend(["tc qdisc replace dev va", "tc -n far qdisc replace dev vb"]);
    }
    run(guest, &devices.iter().map(|it| format!("{it} root netem {netem}\n")).collect::<String>());
}
