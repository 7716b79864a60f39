//! Signals, in a process of their own.

mod common;

use braidcast_driver::{Driver, Wake};
use common::Idle;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const INSIDE: &str = "BRAIDCAST_TEST_INTERRUPTS";

#[test]
fn the_first_interrupt_is_reported_and_the_second_ends_the_process() {
    if std::env::var_os(INSIDE).is_some() {
        let mut driver = Driver::new().unwrap();
        driver.catch_interrupts().unwrap();
        // Straight to the pipe: the test harness keeps what `println!` writes to itself.
        writeln!(std::io::stdout(), "\nready").unwrap();
        assert_eq!(driver.drive(&mut Idle, None).unwrap(), Wake::Interrupt);
        writeln!(std::io::stdout(), "\ninterrupted").unwrap();
        driver.drive(&mut Idle, None).unwrap();
        unreachable!("nothing but a signal can end that wait");
    }
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_first_interrupt_is_reported_and_the_second_ends_the_process"])
            .env(INSIDE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        for word in ["ready", "interrupted"] {
            assert!(lines.any(|line| line == word), "the child did not say {word:?}");
            assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        }
        assert_eq!(child.wait().unwrap().code(), Some(status));
    }
}
