//! The native half of the Python package `braidcast`: what `python/braidcast/__init__.py` stands on.

mod lab;
mod socket;

use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(braidcast, Error, PyException, "What went wrong, in words.");
create_exception!(braidcast, NoConnection, Error, "There is no such connection, or it is over.");

/// The module as Python sees it.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::lab::{find_scenario, mean_ci95, run_scenario, scenario_names};
    #[pymodule_export]
    use super::socket::{Event, Socket};
    #[pymodule_export]
    use super::{Error, NoConnection};
}
