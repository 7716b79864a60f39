use crate::{Limits, Method};
use std::sync::Arc;

/// Encryption of all that goes between two ends, by whatever protocol. With it, a connection comes
/// about only with a peer that has it too and agrees on keys; all packets after that are protected,
/// and what is not is dropped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SecurityOptions {
    /// How keys are agreed on, and with whom.
    pub method: Arc<dyn Method>,
    /// When they are changed.
    pub limits: Limits,
}

impl SecurityOptions {
    /// Keys by `method`, changed by the usual [`limits`](Self::limits).
    #[must_use]
    pub fn new(method: Arc<dyn Method>) -> Self {
        Self { method, limits: Limits::default() }
    }

    /// The same with other limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

/// The very same method, with the same limits.
impl PartialEq for SecurityOptions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.method, &other.method) && self.limits == other.limits
    }
}

impl Eq for SecurityOptions {}
