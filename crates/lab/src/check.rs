//! Verdicts that are expected: a list that is kept with the sources, and what has changed since.
//!
//! An experiment of the list is run with fewer and shorter runs than it deserves. A verdict that is
//! another one then is tried again with other seeds, and has changed only if it is another one each
//! time. Each try has as many runs as the list says: with more, intervals are narrower, and what
//! the list calls "not distinguishable" would get another verdict though nothing changed.

use crate::results::{Outcome, Results, Verdict};
use crate::scenario::{Scenario, Wrong, did_you_mean};
use braidcast_sim::link::parse;
use core::fmt::Write as _;
use core::time::Duration;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How often a verdict that is another one is tried again, at most.
pub const FURTHER_TRIES: u32 = 4;

/// Runs at each point of an experiment that is new in a list, and how long each lasts at most.
const FIRST: (u32, Duration) = (4, Duration::from_secs(60));

/// What is expected of an experiment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Its name.
    pub experiment: String,
    /// Runs at each point, two at least.
    pub runs: u32,
    /// How long each run measures.
    pub duration: Duration,
    /// The verdict on each claim, by its words.
    pub claims: Vec<(Outcome, String)>,
}

/// A verdict that is another one than expected; none if there was no such claim, or is none now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The claim in words.
    pub claim: String,
    /// What was expected.
    pub expected: Option<Outcome>,
    /// What came out.
    pub found: Option<Outcome>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    runs: u32,
    duration: String,
    #[serde(default)]
    claims: Vec<(Outcome, String)>,
}

/// Reads a list, whose file is called `file` in messages; in the order of `lab list`.
///
/// # Errors
/// [`Wrong`], if it is no list, or an experiment that it names is none.
pub fn read(file: &str, text: &str) -> Result<Vec<Expected>, Wrong> {
    let entries: BTreeMap<String, Entry> = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let fix = "write [EXPERIMENT], runs, duration and claims = [[\"VERDICT\", \"CLAIM\"], …], or let `lab check --update` write it";
        Wrong::new(format!("{file}:{line}"), e.message().trim().replace('\n', ", "), fix)
    })?;
    let known: Vec<Scenario> = Scenario::all()?;
    let mut list = Vec::new();
    for (experiment, entry) in entries {
        let wrong = |what: String, fix: String| Wrong::new(format!("{file}: [{experiment}]"), what, fix);
        // A scenario that is not inside is named by its file, which is read when it is run.
        if !known.iter().any(|it| it.name == experiment) && !experiment.ends_with(".toml") {
            let fix = did_you_mean(&experiment, known.iter().map(|it| it.name.as_str()));
            return Err(wrong("there is no such experiment".to_owned(), fix));
        }
        if entry.runs < 2 {
            return Err(wrong(
                format!("runs = {}, but a single run has no verdict", entry.runs),
                "write 2 or more".to_owned(),
            ));
        }
        let duration = parse::duration(&entry.duration)
            .map_err(|e| wrong(e.to_string(), "write for example \"20s\"".to_owned()))?;
        list.push(Expected { runs: entry.runs, duration, claims: entry.claims, experiment });
    }
    sort(&mut list, &known);
    Ok(list)
}

/// In the order of `known`; then come those that are not inside.
fn sort(list: &mut [Expected], known: &[Scenario]) {
    let place = |it: &Expected| known.iter().position(|scenario| scenario.name == it.experiment);
    list.sort_by_cached_key(|it| (place(it).unwrap_or(usize::MAX), it.experiment.clone()));
}

/// Adds the experiment `name`, or that in the file `name`, to a list that does not have it: without claims, with no
/// more and no longer runs than the scenario has.
///
/// # Errors
/// [`Wrong`], if there is no such experiment.
pub fn add(list: &mut Vec<Expected>, name: &str) -> Result<(), Wrong> {
    let scenario = Scenario::find(name)?;
    let (runs, duration) = (FIRST.0.min(scenario.runs).max(2), FIRST.1.min(scenario.duration));
    list.push(Expected { experiment: name.to_owned(), runs, duration, claims: Vec::new() });
    sort(list, &Scenario::all()?);
    Ok(())
}

/// The list as text, which [`read`] takes.
pub fn write(list: &[Expected]) -> String {
    let mut text = "# The verdicts that `make lab-check` expects of few and short runs; `make lab-check-update` writes them anew.\n\
                    # What an experiment deserves is in its scenario, and what came of that in the report of `make lab`.\n"
        .to_owned();
    let quoted = |words: &str| toml::Value::String(words.to_owned()).to_string();
    for it in list {
        let seconds = it.duration.as_secs_f64();
        let _ =
            write!(text, "\n[{}]\nruns = {}\nduration = \"{seconds}s\"\nclaims = [\n", quoted(&it.experiment), it.runs);
        for (outcome, claim) in &it.claims {
            let _ = writeln!(text, "    [{}, {}],", quoted(outcome.words()), quoted(claim));
        }
        text += "]\n";
    }
    text
}

impl Expected {
    /// What `results` say instead; nothing if all is as expected.
    pub fn changed(&self, results: &Results) -> Vec<Changed> {
        let found = |claim: &str| results.verdicts.iter().find(|it| it.claim == claim).map(|it| it.outcome);
        let gone =
            self.claims.iter().filter(|(outcome, claim)| found(claim) != Some(*outcome)).map(|(outcome, claim)| {
                Changed { claim: claim.clone(), expected: Some(*outcome), found: found(claim) }
            });
        let is_listed = |claim: &str| self.claims.iter().any(|(_, known)| known == claim);
        let new = results.verdicts.iter().filter(|it| !is_listed(&it.claim));
        let new = new.map(|it| Changed { claim: it.claim.clone(), expected: None, found: Some(it.outcome) });
        gone.chain(new).collect()
    }

