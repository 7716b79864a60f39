//! The driver in tasks of tokio, on real sockets of the loopback interface.

#[path = "it/common/mod.rs"]
mod common;

use braidcast_core::{Instant, SocketId};
use braidcast_driver::{AsyncDriver, Bind, Driver, Wake};
use common::{Client, Echo, Idle, Metronome};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn bound() -> (AsyncDriver, SocketId, SocketAddr) {
    let mut driver = Driver::new().unwrap();
    let id = driver.bind(&Bind::to_addr("127.0.0.1:0".parse().unwrap())).unwrap();
    let local = driver.socket(id).unwrap().local_addr();
    (AsyncDriver::new(driver).unwrap(), id, local)
}

/// Both ends and a ticking task in one thread: each gets its turns.
#[tokio::test(flavor = "current_thread")]
async fn two_drivers_and_other_tasks_share_a_thread() {
    let (mut server, _, at) = bound();
    let (mut driver, socket, _) = bound();
    let echo = tokio::spawn(async move {
        let mut echo = Echo::default();
        loop {
            server.drive(&mut echo, None).await.unwrap();
        }
    });
    let ticks = Arc::new(AtomicU32::new(0));
    let ticking = tokio::spawn({
        let ticks = Arc::clone(&ticks);
        async move {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                ticks.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let mut client = Client::new(socket, at, 10_000);
    let limit = Instant::ZERO + Duration::from_secs(20);
    while !client.done() && driver.get().now() < limit {
        driver.drive(&mut client, Some(limit)).await.unwrap();
    }
    assert_eq!(client.answers.len(), 10_000, "{:?}", driver.get().socket(socket).unwrap().stats());
    assert!(ticks.load(Ordering::Relaxed) > 0, "no other task ran");
    echo.abort();
    ticking.abort();
}

#[tokio::test(flavor = "current_thread")]
async fn timers_of_the_machine_and_the_callers_time_wake_the_task() {
    let mut driver = AsyncDriver::new(Driver::new().unwrap()).unwrap();
    let start = driver.get().now();
    let until = start + Duration::from_millis(30);
    assert_eq!(driver.drive(&mut Idle, Some(until)).await.unwrap(), Wake::Until);
    assert!(driver.get().now() >= until);
    let period = Duration::from_millis(5);
    let mut metronome = Metronome { period, next: driver.get().now() + period, lateness: Vec::new() };
    while metronome.lateness.len() < 10 {
        assert_eq!(driver.drive(&mut metronome, None).await.unwrap(), Wake::Machine);
    }
}

/// As in `tokio::select!`: what the dropped future waited for is still there for the next one.
#[tokio::test(flavor = "current_thread")]
async fn a_dropped_future_loses_nothing() {
    let (mut server, _, at) = bound();
    let (mut driver, socket, _) = bound();
    let echo = tokio::spawn(async move {
        let mut echo = Echo::default();
        loop {
            let short = Duration::from_millis(1);
            let _ = tokio::time::timeout(short, server.drive(&mut echo, None)).await;
        }
    });
    let mut client = Client::new(socket, at, 1_000);
    client.window = 10;
    let limit = Instant::ZERO + Duration::from_secs(20);
    while !client.done() && driver.get().now() < limit {
        let short = Duration::from_micros(500);
        let _ = tokio::time::timeout(short, driver.drive(&mut client, Some(limit))).await;
    }
    assert_eq!(client.answers.len(), 1_000);
    echo.abort();
}

#[tokio::test(flavor = "current_thread")]
async fn sockets_may_be_opened_later() {
    let (mut server, _, at) = bound();
    let echo = tokio::spawn(async move {
        let mut echo = Echo::default();
        loop {
            server.drive(&mut echo, None).await.unwrap();
        }
    });
    let mut driver = AsyncDriver::new(Driver::new().unwrap()).unwrap();
    let soon = driver.get().now() + Duration::from_millis(5);
    assert_eq!(driver.drive(&mut Idle, Some(soon)).await.unwrap(), Wake::Until);
    let socket = driver.get_mut().bind(&Bind::to_addr("127.0.0.1:0".parse().unwrap())).unwrap();
    let mut client = Client::new(socket, at, 100);
    let limit = Instant::ZERO + Duration::from_secs(20);
    while !client.done() && driver.get().now() < limit {
        driver.drive(&mut client, Some(limit)).await.unwrap();
    }
    assert_eq!(client.answers.len(), 100);
    echo.abort();
}
