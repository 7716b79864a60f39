use core::error::Error;
use core::fmt::{self, Debug};
use core::ops::RangeInclusive;

/// An option with a value that cannot work, by itself or beside another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misuse {
    option: &'static str,
    value: String,
    /// What it must be.
    limit: String,
    /// The option whose value that is.
    against: Option<&'static str>,
    fix: Fix,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fix {
    Raise,
    Lower,
    Other(&'static str),
}

impl Misuse {
    /// `value`, which must be within `range`.
    ///
    /// # Errors
    /// If it is not.
    pub fn unless_within<T: PartialOrd + Debug>(
        option: &'static str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), Self> {
        if range.contains(&value) {
            return Ok(());
        }
        let fix = if value < *range.start() { Fix::Raise } else { Fix::Lower };
        let limit = format!("{:?} to {:?}", range.start(), range.end());
        Err(Self { option, value: format!("{value:?}"), limit, against: None, fix })
    }

    /// `value`, which must be `least` or more.
    ///
    /// # Errors
    /// If it is not.
    pub fn below<T: PartialOrd + Debug>(option: &'static str, value: T, least: T) -> Result<(), Self> {
        if value >= least {
            return Ok(());
        }
        let limit = format!("{least:?} or more");
        Err(Self { option, value: format!("{value:?}"), limit, against: None, fix: Fix::Raise })
    }

    /// `value`, which must not be more than the option `other` says, `most`.
    ///
    /// # Errors
    /// If it is.
    pub fn above<T: PartialOrd + Debug>(
        option: &'static str,
        value: T,
        other: &'static str,
        most: T,
    ) -> Result<(), Self> {
        if value <= most {
            return Ok(());
        }
        let limit = format!("{most:?} at most");
        Err(Self { option, value: format!("{value:?}"), limit, against: Some(other), fix: Fix::Lower })
    }

    /// A value that is none of those that there may be; `limit` says which these are, `fix` what to do.
    pub fn other(option: &'static str, value: impl Into<String>, limit: impl Into<String>, fix: &'static str) -> Self {
        Self { option, value: value.into(), limit: limit.into(), against: None, fix: Fix::Other(fix) }
    }

    /// The option, as a program spells it: `paths.base_mtu`.
    pub const fn option(&self) -> &'static str {
        self.option
    }

    /// The option that it does not go with, if it would do by itself.
    pub const fn against(&self) -> Option<&'static str> {
        self.against
    }

    /// What is wrong, for users who know options by other names, as flags of a command or keys of a file.
    pub fn what<'a>(&self, name: impl Fn(&'static str) -> &'a str) -> String {
        let source = self.against.map(|other| format!(", the value of {}", name(other))).unwrap_or_default();
        format!("{} is {}, and must be {}{source}", name(self.option), self.value, self.limit)
    }

    /// What to do about it, likewise.
    pub fn fix<'a>(&self, name: impl Fn(&'static str) -> &'a str) -> String {
        let option = name(self.option);
        match (self.fix, self.against.map(name)) {
            (Fix::Raise, None) => format!("raise {option}"),
            (Fix::Lower, None) => format!("lower {option}"),
            (Fix::Raise, Some(other)) => format!("raise {option} or lower {other}"),
            (Fix::Lower, Some(other)) => format!("lower {option} or raise {other}"),
            (Fix::Other(fix), _) => fix.to_owned(),
        }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what(|name| name), self.fix(|name| name))
    }
}

impl Error for Misuse {}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn it_names_option_value_limit_and_mend() {
        let said = |it: Result<(), Misuse>| it.unwrap_err().to_string();
        assert_eq!(Misuse::unless_within("size", 508, 508..=508), Ok(()));
        assert_eq!(
            said(Misuse::unless_within("size", 0, 508..=1000)),
            "size is 0, and must be 508 to 1000: raise size"
        );
        assert_eq!(
            said(Misuse::unless_within("size", 2000, 508..=1000)),
            "size is 2000, and must be 508 to 1000: lower size"
        );
        let ms = Duration::from_millis;
        assert_eq!(said(Misuse::below("pause", ms(0), ms(1))), "pause is 0ns, and must be 1ms or more: raise pause");
        assert_eq!(
            said(Misuse::above("message", 9, "buffer", 5)),
            "message is 9, and must be 5 at most, the value of buffer: lower message or raise buffer"
        );
        let other = Misuse::other("code", "raptorq:2,1", "a linear code", "use block");
        assert_eq!(other.to_string(), "code is raptorq:2,1, and must be a linear code: use block");
    }

    #[test]
    fn it_speaks_of_flags_and_keys_by_their_own_names() {
        let wrong = Misuse::above("limits.message", 9, "limits.buffer", 5).unwrap_err();
        let flag = |option| if option == "limits.message" { "--message" } else { "--buffer" };
        assert_eq!(wrong.what(flag), "--message is 9, and must be 5 at most, the value of --buffer");
        assert_eq!(wrong.fix(flag), "lower --message or raise --buffer");
    }
}
