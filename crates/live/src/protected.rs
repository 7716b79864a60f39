//! Who is let in: what both builders say of it.

use crate::Error;
use braidcast_socket::{Protection, Secured};

/// The methods of a builder with a field `protection`. `$whom`: who gets in by a key.
macro_rules! protected {
    ($whom:literal) => {
        #[doc = concat!("Only who has the same key is ", $whom)]
        pub fn key(self, key: &str) -> Self {
            self.protection(Protection::Key(key.to_owned()))
        }

        /// Each end has a key of its own, and says whose it takes ([`Protection::Identity`]).
        pub fn identity(self, own: Identity, trust: Trust) -> Self {
            self.protection(Protection::Identity { own, trust })
        }

        /// How all that goes over the networks is protected.
        pub fn protection(self, protection: Protection) -> Self {
            Self { protection, ..self }
        }
    };
}
pub(crate) use protected;

/// `protection`, ready to be used; what is wrong with its files is said among `warnings`.
///
/// # Errors
/// [`Error::Setup`].
pub(crate) fn secured(protection: &Protection, warnings: &mut Vec<String>) -> Result<Secured, Error> {
    let secured = protection.secured()?;
    warnings.extend(secured.warning().map(str::to_owned));
    Ok(secured)
}
