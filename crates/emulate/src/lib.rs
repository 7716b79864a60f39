//! A link in real time between UDP ports, without root or kernel modules: the simulator's own
//! [`Link`](braidcast_sim::link::Link)s between real sockets.
//!
//! On Linux the sockets are the driver's. Elsewhere a thread reads each of them, ECN bits are not
//! carried over, and there is no [`Mesh`].

#[cfg(target_os = "linux")]
mod driven;
#[cfg(target_os = "linux")]
mod fabric;
#[cfg(target_os = "linux")]
mod mesh;
mod relay;
mod report;
#[cfg(test)]
mod tests;
#[cfg(any(test, not(target_os = "linux")))]
mod threaded;

#[cfg(target_os = "linux")]
pub use driven::{Emulator, is_local};
#[cfg(target_os = "linux")]
pub use mesh::{Mesh, MeshLink};
pub use report::{DirectionReport, EmulatorReport};
#[cfg(not(target_os = "linux"))]
pub use threaded::{Emulator, is_local};

/// Why [`Emulator::run`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// The time that the caller gave has come.
    Until,
    /// A signal came, after [`Emulator::catch_interrupts`].
    Interrupt,
}
