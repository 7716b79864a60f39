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

const FAR: &str = "
ip netns add far
ip link add va type veth peer name vb netns far
ip addr add 10.99.0.1/24 dev va
ip link set va up
ip -n far addr add 10.99.0.2/24 dev vb
ip -n far link set vb up
ip -n far link set lo up
";

/// Makes the links, without impairments.
pub(crate) fn prepare(guest: &Guest, ends: Ends) {
    guest.take_in_through_ifb0();
    if ends == Ends::OursAndFar {
        guest.run(FAR);
    }
}

/// What goes from us to the guest becomes like `netem`; what comes back meets nothing.
pub(crate) fn emulate_towards_guest(guest: &Guest, netem: &str) {
    guest.run(&format!("tc qdisc replace dev ifb0 root netem {netem}\ntc qdisc del dev net1 root || true\n"));
}

/// Both directions of the links become like `netem`.
pub(crate) fn emulate(guest: &Guest, ends: Ends, netem: &str) {
    let mut devices = vec!["tc qdisc replace dev net1", "tc qdisc replace dev ifb0"];
    if ends == Ends::OursAndFar {
        devices.extend(["tc qdisc replace dev va", "tc -n far qdisc replace dev vb"]);
    }
    guest.run(&devices.iter().map(|it| format!("{it} root netem {netem}\n")).collect::<String>());
}
