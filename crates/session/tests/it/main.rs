//! Tests of the public interface, in one binary: linked once, and run side by side.

mod account;
mod besieged;
mod chaos;
mod common;
mod dial;
mod early;
mod elementary;
mod least;
mod live;
mod marking;
mod policed;
mod queue;
mod rate;
mod reach;
mod recovery;
mod redundancy;
mod reliable;
mod rights;
mod serve;
mod sessions;
mod tunnel;
mod tunnel_sctp;
mod unruly;
mod weak_link;
