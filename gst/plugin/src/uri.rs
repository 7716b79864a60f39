//! `braidcast://HOST:PORT?property=value&…`, from which GStreamer makes an element by itself.

use gst::glib::{self, prelude::*};
use gst::prelude::*;
use gst::{URIError, glib::ParamFlags};
use gstreamer as gst;
use std::fmt::Write;

/// The scheme of both elements.
pub(crate) const SCHEME: &str = "braidcast";

fn refused(code: URIError, words: String) -> glib::Error {
    glib::Error::new(code, &words)
}

/// Sets what `uri` says: `place`, the property that has the addresses, and those after the question mark.
/// If `other` is one of these, there need be no addresses.
///
/// # Errors
/// In words, with what may be there; nothing is set then.
pub(crate) fn set(element: &impl IsA<gst::Element>, [place, other]: [&str; 2], uri: &str) -> Result<(), glib::Error> {
    if element.current_state() > gst::State::Ready {
        return Err(refused(URIError::BadState, "the URI can be changed in NULL and READY only".into()));
    }
    let bad = |words: String| refused(URIError::BadUri, words);
    let rest = uri.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix("://"));
    let rest = rest.ok_or_else(|| bad(format!("{uri} does not begin with {SCHEME}://")))?;
    let (addresses, query) = rest.split_once('?').unwrap_or((rest, ""));
    let addresses = unescaped(addresses.trim_end_matches('/')).ok_or_else(|| bad(format!("{uri} has a wrong %")))?;
    let names_other = query.split('&').any(|pair| pair.split_once('=').is_some_and(|(name, _)| name == other));
    if addresses.is_empty() && !names_other {
        return Err(bad(format!("{uri} has no address; an example is {SCHEME}://home.example:9000")));
    }
    let mut all = Vec::new();
    if !addresses.is_empty() {
        all.push((place.to_owned(), addresses.to_value()));
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair.split_once('=').unwrap_or((pair, "true"));
        let spec = element.find_property(name).filter(|spec| is_ours(element, spec, place));
        let spec = spec.ok_or_else(|| {
            let names: Vec<_> = ours(element, place).map(|spec| spec.name().to_owned()).collect();
            bad(format!("a URI of this element has no '{name}'; it has {}", names.join(", ")))
        })?;
        let text = unescaped(text).ok_or_else(|| bad(format!("'{text}' has a wrong %")))?;
        let value = value(&spec, &text)
            .ok_or_else(|| bad(format!("{name} cannot be '{text}': {}", spec.blurb().unwrap_or_default())))?;
        all.push((name.to_owned(), value));
    }
    all.into_iter().for_each(|(name, value)| element.set_property_from_value(&name, &value));
    Ok(())
}

/// The URI that sets what is set; secrets are left out. `None` without an address.
pub(crate) fn get(element: &impl IsA<gst::Element>, [place, other]: [&str; 2]) -> Option<String> {
    let text_of = |name| element.property::<Option<String>>(name).filter(|text| !text.is_empty());
    let addresses = if text_of(other).is_some() { String::new() } else { text_of(place)? };
    let mut uri = format!("{SCHEME}://{}", escaped(&addresses));
    let mut sign = '?';
    for spec in ours(element, place).filter(|spec| spec.flags().contains(ParamFlags::READABLE)) {
        let value = element.property_value(spec.name());
        let Some(text) = text(&value).filter(|it| Some(it) != text(spec.default_value()).as_ref()) else { continue };
        // Writing to a text does not fail.
        let _ = write!(uri, "{sign}{}={}", spec.name(), escaped(&text));
        sign = '&';
    }
    Some(uri)
}

/// The properties that may stand after the question mark.
fn ours(element: &impl IsA<gst::Element>, place: &str) -> impl Iterator<Item = glib::ParamSpec> {
    element.list_properties().into_iter().filter(move |spec| is_ours(element, spec, place))
}

fn is_ours(element: &impl IsA<gst::Element>, spec: &glib::ParamSpec, place: &str) -> bool {
    let simple = [String::static_type(), bool::static_type(), u32::static_type()].contains(&spec.value_type());
    let own = spec.owner_type() == element.type_() && spec.flags().contains(ParamFlags::WRITABLE);
    own && simple && spec.name() != place
}

fn value(spec: &glib::ParamSpec, text: &str) -> Option<glib::Value> {
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecUInt>() {
        let number = text.parse::<u32>().ok()?;
        return (spec.minimum()..=spec.maximum()).contains(&number).then(|| number.to_value());
    }
    match (spec.value_type() == bool::static_type(), text) {
        (false, text) => Some(text.to_value()),
        (true, "true" | "1" | "yes") => Some(true.to_value()),
        (true, "false" | "0" | "no") => Some(false.to_value()),
        (true, _) => None,
    }
}

fn text(value: &glib::Value) -> Option<String> {
    value.get::<Option<String>>().ok().flatten().filter(|text| !text.is_empty()).or_else(|| {
        value.get::<bool>().map(|it| it.to_string()).or_else(|_| value.get::<u32>().map(|it| it.to_string())).ok()
    })
}

/// What `%` and two digits stand for (RFC 3986 §2.1).
fn unescaped(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, after @ ..] = after else { return None };
        let digit = |it: &u8| char::from(*it).to_digit(16);
        bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// What stands for itself in addresses and values, and `%` and two digits for the rest.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~:,[]@/".contains(&byte) {
            all.push(char::from(byte));
        } else {
            let _ = write!(all, "%{byte:02X}");
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_is_the_same_again() {
        for text in ["[2001:db8::1]:9000,home:1", "a key & 100 %", "é=?#", ""] {
            assert_eq!(unescaped(&escaped(text)).as_deref(), Some(text));
        }
        assert_eq!(unescaped("a%20b").as_deref(), Some("a b"));
        assert!(["%", "%2", "%zz", "%ff"].iter().all(|wrong| unescaped(wrong).is_none()));
    }
}
