//! Values of the flags that choose one path: which path is used, when it is abandoned, and what
//! carries the packets it lost.

use braidcast_mpath::{PathSelection, RetransmissionPolicy};
use braidcast_sim::link::parse;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::fmt;
use std::time::Duration;

/// Which one path carries everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnePath {
    /// The first one, while it works.
    Primary,
    /// The best one by this.
    Best(PathSelection),
}

impl OnePath {
    pub(crate) const fn selection(self) -> Option<PathSelection> {
        match self {
            Self::Primary => None,
            Self::Best(by) => Some(by),
        }
    }
}

/// The name of a way to choose one path; help lists them all.
pub(crate) fn selection() -> impl TypedValueParser<Value = OnePath> {
    const PRIMARY: &str = "primary";
    let names = core::iter::once(PRIMARY).chain(PathSelection::ALL.map(|(name, _)| name));
    PossibleValuesParser::new(names).try_map(|name| match name.as_str() {
        PRIMARY => Ok(OnePath::Primary),
        name => name.parse().map(OnePath::Best),
    })
}

/// The name of a retransmission policy; help lists them all.
pub(crate) fn retransmission() -> impl TypedValueParser<Value = RetransmissionPolicy> {
    let names = RetransmissionPolicy::ALL.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<RetransmissionPolicy>())
}

/// After how many timeouts in a row a path is avoided; `None`: not before it has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Avoided(pub(crate) Option<u32>);

impl fmt::Display for Avoided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(after) => after.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// A count of timeouts, or `off`.
pub(crate) fn avoided(text: &str) -> Result<Avoided, String> {
    if text == "off" { Ok(Avoided(None)) } else { timeouts(text).map(|after| Avoided(Some(after))) }
}

/// A count of timeouts in a row, which double each time: 20 of them are weeks.
pub(crate) fn timeouts(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count <= 20);
    count.ok_or_else(|| "timeouts in a row are 0 to 20".into())
}

/// A pause or a difference that may be nothing, up to a minute.
pub(crate) fn pause(text: &str) -> Result<Duration, String> {
    within(text, Duration::ZERO..=Duration::from_secs(60), "a time here is 0s to 60s")
}

/// Between two measurements: less than 100 ms would be a load of its own.
pub(crate) fn probing(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100)..=Duration::from_secs(60), "paths are measured each 100ms to 60s")
}

fn within(text: &str, range: std::ops::RangeInclusive<Duration>, limits: &str) -> Result<Duration, String> {
    match parse::duration(text) {
        Ok(time) if range.contains(&time) => Ok(time),
        Ok(_) => Err(limits.into()),
        Err(_) if text.starts_with('-') => Err(format!("{limits}, and not below 0")),
        Err(error) => Err(error.to_string()),
    }
}
