//! The relay and its members, with every datagram that goes between them.

mod besieged;
mod common;
mod places;
