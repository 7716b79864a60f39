//! `rtmp://:PORT/APP/KEY`: where encoders publish by RTMP. `rtmp://HOST/APP/KEY`: where a stream is published to.

use super::neighbour::{Whereabouts, decoded, whereabouts};
use super::values::{self, Remote};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// The key of a stream: itself, or the first line of a file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Typed(String),
    File(PathBuf),
}

/// A secret is shown nowhere.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
}

/// Where one encoder publishes one stream. It is shown without its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rtmp {
    /// One of this machine's addresses, or any.
    pub(crate) addr: Option<IpAddr>,
    /// TCP port.
    pub(crate) port: u16,
    /// What encoders call the server's part of the path.
    pub(crate) app: String,
    pub(crate) key: Key,
    /// What the stream is called here.
    pub(crate) name: Option<String>,
}

impl fmt::Display for Rtmp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, app, .. } = self;
        match self.addr {
            None => write!(f, "rtmp://:{port}/{app}"),
            Some(IpAddr::V6(addr)) => write!(f, "rtmp://[{addr}]:{port}/{app}"),
            Some(addr) => write!(f, "rtmp://{addr}:{port}/{app}"),
        }
    }
}

/// A server that a stream is published to, as those of platforms. It is shown without its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Publish {
    /// In TLS: `rtmps`.
    pub(crate) secure: bool,
    pub(crate) server: Remote,
    pub(crate) app: String,
    pub(crate) key: Key,
}

impl fmt::Display for Publish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "rtmps" } else { "rtmp" };
        let usual = self.server.port == usual_port(self.secure);
        match (usual, self.server.host.contains(':')) {
            (true, false) => write!(f, "{scheme}://{}/{}", self.server.host, self.app),
            (true, true) => write!(f, "{scheme}://[{}]/{}", self.server.host, self.app),
            (false, _) => write!(f, "{scheme}://{}/{}", self.server, self.app),
        }
    }
}

const fn usual_port(secure: bool) -> u16 {
    if secure { 443 } else { 1935 }
}

/// Reads `rtmp://HOST[:PORT]/APP/KEY` and `rtmps://…`, the KEY perhaps as `@FILE`; `None` for what has another scheme
/// or none. A key may hold anything, a question mark too.
pub(crate) fn publish(text: &str) -> Option<Result<Publish, String>> {
    let secure = text.starts_with("rtmps://");
    let rest = text.strip_prefix(if secure { "rtmps://" } else { "rtmp://" })?;
    let form = "write rtmp://HOST/APP/KEY or rtmps://HOST/APP/KEY, as the platform shows them, with KEY or @FILE";
    let read = || {
        let (at, path) = rest.split_once('/').ok_or_else(|| format!("APP and KEY are missing: {form}"))?;
        let (app, key) = path_of(path).ok_or_else(|| format!("APP or KEY is missing: {form}"))?;
        let key = match key {
            Key::Typed(key) if !(1..256).contains(&key.len()) => return Err("a KEY has 1 to 255 characters".into()),
            key => key,
        };
        let has_port = at.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) && !at.ends_with(']');
        let at = if has_port { at.to_owned() } else { format!("{at}:{}", usual_port(secure)) };
        let server = values::peer(&at).map_err(|error| format!("{error}; {form}"))?;
        Ok(Publish { secure, server, app: app.to_owned(), key })
    };
    Some(read())
}

/// The application and the key as it is written.
fn path_of(path: &str) -> Option<(&str, Key)> {
    // A file's name may have slashes.
    match path.split_once("/@") {
        Some((app, file)) if !file.is_empty() && !app.is_empty() => Some((app, Key::File(decoded(file).into()))),
        _ => {
            // The key's own slashes are behind a question mark, if it has any.
            let end = path.find('?').unwrap_or(path.len());
            let split = path[..end].rfind('/')?;
            let (app, key) = (&path[..split], &path[split + 1..]);
            (!app.is_empty() && !key.is_empty()).then(|| (app, Key::Typed(key.to_owned())))
        }
    }
}

