//! `braidcast lab`: experiments by name.

mod check;
mod clip;
mod inside;
mod progress;
mod run;
mod show;
mod store;

use crate::args::{Common, LabArgs, LabCommand};
use crate::failure::{Failure, Outcome};
use crate::out::{json, text};
use braidcast_lab::{Scenario, Wrong};
use serde::Serialize;

pub(super) fn run(args: &LabArgs, common: &Common) -> Outcome {
    match &args.command {
        LabCommand::List => list(common),
        LabCommand::Run(args) => run::run(args, common),
        LabCommand::Report(args) => store::report(args, common),
        LabCommand::Check(args) => check::run(args, common),
        LabCommand::Clip(args) => clip::run(args),
    }
}

/// What is wrong with a scenario, as wrong use.
fn refused(wrong: &Wrong) -> Failure {
    Failure::usage(wrong.to_string(), wrong.mend.clone())
}

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    title: &'a str,
    source: &'a str,
    variants: Vec<&'a str>,
    runs: u32,
}

impl<'a> Listed<'a> {
    fn new(it: &'a Scenario) -> Self {
        let variants = it.variants.iter().map(|variant| variant.name.as_str()).collect();
        Self { name: &it.name, title: &it.title, source: &it.source, variants, runs: it.runs }
    }
}

#[derive(Serialize)]
struct Listing<'a> {
    experiments: Vec<Listed<'a>>,
}

fn list(common: &Common) -> Outcome {
    let all = Scenario::all().map_err(|e| refused(&e))?;
    if common.json {
        return json::print("lab list", &Listing { experiments: all.iter().map(Listed::new).collect() });
    }
    let width = all.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let source = |it: &Scenario| if it.source.is_empty() { String::new() } else { format!(" ({})", it.source) };
    let lines: Vec<_> = all.iter().map(|it| format!("{:width$}  {}{}", it.name, it.title, source(it))).collect();
    text::print(&lines.join("\n"))
}
