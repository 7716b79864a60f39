//! Signals, in a process of their own.

use crate::common::Idle;
use braidcast_driver::{Driver, Wake};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const INSIDE: &str = "BRAIDCAST_TEST_INTERRUPTS";

#[test]
#[allow(clippy::disallowed_methods, reason = "the time between two presses of a key")]
fn interrupts_are_reported_and_the_third_ends_the_process() {
    if std::env::var_os(INSIDE).is_some() {
        let mut driver = Driver::new().unwrap();
        driver.catch_interrupts().unwrap();
        // Straight to the pipe: the test harness keeps what `println!` writes to itself.
        writeln!(std::io::stdout(), "\nready").unwrap();
        assert_eq!(driver.drive(&mut Idle, None).unwrap(), Wake::Interrupt);
        writeln!(std::io::stdout(), "\ninterrupted").unwrap();
        assert_eq!(driver.drive(&mut Idle, None).unwrap(), Wake::Interrupt);
        writeln!(std::io::stdout(), "\nonce more").unwrap();
        driver.drive(&mut Idle, None).unwrap();
        unreachable!("nothing but a signal can end that wait");
    }
    for (signal, status) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "interrupt::interrupts_are_reported_and_the_third_ends_the_process"])
            .env(INSIDE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        for word in ["ready", "interrupted", "once more"] {
            assert!(lines.any(|line| line == word), "the child did not say {word:?}");
            if word != "ready" {
                // Sooner, it would be the same one again.
                std::thread::sleep(std::time::Duration::from_millis(1100));
            }
            assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        }
        assert_eq!(child.wait().unwrap().code(), Some(status));
    }
}
