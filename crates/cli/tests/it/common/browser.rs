//! A real browser, without a window.

use std::process::{Command, Stdio};

/// The document of the page at `url` after its script has run for `millis` of the browser's time,
/// which stands still while it loads.
pub(crate) fn document(url: &str, millis: u32) -> String {
    dump(url, &format!("--virtual-time-budget={millis}"))
}

/// The document of the page at `url` once it is loaded, in real time: what the page measures is true.
pub(crate) fn document_in_real_time(url: &str) -> String {
    dump(url, "--timeout=60000")
}

fn dump(url: &str, time: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let chromium = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,900"])
        .arg(time)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", url])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .expect("chromium; tools/setup.sh test installs it");
    String::from_utf8(chromium.stdout).unwrap()
}
