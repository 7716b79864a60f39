//! `braidcast lab`: experiments by name.

mod check;
mod clip;
mod inside;
mod list;
mod progress;
mod run;
mod show;
mod store;
mod survey;

use crate::args::{Common, LabArgs, LabCommand};
use crate::failure::{Failure, Outcome};
use braidcast_lab::Wrong;

pub(super) fn run(args: &LabArgs, common: &Common) -> Outcome {
    match &args.command {
        LabCommand::List(args) => list::run(args, common),
        LabCommand::Run(args) => run::run(args, common),
        LabCommand::Report(args) => store::report(args, common),
        LabCommand::Check(args) => check::run(args, common),
        LabCommand::Clip(args) => clip::run(args),
        LabCommand::Survey(args) => survey::run(args, common),
    }
}

/// What is wrong with a scenario, as wrong use.
fn refused(wrong: &Wrong) -> Failure {
    Failure::usage(wrong.to_string(), wrong.fix.clone())
}
