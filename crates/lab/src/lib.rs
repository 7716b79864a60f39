//! Experiments on networks: scenario files, runs over seeds on all cores, statistics, and references beside our values.
//!
//! A [`Scenario`] is a TOML file (`scenarios/`) that names the code of an
//! [`Experiment`](experiment::Experiment); a [`Job`] runs its points over seeds and returns
//! [`Results`](results::Results). `docs/lab.md` says how to write both.

pub mod check;
pub mod clip;
pub mod experiment;
pub mod host;
mod judge;
pub mod manual;
mod multihomed;
mod oracle;
pub mod plan;
mod plots;
#[cfg(target_os = "linux")]
mod real_time;
#[cfg(not(target_os = "linux"))]
#[path = "no_real_time.rs"]
mod real_time;
mod receive_buffer;
pub mod recording;
mod reference;
pub mod report;
pub mod results;
mod run;
pub mod scenario;
mod simulate;
mod stats;
pub mod survey;
mod x264;

pub use run::{Job, Request, run_all};
pub use scenario::{Scenario, Wrong};
pub use stats::mean_ci95;
pub use x264::X264Sizes;
