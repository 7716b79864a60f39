//! How what went was protected, for people.

use braidcast_session::SecurityReport;

/// What stands in a summary: encrypted how, who was there, and both fingerprints. Nothing where
/// there was no connection.
pub(crate) fn lines(security: Option<&SecurityReport>, plain: bool, connected: bool) -> Vec<String> {
    let Some(it) = security else {
        let said = plain && connected;
        return said.then(|| "not encrypted (--plain)".to_owned()).into_iter().collect();
    };
    let who = if !it.authenticated {
        "not authenticated: anybody may be at the other end, unless you compare these"
    } else if it.peer_key == Some("shared") {
        "authenticated by the shared key"
    } else if it.peer_key == Some("certified") {
        "authenticated by its certificate"
    } else {
        "authenticated by its own key"
    };
    let fingerprint = |name: &str, text: &Option<String>| text.as_ref().map(|text| format!("  {name} {text}"));
    // One that both share says nothing, and looks like a secret.
    let shared = it.fingerprint == it.peer_fingerprint;
    let ends = [
        fingerprint("this end's fingerprint ", &it.fingerprint),
        fingerprint("other end's fingerprint", &it.peer_fingerprint),
    ];
    let ends = ends.into_iter().filter(|_| !shared);
    std::iter::once(format!("encrypted ({}), {who}", it.cipher)).chain(ends.flatten()).collect()
}
