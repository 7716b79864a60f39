//! Names of values that users choose by name: on the command line, in scenario files, in reports.

use core::fmt;

/// Names the values of a plain enum: a table `ALL`, [`FromStr`](core::str::FromStr) with
/// [`UnknownName`] as the error, and [`Display`](fmt::Display).
///
/// ```
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// enum Order { First, Last }
///
/// braidcast_core::named! {
///     /// Both, by the name that command line and scenarios use.
///     Order, "order" { "fifo" => First, "lifo" => Last, "stack" => Last }
/// }
///
/// assert_eq!(Order::ALL[1], ("lifo", Order::Last));
/// assert_eq!(("stack".parse(), Order::Last.to_string()), (Ok(Order::Last), "lifo".to_owned()));
/// let error = "random".parse::<Order>().unwrap_err();
/// assert_eq!(error.to_string(), "no order is called 'random'; there are: fifo, lifo, stack");
/// ```
///
/// The comment before the type is that of `ALL`; the text behind it is what error messages call
/// such a value. A value may have several names and is shown by the first; one without a name does
/// not compile.
#[macro_export]
macro_rules! named {
    ($(#[$doc:meta])* $type:ident, $what:literal { $($name:literal => $value:ident),+ $(,)? }) => {
        impl $type {
            $(#[$doc])*
            pub const ALL: [(&'static str, Self); [$($name),+].len()] = [$(($name, Self::$value)),+];
        }

        impl ::core::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().find(|(known, _)| *known == name);
                found.map(|&(_, it)| it).ok_or_else(|| $crate::UnknownName::new($what, name, &[$($name),+]))
            }
        }

        impl ::core::fmt::Display for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #[allow(unreachable_patterns, reason = "a value may have several names")]
                f.write_str(match self {
                    $(Self::$value => $name),+
                })
            }
        }
    };
}

/// There is nothing of this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: &'static [&'static str],
}

impl UnknownName {
    /// No `what` is called `name`; these are `known`. Made by [`named!`].
    pub fn new(what: &'static str, name: &str, known: &'static [&'static str]) -> Self {
        Self { what, name: name.to_owned(), known }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {} is called '{}'; there are: {}", self.what, self.name, self.known.join(", "))
    }
}

impl core::error::Error for UnknownName {}
