//! A real browser, without a window.

use std::process::{Command, Stdio};

/// The document of the page at `url` after its script has run for `millis` of the browser's time, which stands still while it loads.
pub(crate) fn document(url: &str, millis: u32) -> String {
    let profile = tempfile::tempdir().unwrap();
    let chromium = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,900"])
        .arg(format!("--virtual-time-budget={millis}"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", url])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .expect("chromium; tools/setup.sh test installs it");
    String::from_utf8(chromium.stdout).unwrap()
}
