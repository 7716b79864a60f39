use super::{RawOption, kind};
use braidcast_core::Writer;

/// Location of a feature, as seen by the sender of the option (RFC 4340 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// At the sender of the option: Change L, Confirm L.
    Location,
    /// At its receiver: Change R, Confirm R.
    Remote,
}

impl Side {
    /// The same place as the other end calls it.
    #[must_use]
    pub const fn flip(self) -> Self {
        match self {
            Self::Location => Self::Remote,
            Self::Remote => Self::Location,
        }
    }
}

/// Change or Confirm.
///
/// ```text
/// | type 32 … 35 8 | length 8 | feature 8 | value(s) … |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeatureOption<'a> {
    /// Confirm rather than Change.
    pub confirm: bool,
    /// L or R.
    pub side: Side,
    /// The feature number.
    pub feature: u8,
    /// One value, or a list with the most preferred one first; a Confirm has the agreed value in front, or is empty.
    pub values: &'a [u8],
}

impl<'a> FeatureOption<'a> {
    pub(super) fn parse(option: u8, value: &'a [u8]) -> Option<Self> {
        let (&feature, values) = value.split_first()?;
        let confirm = matches!(option, kind::CONFIRM_L | kind::CONFIRM_R);
        let side = if matches!(option, kind::CHANGE_L | kind::CONFIRM_L) { Side::Location } else { Side::Remote };
        Some(Self { confirm, side, feature, values })
    }

    /// The option type.
    pub const fn kind(&self) -> u8 {
        match (self.side, self.confirm) {
            (Side::Location, false) => kind::CHANGE_L,
            (Side::Location, true) => kind::CONFIRM_L,
            (Side::Remote, false) => kind::CHANGE_R,
            (Side::Remote, true) => kind::CONFIRM_R,
        }
    }

    /// Bytes of the whole option.
    pub const fn size(&self) -> usize {
        3 + self.values.len()
    }

    /// Appends the option.
    pub fn emit(&self, w: &mut Writer<'_>) {
        w.u8(self.kind());
        let values = &self.values[..self.values.len().min(RawOption::MAX_VALUE - 1)];
        w.u8(values.len() as u8 + 3);
        w.u8(self.feature);
        w.bytes(values);
    }
}
