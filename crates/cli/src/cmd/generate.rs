//! `braidcast generate`: what packages and the manual contain of the program itself.

use crate::args::{Cli, Common, GenerateArgs, Generated};
use crate::failure::{Failure, Outcome};
use crate::out::text;
use braidcast_lab::manual;
use clap::CommandFactory;

pub(super) fn run(args: &GenerateArgs, _common: &Common) -> Outcome {
    match &args.what {
        Generated::Man { dir } => clap_mangen::generate_to(Cli::command(), dir).map_err(|e| {
            Failure::new(format!("cannot write man pages to {}: {e}", dir.display()), "make the folder first")
        }),
        Generated::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "braidcast", &mut script);
            text::print(String::from_utf8_lossy(&script).trim_end())
        }
        Generated::Reference => {
            let page =
                manual::markdown().map_err(|wrong| Failure::new(wrong.to_string(), "please report this as a bug"))?;
            text::print(page.trim_end())
        }
    }
}
