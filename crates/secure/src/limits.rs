use core::time::Duration;

/// When keys are changed, and how (draft-porfiri-tsvwg-sctp-dtls-handshake, "Rekeying Policy").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Age at which keys are changed.
    pub age: Duration,
    /// Or after this number of bytes of plain text in either direction.
    pub bytes: u64,
    /// Or after this number of records in one direction; half of what the cipher suite allows if
    /// that is less.
    pub records: u64,
    /// The first keys must be agreed on within this, or nothing comes of the association.
    pub patience: Duration,
    /// Time that the keys before are kept for records still in flight.
    pub drain: Duration,
}

impl Default for Limits {
    /// Each hour or 100 GB; old keys for two minutes. First keys within half a minute.
    fn default() -> Self {
        Self {
            age: Duration::from_secs(3600),
            bytes: 100_000_000_000,
            records: u64::MAX,
            patience: Duration::from_secs(30),
            drain: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// These limits with a `change`: `Limits::default().with(|it| it.records = 100)`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
