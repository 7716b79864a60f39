//! `rtmp://:PORT/APP/KEY`: where encoders publish by RTMP.

use super::neighbour::{Whereabouts, decoded, whereabouts};
use super::values;
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

/// Reads `rtmp://:PORT/APP/KEY`, the KEY perhaps as `@FILE`; `None` for what has another scheme or none.
pub(crate) fn rtmp(text: &str) -> Option<Result<Rtmp, String>> {
    text.strip_prefix("rtmp://").map(read)
}

fn read(rest: &str) -> Result<Rtmp, String> {
    const FORM: &str = "write rtmp://:PORT/APP/KEY, for example rtmp://:1935/live/a-long-key";
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (at, path) = rest.split_once('/').ok_or_else(|| format!("the path is missing: {FORM}"))?;
    // A file's name may have slashes.
    let (app, key) = match path.split_once("/@") {
        Some((app, file)) if !file.is_empty() => (app, Key::File(decoded(file).into())),
        _ => {
            let split = path.rsplit_once('/').filter(|(app, key)| !app.is_empty() && !key.is_empty());
            let (app, key) = split.ok_or_else(|| format!("APP or KEY is missing: {FORM}"))?;
            (app, Key::Typed(decoded(key)))
        }
    };
    let Ok(Whereabouts::Listen(addr, port)) = whereabouts(at, Some(true)) else {
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
