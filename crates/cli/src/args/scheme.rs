//! Addresses that are pasted with the scheme of another program, or without the one that they need here.

use std::net::{Ipv6Addr, SocketAddr};

/// Schemes that programs for media have, with or without slashes behind them.
const KNOWN: [&str; 12] =
    ["udp", "rtp", "srt", "srtla", "rist", "rtmp", "rtmps", "rtsp", "tcp", "http", "https", "braid"];
/// Those that inputs and outputs take.
const OURS: [&str; 5] = ["udp", "rtp", "srt", "srtla", "rist"];

/// Splits off `scheme://`, or the `scheme:` of a program that we know.
fn split(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_word = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric());
    let known = KNOWN.iter().any(|it| it.eq_ignore_ascii_case(scheme));
    match rest.strip_prefix("//") {
        Some(rest) if is_word => Some((scheme, rest)),
        None if known && rest.contains(|c: char| !c.is_ascii_digit()) => Some((scheme, rest)),
        _ => None,
    }
}

/// Refuses as an input or an output what would be taken for the name of a file, and cannot be meant as one.
pub(super) fn check_media(text: &str) -> Result<(), String> {
    if let Some(path) = text.strip_prefix("file://") {
        return Err(format!("a FILE has no scheme: write {path}"));
    }
    if let Some((scheme, rest)) = split(text) {
        let ours = OURS.into_iter().find(|it| it.eq_ignore_ascii_case(scheme));
        return Err(match ours {
            Some(ours) => format!("did you mean {ours}://{rest}?"),
            None if scheme.to_ascii_lowercase().starts_with("rtmp") => format!(
                "{scheme}:// is an OUTPUT of `receive`, or the address of an encoder in its LISTEN (`receive \
                 9000,rtmp://:1935/live/KEY show.ts`)"
            ),
            None => format!(
                "{scheme}:// is not supported: use a FILE, -, udp://HOST:PORT or srt://HOST:PORT (ffmpeg can turn \
                 {scheme}:// into any of them)"
            ),
        });
    }
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':'));
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    if is_port || text.parse::<SocketAddr>().is_ok() {
        return Err(format!("'{text}' is not a FILE: did you mean udp://{text}?"));
    }
    Ok(())
}

/// Says what is wrong with `host`, which stands before `:port` without brackets.
pub(super) fn check_host(host: &str, port: &str) -> Result<(), String> {
    let text = format!("{host}:{port}");
    if let Some((scheme, rest)) = split(&text) {
        let written = text.strip_suffix(rest).unwrap_or(scheme);
        let bare = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
        let port = if bare.contains(':') { "" } else { ":9000" };
        return Err(format!("leave out {written} here: write HOST:PORT, for example {bare}{port}"));
    }
    if host.contains(',') {
        return Err(format!("'{text}' is more than one address: give one here"));
    }
    // A zone, as in fe80::1%wlan0, is not part of the address.
    let is_v6 = |text: &str| text.split('%').next().is_some_and(|text| text.parse::<Ipv6Addr>().is_ok());
    if is_v6(host) {
        return Err(format!("an IPv6 address goes in brackets: [{host}]:{port}"));
    }
    if is_v6(&text) {
        return Err(format!("an IPv6 address goes in brackets, with a port behind it: [{text}]:9000"));
    }
    if let Some((user, rest)) = host.split_once('@') {
        return Err(format!("leave out {user}@ here: write HOST:PORT, for example {rest}:{port}"));
    }
    if host.contains(|c: char| c == ':' || c == '/' || c.is_whitespace() || c.is_control()) {
        return Err(format!("'{text}' is not an address: write HOST:PORT, for example home.example:9000"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_programs_write_before_an_address_is_left_out() {
        let said = |host, port| check_host(host, port).unwrap_err();
        assert!(
            said("http://127.0.0.1", "9000")
                .ends_with("leave out http:// here: write HOST:PORT, for example 127.0.0.1:9000")
        );
        assert!(said("udp:home.example", "9000").contains("leave out udp: here"));
        assert!(said("srt://a", "9000?latency=5").ends_with("for example a:9000"));
        assert!(said("http", "//home.example").ends_with("for example home.example:9000"));
        assert!(said("me@home.example", "9000").contains("home.example:9000"));
    }

    #[test]
    fn brackets_are_advised_for_ipv6_only() {
        let said = |host, port| check_host(host, port).unwrap_err();
        assert!(said("2001:db8::1", "9000").ends_with("[2001:db8::1]:9000"));
        assert!(said("fe80::1%wlan0", "9000").ends_with("[fe80::1%wlan0]:9000"));
        assert!(said("a:9000,b", "9001").contains("more than one address"));
        for (host, port) in [("a:b", "1"), ("a b", "1"), ("a/b", "1")] {
            assert!(said(host, port).contains("is not an address"), "{host}");
        }
        assert!(check_host("home.example", "9000").is_ok() && check_host("tcp", "9000").is_ok());
    }

    #[test]
    fn addresses_are_not_taken_for_files() {
        let said = |text| check_media(text).unwrap_err();
        assert_eq!(said("udp:127.0.0.1:5000"), "did you mean udp://127.0.0.1:5000?");
        assert_eq!(said("UDP://a:5000"), "did you mean udp://a:5000?");
        for text in ["127.0.0.1:5000", "[::1]:5000", "localhost:5000", ":5000"] {
            assert_eq!(said(text), format!("'{text}' is not a FILE: did you mean udp://{text}?"));
        }
        assert_eq!(said("file:///tmp/x.ts"), "a FILE has no scheme: write /tmp/x.ts");
        assert!(said("rtmp:host/app").contains("rtmp:// is an OUTPUT of `receive`"));
        for text in ["a:b.ts", "show-12:30.ts", "C:clip.ts", "./udp:1", "x.ts"] {
            assert!(check_media(text).is_ok(), "{text}");
        }
    }
}
