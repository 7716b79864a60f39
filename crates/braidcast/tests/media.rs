//! The examples `camera` and `screen`, as processes of their own, over two lossy networks: the screen is killed and
//! started again, and a network goes.
#![allow(clippy::disallowed_methods, reason = "real time")]

#[allow(dead_code, reason = "other tests use the rest")]
mod programs;

use programs::{Folder, Networks, Program};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;

const KEY: &str = "a passphrase that both ends know";

/// Starts an example. Tests stand in target/PROFILE/deps.
fn example(name: &str, args: &[&str]) -> Program {
    let program = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(program.exists(), "{program:?} is missing: cargo build -p braidcast --features media --examples");
    Program::start(Command::new(program).args(args))
}

/// Frames in a file that a decoder finds nothing wrong with; `None` without ffmpeg.
fn decoded(file: &str) -> Option<usize> {
    let mut ffmpeg = Command::new("ffmpeg");
    // Of each frame a line: its time and its sum.
    ffmpeg.args(["-v", "error", "-xerror", "-i", file, "-f", "framemd5", "-"]).stdin(Stdio::null());
    let output = match ffmpeg.output() {
        Ok(output) => output,
        Err(_) if std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none() => return None,
        Err(error) => panic!("ffmpeg: {error}"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().filter(|line| !line.starts_with('#')).count())
}

#[test]
fn video_goes_on_whatever_happens_to_its_screen_and_networks() {
    let folder = Folder::new("media");
    let [before, after] = ["before.ts", "after.ts"].map(|name| folder.path(name));
    let screen = example("screen", &[KEY, &before, "127.0.0.1:0", "127.0.0.1:0"]);
    let Networks { ports, alive, through } = Networks::to(&screen);
    let camera = example("camera", &["15", KEY, &through[0], &through[1]]);
    screen.wait_for("camera is there");
    camera.wait_for("connected");
    let has = |file: &str, bytes: u64| std::fs::metadata(file).is_ok_and(|it| it.len() > bytes);
    while !has(&before, 50_000) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // Killed: nobody is told.
    screen.signal("-KILL");
    drop(screen);
    let screen = example("screen", &[KEY, &after, &ports[0], &ports[1]]);
    screen.wait_for("camera is there");
    camera.wait_for("lost: ");
    while !has(&after, 50_000) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    alive[0].store(false, Relaxed);
    camera.wait_for(&format!("{} is down", through[0]));
    camera.wait_for("all arrived: true");
    screen.wait_for("ended: ");
    // What the second screen got begins with a whole frame or the rest of a group, and lacks a few of those.
    let on_time = |line: &String| {
        let (count, _) = line.strip_prefix("I: ")?.split_once(" of ")?;
        count.parse::<u32>().ok()
    };
    let keys = screen.wait("what came", |lines| lines.iter().find_map(on_time));
    assert!(keys >= 2, "{keys} key frames came");
    if let Some(frames) = decoded(&after) {
        assert!(frames >= 50, "{frames} frames");
    }
}