    /// The same with the verdict on each claim that most of `tries` came to; of two that came as
    /// often, the one that came first. What the first seeds happened to say would differ from most
    /// others.
    pub fn updated(&self, tries: &[&Results]) -> Self {
        let verdicts = || tries.iter().flat_map(|results| &results.verdicts);
        let times = |of: &Verdict| verdicts().filter(|it| it.claim == of.claim && it.outcome == of.outcome).count();
        let mut claims: Vec<(Outcome, String)> = Vec::new();
        for verdict in tries.first().into_iter().flat_map(|results| &results.verdicts) {
            let all = verdicts().filter(|it| it.claim == verdict.claim);
            // `max_by_key` returns the last of equals.
            let most = all.rev().max_by_key(|it| times(it)).unwrap_or(verdict);
            claims.push((most.outcome, most.claim.clone()));
        }
        Self { claims, ..self.clone() }
    }

    /// The command line that runs it as the list asks, from `seed` on.
    pub fn command(&self, seed: u64) -> String {
        format!(
            "braidcast lab run {} --runs {} --seed {seed} --duration {}s",
            self.experiment,
            self.runs,
            self.duration.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Verdict;

    const LIST: &str = "[fairness]\nruns = 3\nduration = \"20s\"\nclaims = [[\"not distinguishable\", \"a\"], [\"mixed\", \"b \\\"quoted\\\"\"]]\n";

    fn results(verdicts: &[(Outcome, &str)]) -> Results {
        let verdict = |(outcome, claim): &(Outcome, &str)| Verdict {
            claim: (*claim).to_owned(),
            source: String::new(),
            headline: None,
            outcome: *outcome,
            evidence: String::new(),
            reason: String::new(),
            inside: Vec::new(),
        };
        let empty = serde_json::json!({
            "experiment": "fairness", "title": "", "source": "", "text": "", "seed": 1, "runs": 3, "version": "", "duration_s": 20.0,
            "rows": [], "series": [], "verdicts": [], "differences": [], "plots": [], "lost_runs": [],
        });
        let results: Results = serde_json::from_value(empty).unwrap();
        Results { verdicts: verdicts.iter().map(verdict).collect(), ..results }
    }

    #[test]
    fn a_list_is_read_as_it_is_written() {
        let list = read("x.toml", LIST).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            list[0].claims,
            [(Outcome::NotDistinguishable, "a".to_owned()), (Outcome::Mixed, "b \"quoted\"".to_owned())]
        );
        assert_eq!((list[0].runs, list[0].duration), (3, Duration::from_secs(20)));
        assert_eq!(read("x.toml", &write(&list)).unwrap(), list);
    }

    #[test]
    fn a_verdict_that_is_another_one_a_new_claim_and_one_that_is_gone_are_changes() {
        let list = read("x.toml", LIST).unwrap_or_else(|e| panic!("{e}"));
        let same = results(&[(Outcome::Mixed, "b \"quoted\""), (Outcome::NotDistinguishable, "a")]);
        assert_eq!(list[0].changed(&same), []);
        let other = results(&[(Outcome::Confirmed, "a"), (Outcome::Refuted, "c")]);
        let changed: Vec<_> = list[0].changed(&other).into_iter().map(|it| (it.claim, it.expected, it.found)).collect();
        let wanted = [
            ("a", Some(Outcome::NotDistinguishable), Some(Outcome::Confirmed)),
            ("b \"quoted\"", Some(Outcome::Mixed), None),
            ("c", None, Some(Outcome::Refuted)),
        ];
        assert_eq!(changed, wanted.map(|(claim, expected, found)| (claim.to_owned(), expected, found)));
        assert_eq!(list[0].updated(&[&other]).changed(&other), []);
        assert_eq!(list[0].command(4), "braidcast lab run fairness --runs 3 --seed 4 --duration 20s");
    }

    #[test]
    fn a_list_has_what_most_tries_came_to_or_the_first_of_two_that_are_as_many() {
        let list = read("x.toml", LIST).unwrap_or_else(|e| panic!("{e}"));
        let tries = [
            [(Outcome::Confirmed, "a"), (Outcome::Refuted, "b")],
            [(Outcome::Mixed, "a"), (Outcome::Mixed, "b")],
            [(Outcome::Mixed, "a"), (Outcome::Mixed, "b")],
            [(Outcome::Confirmed, "a"), (Outcome::Mixed, "b")],
        ];
        let tries = tries.map(|it| results(&it));
        let updated = list[0].updated(&tries.iter().collect::<Vec<_>>());
        assert_eq!(updated.claims, [(Outcome::Confirmed, "a".to_owned()), (Outcome::Mixed, "b".to_owned())]);
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_line() {
        for (text, place) in [
            ("[fairness]\nruns = 3\n", "x.toml:1"),
            ("[fairness]\nruns = 1\nduration = \"20s\"\n", "x.toml: [fairness]"),
            ("[fairnes]\nruns = 2\nduration = \"20s\"\n", "x.toml: [fairnes]"),
            ("[fairness]\nruns = 2\nduration = \"20\"\n", "x.toml: [fairness]"),
            ("[fairness]\nruns = 2\nduration = \"20s\"\nclaims = [[\"perhaps\", \"a\"]]\n", "x.toml:4"),
        ] {
            let wrong = read("x.toml", text).unwrap_err();
            assert_eq!(wrong.place, place, "{text}: {wrong}");
            assert!(!wrong.fix.is_empty());
        }
    }
}
