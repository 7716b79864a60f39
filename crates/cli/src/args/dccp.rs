//! How DCCP's congestion control is named.

use braidcast_dccp::{Ccid, Options, Variant};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::fmt;

/// A CCID, for CCID 4 with the variant of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Congestion {
    ccid: Ccid,
    ccid4: Variant,
}

impl Congestion {
    /// All names: the CCIDs', then those of CCID 4's variants.
    fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let plain = Ccid::ALL.into_iter().map(|(name, ccid)| (name, Self { ccid, ccid4: Variant::TfrcSp }));
        let variants = Variant::ALL.into_iter().filter(|(name, _)| name.starts_with("ccid4-"));
        plain.chain(variants.map(|(name, ccid4)| (name, Self { ccid: Ccid::Four, ccid4 })))
    }

    /// Options of an end that uses this for both directions and nothing else.
    pub(crate) fn options(self) -> Options {
        let mut options = Options { ccids: vec![self.ccid], ..Options::default() };
        options.tfrc.ccid4 = self.ccid4;
        options
    }

    /// Options of an end that likes this best, but takes what the other end names.
    pub(crate) fn preferred(self) -> Options {
        let mut options = self.options();
        options.ccids.extend(Ccid::ALL.iter().map(|&(_, ccid)| ccid).filter(|&ccid| ccid != self.ccid));
        options
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::all().find(|(_, it)| it == self).map_or("unknown", |(name, _)| name))
    }
}

/// What a tunnel has unless told otherwise.
pub(crate) const fn congestion_by_default() -> Congestion {
    Congestion { ccid: Ccid::Three, ccid4: Variant::TfrcSp }
}

/// The name of a congestion control; help lists them all.
pub(crate) fn congestion() -> impl TypedValueParser<Value = Congestion> {
    PossibleValuesParser::new(Congestion::all().map(|(name, _)| name)).try_map(|name| {
        let found = Congestion::all().find(|(known, _)| *known == name);
        found.map(|(_, it)| it).ok_or_else(|| format!("there is no congestion control '{name}'"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_ccid_4_and_a_server_takes_the_others_too() {
        let (_, variant) = Congestion::all().find(|(name, _)| *name == "ccid4-n100").unwrap();
        assert_eq!(variant.to_string(), "ccid4-n100");
        let options = variant.preferred();
        assert_eq!((options.ccids[0], options.tfrc.ccid4), (Ccid::Four, Variant::Ccid4N100));
        assert_eq!(options.ccids.len(), Ccid::ALL.len());
    }
}
