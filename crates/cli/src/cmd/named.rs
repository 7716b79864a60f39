//! Paths that are called as the user says.

use super::paths::{self, Plan};
use crate::args::values::Remote;
use crate::args::via::Via;
use crate::failure::{Failure, Outcome};

/// [`paths::pair`], and the names and limits that `--via` gives.
pub(crate) fn pair(via: &[Via], to: &[Remote]) -> Outcome<Vec<Plan>> {
    let at: Vec<String> = via.iter().map(|via| via.at.clone()).collect();
    let mut plans = paths::pair(&at, to)?;
    for (nth, plan) in plans.iter_mut().enumerate() {
        let own = if via.len() == 1 { via.first() } else { via.get(nth) };
        plan.max = own.and_then(|via| via.max);
        let Some(Via { at, name: Some(name), .. }) = own else { continue };
        // One network to several addresses is not told apart by its name.
        plan.name = match plan.name.strip_prefix(at.as_str()) {
            _ if via.len() > 1 || to.len() == 1 => name.clone(),
            Some(rest) => format!("{name}{rest}"),
            None => format!("{name} to {}", plan.name),
        };
    }
    for (nth, plan) in plans.iter().enumerate() {
        if plans[..nth].iter().any(|other| other.name == plan.name) {
            return Err(Failure::usage(format!("two paths are called {}", plan.name), "give each a name of its own"));
        }
    }
    Ok(plans)
}

/// The same where this end cannot hold back what it sends by path. `why`: in words.
pub(crate) fn unlimited(via: &[Via], to: &[Remote], why: &str) -> Outcome<Vec<Plan>> {
    refuse_limits(via, why)?;
    pair(via, to)
}

/// A limit that would not be kept is an error.
pub(crate) fn refuse_limits(via: &[Via], why: &str) -> Outcome {
    if let Some(Via { at, .. }) = via.iter().find(|via| via.max.is_some()) {
        return Err(Failure::usage(
            format!("--via {at}?max= has no effect here: {why}"),
            format!("leave max= out; `send` and `encode` keep to it: --via '{at}?max=5mbit'"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::values::remote;
    use crate::args::via::via;

    fn names(vias: &str, to: &str) -> Result<Vec<String>, String> {
        let vias: Vec<Via> = vias.split(',').map(|text| via(text).unwrap()).collect();
        let to: Vec<Remote> = to.split(',').map(|text| remote(text).unwrap()).collect();
        pair(&vias, &to).map(|plans| plans.into_iter().map(|plan| plan.name).collect()).map_err(|e| e.to_string())
    }

    #[test]
    fn names_of_networks_stand_for_them() {
        assert_eq!(names("wlan0?name=Hotel,wwan0", "a:1").unwrap(), ["Hotel", "wwan0"]);
        assert_eq!(names("wwan0?name=O2", "a:1").unwrap(), ["O2"]);
        assert_eq!(names("wwan0?name=O2", "a:1,b:1").unwrap(), ["O2 to a:1", "O2 to b:1"]);
        assert_eq!(names("wlan0?name=x,wwan0?name=O2", "a:1,b:1").unwrap(), ["x", "O2"]);
        assert_eq!(names("lo?name=x,lo?name=O2", "a:1,b:1").unwrap(), ["x", "O2"]);
        assert!(names("wlan0?name=O2,wwan0?name=O2", "a:1").unwrap_err().contains("two paths are called O2"));
    }
}
