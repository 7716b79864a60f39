//! Experiments on networks: scenario files, runs over seeds on all cores, statistics, and references beside our values.

pub mod report;
pub mod results;
