//! What `send`, `receive` and `perf` share.

use super::security::Security;
pub(crate) use crate::failure::broken;
use crate::failure::{Failure, Outcome};
use braidcast_core::Rng;
use braidcast_driver::{Driver, entropy};
use braidcast_session::{PathReport, Report};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A driver that Ctrl-C reaches.
pub(crate) fn driver() -> Outcome<Driver> {
    let mut driver = Driver::new().map_err(|e| broken(&e))?;
    driver.catch_interrupts().map_err(|e| broken(&e))?;
    Ok(driver)
}

/// Randomness: repeatable from `seed`, else from the system.
pub(crate) fn rng(seed: Option<u64>) -> Outcome<Rng> {
    match seed {
        Some(seed) => Ok(Rng::from_seed(seed)),
        None => entropy().map(Rng::from_entropy).map_err(|e| {
            Failure::new(format!("the system has no randomness to give: {e}"), "give --seed, for tests only")
        }),
    }
}

/// The protocol as commands use it that measure it.
pub(crate) fn sctp_options(security: &Security) -> braidcast_sctp::Options {
    let options = braidcast_sctp::Options::live().with(|it| it.security = security.options.clone());
    options.with(|options| options.limits.skip_tsns = true)
}

/// A report whose paths carry the names that the user knows.
pub(crate) struct Named<'a> {
    pub(crate) report: &'a Report,
    /// One for each path.
    pub(crate) names: Vec<String>,
}

#[derive(Serialize)]
struct NamedPath<'a> {
    name: &'a str,
    #[serde(flatten)]
    path: &'a PathReport,
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.report;
        let paths = report.paths.iter().zip(&self.names).map(|(path, name)| NamedPath { name, path });
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seconds", &crate::out::json::round(report.seconds))?;
        map.serialize_entry("kinds", &report.kinds)?;
        map.serialize_entry("paths", &paths.collect::<Vec<_>>())?;
        map.serialize_entry("clock_jumps", &report.clock_jumps)?;
        map.serialize_entry("restarts", &report.restarts)?;
        map.serialize_entry("malformed", &report.malformed)?;
        map.serialize_entry("acked_bytes", &report.acked_bytes)?;
        map.serialize_entry("redundancy", &report.redundancy)?;
        map.serialize_entry("recovered_chunks", &report.recovered_chunks)?;
        map.serialize_entry("security", &report.security)?;
        map.end()
    }
}
