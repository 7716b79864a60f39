//! What is told as a dict.

use braidcast_socket::{Options, RateReport};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(crate) fn transport_dict<'py>(
    py: Python<'py>,
    options: &Options,
    fec: Option<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("scheduler", options.paths.scheduler.to_string())?;
    dict.set_item("congestion", options.congestion.algorithm.to_string())?;
    dict.set_item("queue", options.queue.method.map(|it| it.to_string()))?;
    dict.set_item("reinject", options.redundancy.reinject)?;
    dict.set_item("fec", fec)?;
    Ok(dict)
}

pub(crate) fn rate_dict<'py>(py: Python<'py>, report: &RateReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("next_frame_bits", report.next_frame_bits)?;
    dict.set_item("rate_bits_per_second", report.rate)?;
    dict.set_item("smoothed_bits_per_second", report.smoothed_rate)?;
    dict.set_item("is_floor", report.is_floor)?;
    dict.set_item("below_least", report.below_least)?;
    dict.set_item("waiting_ms", report.waiting_ms)?;
    dict.set_item("waiting_frames", report.waiting_frames)?;
    dict.set_item("frame_interval_ms", report.frame_interval_ms)?;
    Ok(dict)
}
