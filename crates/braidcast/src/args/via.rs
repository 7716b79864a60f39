//! `--via`: networks to send from, and what the user calls them.

/// A network interface or a local address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Via {
    /// As the system calls it.
    pub(crate) at: String,
    /// As figures and messages call it; `None`: as the system does.
    pub(crate) name: Option<String>,
}

/// `IFACE|ADDR[?name=NAME]`, one of a list with commas.
pub(crate) fn via(text: &str) -> Result<Via, String> {
    let (at, options) = text.split_once('?').unwrap_or((text, ""));
    if at.is_empty() {
        return Err("a network is missing: write for example wlan0, or wlan0,wwan0".into());
    }
    let mut via = Via { at: at.to_owned(), name: None };
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("name", name)) if (1..=32).contains(&name.chars().count()) && !name.chars().any(char::is_control) => {
                via.name = Some(name.to_owned());
            }
            Some(("name", _)) => return Err("a name has 1 to 32 characters: write for example wwan0?name=O2".into()),
            _ => return Err(format!("'{option}' is not supported behind {at}?: there is name=NAME")),
        }
    }
    Ok(via)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_may_have_a_name_of_the_users() {
        assert_eq!(via("wlan0"), Ok(Via { at: "wlan0".into(), name: None }));
        assert_eq!(via("wwan0?name=O2 Berlin"), Ok(Via { at: "wwan0".into(), name: Some("O2 Berlin".into()) }));
        assert!(via("").unwrap_err().contains("wlan0,wwan0"));
        assert!(via("wwan0?name=").unwrap_err().contains("1 to 32 characters"));
        assert!(via("wwan0?max=5mbit").unwrap_err().contains("'max=5mbit' is not supported"));
    }
}
