//! `--via`: networks to send from, and what the user calls them.

/// A network interface or a local address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Via {
    /// As the system calls it.
    pub(crate) at: String,
    /// As figures and messages call it; `None`: as the system does.
    pub(crate) name: Option<String>,
    /// The maximum that is sent over it, bits per second.
    pub(crate) max: Option<u64>,
}

/// `IFACE|ADDR[?name=NAME&max=RATE]`, one of a list with commas.
pub(crate) fn via(text: &str) -> Result<Via, String> {
    let (at, options) = text.split_once('?').unwrap_or((text, ""));
    if at.is_empty() {
        return Err("a network is missing: write for example wlan0, or wlan0,wwan0".into());
    }
    let mut via = Via { at: at.to_owned(), name: None, max: None };
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("name", name)) if (1..=32).contains(&name.chars().count()) && !name.chars().any(char::is_control) => {
                via.name = Some(name.to_owned());
            }
            Some(("name", _)) => return Err("a name has 1 to 32 characters: write for example wwan0?name=O2".into()),
            Some(("max", rate)) => via.max = Some(most(rate)?),
            _ => return Err(format!("'{option}' is not supported behind {at}?: there are name=NAME and max=RATE")),
        }
    }
    Ok(via)
}

/// The maximum rate of a path. Below `LEAST` an acknowledgement each second would be too much.
fn most(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 10_000;
    let rate = braidcast_sim::link::parse::rate(text).map_err(|e| format!("max: {e}"))?;
    if rate < LEAST {
        return Err(format!("max={text} is too little for a path: give 10kbit or more, or leave the network out"));
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_may_have_a_name_of_the_users() {
        assert_eq!(via("wlan0"), Ok(Via { at: "wlan0".into(), name: None, max: None }));
        assert_eq!(
            via("wwan0?name=O2 Berlin"),
            Ok(Via { at: "wwan0".into(), name: Some("O2 Berlin".into()), max: None })
        );
        assert!(via("").unwrap_err().contains("wlan0,wwan0"));
        assert!(via("wwan0?name=").unwrap_err().contains("1 to 32 characters"));
        assert!(via("wwan0?mtu=1400").unwrap_err().contains("'mtu=1400' is not supported"));
    }

    #[test]
    fn a_network_may_have_a_most() {
        let both = Via { at: "wwan0".into(), name: Some("O2".into()), max: Some(5_000_000) };
        assert_eq!(via("wwan0?name=O2&max=5mbit"), Ok(both));
        assert!(via("wwan0?max=1kbit").unwrap_err().contains("too little"));
        assert!(via("wwan0?max=0").unwrap_err().starts_with("max: `0`: "));
        assert!(via("wwan0?max=much").unwrap_err().starts_with("max: `much`: "));
    }
}