/// Reads `rtmp://:PORT/APP/KEY`, the KEY perhaps as `@FILE`; `None` for what has another scheme or none.
pub(crate) fn rtmp(text: &str) -> Option<Result<Rtmp, String>> {
    text.strip_prefix("rtmp://").map(read)
}

fn read(rest: &str) -> Result<Rtmp, String> {
    const FORM: &str = "write rtmp://:PORT/APP/KEY, for example rtmp://:1935/live/a-long-key";
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (at, path) = rest.split_once('/').ok_or_else(|| format!("the path is missing: {FORM}"))?;
    let (app, key) = match path_of(path).ok_or_else(|| format!("APP or KEY is missing: {FORM}"))? {
        (app, Key::Typed(key)) => (app, Key::Typed(decoded(&key))),
        file => file,
    };
    let Ok(Whereabouts::Listen(addr, port)) = whereabouts(at, Some(true), "rtmp") else {
        return Err(format!("RTMP is for encoders that call here: {FORM}"));
    };
    let mut it = Rtmp { addr, port, app: decoded(app), key, name: None };
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("name", name)) => it.name = Some(values::name(&decoded(name))?),
            // Without its value, as it may belong to the key.
            _ => return Err("behind rtmp:// there is name=NAME alone; write %3F for a question mark in KEY".into()),
        }
    }
    Ok(it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_where_the_platform_says_and_its_key_is_not_shown() {
        let it = publish("rtmp://live.example/app/live_1_secret").unwrap().unwrap();
        assert_eq!((it.server.host.as_str(), it.server.port, it.app.as_str()), ("live.example", 1935, "app"));
        assert_eq!(it.key, Key::Typed("live_1_secret".into()));
        assert!(it.to_string() == "rtmp://live.example/app" && !format!("{it:?}").contains("secret"));
        let it = publish("rtmps://[2001:db8::1]:8443/a/b/FB-1?s_bl=1&s_c/x").unwrap().unwrap();
        assert_eq!((it.secure, it.server.port, it.app.as_str()), (true, 8443, "a/b"));
        assert_eq!(it.key, Key::Typed("FB-1?s_bl=1&s_c/x".into()));
        assert_eq!(it.to_string(), "rtmps://[2001:db8::1]:8443/a/b");
        let it = publish("rtmps://[2001:db8::1]/live2/@/run/key").unwrap().unwrap();
        assert_eq!((it.server.port, it.key), (443, Key::File("/run/key".into())));
        let wrong = |text| publish(text).unwrap().unwrap_err();
        assert!(wrong("rtmp://live.example").contains("APP and KEY are missing"));
        assert!(wrong("rtmp://live.example/app").contains("APP or KEY is missing"));
        assert!(!wrong("rtmp:///app/secret").contains("secret") && publish("srt://a:1").is_none());
    }

    #[test]
    fn paths_have_an_application_and_a_key_that_is_not_shown() {
        let it = rtmp("rtmp://:1935/live/secret-key?name=cam1").unwrap().unwrap();
        assert_eq!((it.port, it.app.as_str(), it.name.as_deref()), (1935, "live", Some("cam1")));
        assert_eq!(it.key, Key::Typed("secret-key".into()));
        assert!(it.to_string() == "rtmp://:1935/live" && !format!("{it:?}").contains("secret"));
        let it = rtmp("rtmp://[::1]:1935/a/b/@/run/key").unwrap().unwrap();
        assert_eq!((it.app.as_str(), it.key), ("a/b", Key::File("/run/key".into())));
        let wrong = |text| rtmp(text).unwrap().unwrap_err();
        assert!(
            wrong("rtmp://:1935").contains("path is missing") && wrong("rtmp://:1935/live/").contains("KEY is missing")
        );
        assert!(wrong("rtmp://studio:1935/live/x").contains("call here"));
        assert!(!wrong("rtmp://:1935/live/x?secret=1").contains("secret="));
        assert!(rtmp("rtmps://:1935/live/x").is_none());
    }
}
