//! Which paths `--via` and `--to` make.

use crate::args::values::Remote;
use crate::failure::{Failure, Outcome};
use braidcast_driver::Via;

/// A path as it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// Its local end.
    pub(crate) via: Via,
    /// Its remote end.
    pub(crate) to: Remote,
    /// What reports call it; no two paths of a command share a name.
    pub(crate) name: String,
    /// The maximum that is sent over it, bits per second.
    pub(crate) max: Option<u64>,
}

/// Pairs every `--via` with every `--to` if one of them is single, or the n-th with the n-th.
pub(crate) fn pair(via: &[String], to: &[Remote]) -> Outcome<Vec<Plan>> {
    let given = via.iter().map(|v| via_of(v)).collect::<Outcome<Vec<Via>>>()?;
    let vias = if given.is_empty() { vec![Via::Any] } else { given };
    let pairs: Vec<(Via, &Remote)> = match (vias.as_slice(), to) {
        ([one], many) => many.iter().map(|to| (one.clone(), to)).collect(),
        (many, [one]) => many.iter().map(|via| (via.clone(), one)).collect(),
        (many, others) if many.len() == others.len() => many.iter().cloned().zip(others).collect(),
        (many, others) => {
            return Err(Failure::usage(
                format!("{} --via and {} --to do not pair up", many.len(), others.len()),
                "give one --via or one --to, which then goes with each of the others, or the same number of both",
            ));
        }
    };
    for (i, pair) in pairs.iter().enumerate() {
        if pairs[..i].contains(pair) {
            return Err(Failure::usage(
                format!("the path from {} to {} is there twice", pair.0, pair.1),
                "leave one of them out, or give --via another interface",
            ));
        }
    }
    let by_via = pairs.iter().enumerate().all(|(i, (via, _))| pairs[..i].iter().all(|(other, _)| other != via));
    let by_to = pairs.iter().enumerate().all(|(i, (_, to))| pairs[..i].iter().all(|(_, other)| other != to));
    let name = |via: &Via, to: &Remote| match via {
        Via::Any => to.to_string(),
        via if by_via && (pairs.len() > 1 || !by_to) => via.to_string(),
        _ if by_to && pairs.len() > 1 => to.to_string(),
        via => format!("{via} to {to}"),
    };
    Ok(pairs
        .iter()
        .map(|(via, to)| Plan { name: name(via, to), via: via.clone(), to: (*to).clone(), max: None })
        .collect())
}

/// An address, or else the name of an interface, which may come later.
fn via_of(text: &str) -> Outcome<Via> {
    /// `IFNAMSIZ` of `linux/if.h`, without the byte at its end.
    const LONGEST: usize = 15;
    let Ok(via) = text.parse::<Via>();
    let never = matches!(&via, Via::Device(name) if name.is_empty() || name.len() > LONGEST
        || name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace()));
    if never {
        let what = format!("--via '{text}' is neither an address nor the name of an interface");
        return Err(Failure::usage(what, "write for example --via wlan0 or --via 192.0.2.1; `ip addr` lists them"));
    }
    Ok(via)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::values::remote;

    fn names(via: &[&str], to: &[&str]) -> Result<Vec<String>, String> {
        let via: Vec<String> = via.iter().map(|v| (*v).to_owned()).collect();
        let to: Vec<Remote> = to.iter().map(|t| remote(t).unwrap()).collect();
        pair(&via, &to).map(|plans| plans.into_iter().map(|p| p.name).collect()).map_err(|e| e.to_string())
    }

    #[test]
    fn one_goes_with_each_and_equal_numbers_go_in_order() {
        assert_eq!(names(&[], &["a:1", "b:1"]).unwrap(), ["a:1", "b:1"]);
        assert_eq!(names(&["wlan0"], &["a:1", "b:1"]).unwrap(), ["a:1", "b:1"]);
        assert_eq!(names(&["wlan0", "wwan0"], &["a:1"]).unwrap(), ["wlan0", "wwan0"]);
        assert_eq!(names(&["wlan0", "192.0.2.1"], &["a:1", "b:1"]).unwrap(), ["wlan0", "192.0.2.1"]);
        assert_eq!(names(&["wlan0"], &["a:1"]).unwrap(), ["wlan0 to a:1"]);
        assert_eq!(names(&["wlan0", "wlan0", "wwan0"], &["a:1", "b:1", "a:1"]).unwrap()[1], "wlan0 to b:1");
    }

    #[test]
    fn what_can_be_no_interface_is_refused() {
        for via in ["", "wlan0 wlan1", "a/b", "192.0.2.1:9000", "an-interface-of-16"] {
            assert!(names(&[via], &["a:1"]).unwrap_err().contains("neither"), "{via}");
        }
        assert!(names(&["enx001122334455"], &["a:1"]).is_ok());
    }

    #[test]
    fn other_numbers_and_the_same_path_twice_are_refused() {
        assert!(names(&["wlan0", "wwan0"], &["a:1", "b:1", "c:1"]).unwrap_err().contains("2 --via and 3 --to"));
        assert!(names(&[], &["a:1", "a:1"]).unwrap_err().contains("there twice"));
    }
}
