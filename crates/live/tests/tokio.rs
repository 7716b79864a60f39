//! The two ends in tasks of tokio.

use braidcast_live::{AccessUnit, Coding, Error, MediaReceiver, MediaSender, Path, ReceiverEvent, SenderEvent};
use futures_core::Stream;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

fn assert_send_and_sync<T: Clone + Send + Sync>(_: &T) {}

#[tokio::test]
async fn units_pass_between_tasks_and_a_dropped_future_loses_none() -> Result<(), Box<dyn std::error::Error>> {
    let receiver = MediaReceiver::builder().units().listen(&["127.0.0.1:0".parse()?])?;
    let at = receiver.local_addrs()[0];
    let sender = MediaSender::builder().latency(Duration::from_secs(3)).call(&[Path::to(at)])?;
    assert_send_and_sync(&sender);
    assert_send_and_sync(&receiver);
    let sending = sender.clone();
    let task = tokio::spawn(async move {
        let audio = sending.add_track(Coding::Opus { channels: 1 })?;
        while sending.next().await? != SenderEvent::Connected {}
        for n in 0..20_u8 {
            sending.send(AccessUnit::new(audio, Duration::from_millis(20 * u64::from(n)), [n + 1]))?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok::<_, Error>(())
    });
    let mut came = Vec::new();
    while came.len() < 20 {
        // It is dropped again and again while it waits.
        match tokio::time::timeout(Duration::from_millis(3), receiver.next()).await {
            Ok(Ok(ReceiverEvent::Unit { unit, .. })) => came.push(unit.data[0]),
            Ok(Err(error)) => return Err(error.into()),
            _ => {}
        }
    }
    task.await??;
    assert_eq!(came, (1..=20).collect::<Vec<u8>>());
    receiver.stop();
    while !matches!(receiver.next().await, Err(Error::Over)) {}
    Ok(())
}

/// The next item of a stream, as `StreamExt::next` has it.
async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

#[tokio::test]
async fn both_ends_are_streams_that_end() -> Result<(), Box<dyn std::error::Error>> {
    let receiver = MediaReceiver::builder().units().listen(&["127.0.0.1:0".parse()?])?;
    let (at, mut coming) = (receiver.local_addrs()[0], receiver.events());
    let sender = MediaSender::builder().latency(Duration::from_secs(3)).call(&[Path::to(at)])?;
    let mut said = sender.events();
    let audio = sender.add_track(Coding::Opus { channels: 1 })?;
    while next(&mut said).await.unwrap()? != SenderEvent::Connected {}
    (0..20_u8)
        .try_for_each(|n| sender.send(AccessUnit::new(audio, Duration::from_millis(20 * u64::from(n)), [n + 1])))?;
    let mut came = Vec::new();
    while came.len() < 20 {
        if let ReceiverEvent::Unit { unit, .. } = next(&mut coming).await.unwrap()? {
            came.push(unit.data[0]);
        }
    }
    assert_eq!(came, (1..=20).collect::<Vec<u8>>());
    receiver.stop();
    while let Some(event) = next(&mut coming).await {
        event?;
    }
    assert!(next(&mut coming).await.is_none(), "it goes on after its end");
    Ok(())
}
