//! Two ends that nobody can call meet at a relay, which passes on what it cannot read.
//!
//! Both ends send to the relay's one UDP port. One opens a circuit ([`Side::Owner`]), others join it
//! by its number ([`Side::Guest`]), which a ticket brings. Before each packet stand 8 bytes: a tag of
//! 6 by which the relay knows who sends, and 2 that say to which of the other side's legs. The relay
//! puts that leg's tag and the sender's leg in their place. So each address of a sender is a path of
//! its own, and the protocol above needs to know nothing: [`Legs`] stands between it and the sockets,
//! and each leg of the other side has an address of its own there ([`address_of`]).
//!
//! [`Relay`] is the machine in the middle. It holds nothing of who has not proved its address,
//! sends no stranger more than came, and passes on nothing to an address that did not ask for it.
//!
//! Nothing here does I/O, reads a clock, or signs: [`Keys`] and [`Signer`] do, for lists of who may
//! open circuits.

mod address;
mod books;
mod client;
mod cookie;
mod legs;
mod members;
mod over;
mod rate;
mod server;
mod straight;
mod ticket;
mod wire;

pub use address::{address_of, leg_of};
pub use books::{Admission, ClientReport, Keys, RelayOptions, RelayReport, Rights};
pub use client::{Client, ClientEvent, Credentials, Signer};
pub use legs::{LegEvent, Legs};
pub use over::Over;
pub use rate::Quota;
pub use server::Relay;
pub use ticket::{Reach, Ticket, TicketError};
pub use wire::{
    Circuit, Control, HEADER, Header, Leg, Malformed, Observed, OwnerSecret, Place, Proof, Reason, Registration, Side,
    Tag, signed,
};
