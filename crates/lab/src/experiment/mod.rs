//! The code of the experiments: how hosts are put together, and what is measured when the run is over.

mod admission;
mod blocking;
mod conference;
mod datagrams;
mod emission;
mod encoder;
mod equation;
mod failover;
mod fairness;
mod freeze;
mod head_of_line;
mod late;
mod live;
mod model;
mod partial_reliability;
mod playable;
mod progression;
mod quality;
mod rates;
mod reordering;
mod rtt;
mod scheduling;
mod selection;
mod stalls;
mod transfer;
mod voice;

use crate::plan::{Done, Plan, Run};

/// A value measured in one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// The value.
    pub value: f64,
}

/// A curve measured in one run; only that of the first seed is kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// Label of the horizontal axis, with its unit.
    pub x: &'static str,
    /// Label of the vertical axis, with its unit.
    pub y: &'static str,
    /// The points, by x.
    pub points: Vec<[f64; 2]>,
}

/// The results of one run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measures {
    /// Values.
    pub metrics: Vec<Metric>,
    /// Curves.
    pub curves: Vec<Curve>,
}

impl Measures {
    /// Adds a value.
    pub fn metric(&mut self, name: impl Into<String>, unit: &'static str, value: f64) {
        self.metrics.push(Metric { name: name.into(), unit, value });
    }
}

/// Code that scenarios name.
#[derive(Debug)]
pub struct Experiment {
    /// Its name in `experiment = "NAME"`.
    pub name: &'static str,
    /// What it measures, for `lab list` and the manual.
    pub text: &'static str,
    /// `true` if what it measures are moments of a run that is as long as the scenario says, so that
    /// there is no other length.
    pub fixed_length: bool,
    /// Puts a run together.
    pub build: fn(&Run<'_>) -> Plan,
    /// Measures a run that is over.
    pub measure: fn(&Run<'_>, &Done<'_>) -> Measures,
}

impl Experiment {
    /// Every experiment.
    pub const ALL: &'static [Self] = &[
        transfer::EXPERIMENT,
        fairness::EXPERIMENT,
        progression::EXPERIMENT,
        blocking::EXPERIMENT,
        rtt::EXPERIMENT,
        partial_reliability::EXPERIMENT,
        failover::EXPERIMENT,
        head_of_line::EXPERIMENT,
        playable::EXPERIMENT,
        equation::EXPERIMENT,
        reordering::EXPERIMENT,
        quality::EXPERIMENT,
        admission::EXPERIMENT,
        rates::EXPERIMENT,
        voice::EXPERIMENT,
        late::EXPERIMENT,
        model::EXPERIMENT,
        conference::EXPERIMENT,
        emission::EXPERIMENT,
        encoder::EXPERIMENT,
        scheduling::EXPERIMENT,
        selection::EXPERIMENT,
        live::EXPERIMENT,
    ];

    /// The experiment of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|it| it.name == name)
    }
}
