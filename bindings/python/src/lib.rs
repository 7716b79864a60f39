//! The native half of the Python package `braidcast`: what `python/braidcast/__init__.py` stands
//! on.

mod descriptors;
mod dicts;
mod errors;
mod keys;
mod lab;
mod media;
mod socket;

/// The module as Python sees it.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::lab::{find_scenario, mean_ci95, run_scenario, scenario_names};
    #[pymodule_export]
    use super::media::{MediaEvent, MediaUnit, Receiver, Sender};
    #[pymodule_export]
    use super::socket::{Event, Socket, fingerprint};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
