//! Any text as a scenario: it is good, or an error names what is wrong, and what is good can be built.

use braidcast_lab::experiment::Experiment;
use braidcast_lab::plan::{Listeners, Run};
use braidcast_lab::{Job, Request, Scenario};
use std::path::Path;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    match Scenario::read("fuzz.toml", text, Path::new("/nowhere")) {
        Ok(scenario) => {
            let _ = Job::new(&scenario, &Request::default());
            let Some(experiment) = Experiment::find(&scenario.experiment) else { return };
            let (points, listeners) = (scenario.points().unwrap_or_default(), Listeners::new());
            for point in points.iter().take(3) {
                let plan =
                    (experiment.build)(&Run { point, seed: 1, duration: scenario.duration, listeners: &listeners });
                assert!(plan.paths.iter().flat_map(|path| &path.links).all(|&link| link < plan.links.len()));
            }
        }
        Err(wrong) => assert!(wrong.place.starts_with("fuzz.toml") && !wrong.what.is_empty(), "{wrong:?}"),
    }
}
