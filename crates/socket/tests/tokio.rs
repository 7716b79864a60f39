//! Sockets in tasks of tokio, on the loopback interface.

use braidcast_socket::{
    AsyncSocket, CloseReason, Connection, Error, Event, Path, Protection, SendOptions, SharedSocket, Socket,
};
use futures_core::Stream;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

fn server(protection: &Protection) -> (AsyncSocket, SocketAddr) {
    let mut socket = Socket::new(protection).unwrap();
    let at = socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen();
    (AsyncSocket::new(socket).unwrap(), at)
}

fn client(protection: &Protection) -> AsyncSocket {
    AsyncSocket::new(Socket::new(protection).unwrap()).unwrap()
}

/// Sends back what comes until the connection is over. Returns how many messages came.
async fn echo(connection: Connection) -> usize {
    let mut count = 0;
    while let Some(message) = connection.recv().await.unwrap() {
        count += 1;
        // The other end may have gone meanwhile.
        _ = connection.send(&message.data, &SendOptions::default()).await;
    }
    count
}

#[tokio::test]
async fn many_clients_are_served_and_no_message_is_lost() {
    let (server, at) = server(&Protection::Anyone);
    let served = tokio::spawn(async move {
        let mut echoes = Vec::new();
        for _ in 0..10 {
            echoes.push(tokio::spawn(echo(server.accept().await.unwrap())));
        }
        let mut count = 0;
        for it in echoes {
            count += it.await.unwrap();
        }
        count
    });
    let clients: Vec<_> = (0..10_u8)
        .map(|number| {
            tokio::spawn(async move {
                let connection = client(&Protection::Anyone).connect(&[Path::to(at)]).await.unwrap();
                let sender = connection.clone();
                let sending = tokio::spawn(async move {
                    for n in 0..20 {
                        sender.send(&[number, n], &SendOptions::default()).await.unwrap();
                    }
                });
                for n in 0..20 {
                    assert_eq!(connection.recv().await.unwrap().unwrap().data, [number, n]);
                }
                sending.await.unwrap();
                connection.shutdown().await.unwrap();
                assert_eq!(connection.closed().await.unwrap(), (CloseReason::Shutdown, vec![]));
            })
        })
        .collect();
    for it in clients {
        it.await.unwrap();
    }
    assert_eq!(served.await.unwrap(), 200);
}

#[tokio::test]
async fn who_sends_more_than_fits_waits_for_room() {
    let (server, at) = server(&Protection::Plain);
    let connection = client(&Protection::Plain).connect(&[Path::to(at)]).await.unwrap();
    let sending = tokio::spawn(async move {
        for _ in 0..150 {
            connection.send(&[7; 100_000], &SendOptions::default()).await.unwrap();
        }
        // Dropped, it shuts down: all arrives.
    });
    let accepted = server.accept().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!sending.is_finished(), "15 MB do not fit two buffers of 4 MiB");
    let mut count = 0;
    while let Some(message) = accepted.recv().await.unwrap() {
        assert_eq!(message.data.len(), 100_000);
        count += 1;
    }
    assert_eq!(count, 150);
    sending.await.unwrap();
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_nothing() {
    let (server, at) = server(&Protection::Plain);
    let connection = client(&Protection::Plain).connect(&[Path::to(at)]).await.unwrap();
    let accepted = server.accept().await.unwrap();
    let sending = tokio::spawn(async move {
        for n in 0..50_u8 {
            connection.send(&[n], &SendOptions::default()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let mut got = Vec::new();
    while got.len() < 50 {
        tokio::select! {
            message = accepted.recv() => got.extend(message.unwrap().unwrap().data),
            () = tokio::time::sleep(Duration::from_micros(700)) => {}
        }
    }
    assert_eq!(got, (0..50).collect::<Vec<u8>>());
    sending.await.unwrap();
}

#[tokio::test]
async fn what_happens_beside_messages_is_told_in_order_and_ends_with_the_connection() {
    let (server, at) = server(&Protection::Anyone);
    let connection = client(&Protection::Anyone).connect(&[Path::to(at)]).await.unwrap();
    let accepted = server.accept().await.unwrap();
    let path = connection.event().await.unwrap();
    assert!(matches!(&path, Some(Event::PathUp { remote, .. }) if *remote == at), "{path:?}");
    // More than are kept: the oldest are forgotten, the rest comes in order.
    for context in 0..1100 {
        connection.send(b"reading", &SendOptions::new().context(context).report()).await.unwrap();
        accepted.recv().await.unwrap().unwrap();
    }
    connection.shutdown().await.unwrap();
    let mut contexts = Vec::new();
    while let Some(event) = connection.event().await.unwrap() {
        if let Event::Delivered { context } = event {
            contexts.push(context);
        }
    }
    assert_eq!(contexts, (76..1100).collect::<Vec<u64>>());
    assert_eq!(connection.event().await.unwrap(), None);
}

#[tokio::test]
async fn a_message_that_was_too_late_is_told() {
    let (server, at) = server(&Protection::Anyone);
    let connection = client(&Protection::Anyone).connect(&[Path::to(at)]).await.unwrap();
    let late = SendOptions::new().context(7).deadline(Duration::ZERO);
    connection.send(b"too late", &late).await.unwrap();
    loop {
        match connection.event().await.unwrap() {
            Some(Event::Discarded { context }) => break assert_eq!(context, 7),
            Some(_) => {}
            None => panic!("it was not told"),
        }
    }
    drop(server);
}

#[tokio::test]
async fn another_key_and_nobody_are_errors() {
    let (_server, at) = server(&Protection::Key("one passphrase of some length".into()));
    let error = client(&Protection::Anyone).connect(&[Path::to(at)]).await.unwrap_err();
    assert!(matches!(error, Error::Closed(CloseReason::Insecure { .. })), "{error}");
    assert!(matches!(client(&Protection::Plain).connect(&[]).await, Err(Error::Connect(_))));
}

#[tokio::test]
async fn a_server_closes_all_that_it_has_though_nobody_reads() {
    let (server, at) = server(&Protection::Key("one passphrase of some length".into()));
    let connection = client(&Protection::Key("one passphrase of some length".into())).connect(&[Path::to(at)]).await;
    let connection = connection.unwrap();
    let accepted = server.accept().await.unwrap();
    assert!(accepted.peer().is_some() && accepted.peer() == connection.peer());
    assert_eq!(accepted.paths().len(), 1);
    connection.try_send(b"nobody reads this", &SendOptions::default()).unwrap();
    accepted.send(b"last words", &SendOptions::default()).await.unwrap();
    let (closed, received) = tokio::join!(server.close(Duration::from_secs(20)), connection.recv());
    assert_eq!(received.unwrap().unwrap().data, b"last words");
    assert!(closed.unwrap());
    assert_eq!(connection.closed().await.unwrap(), (CloseReason::Shutdown, vec![]));
    assert!(accepted.peer().is_none() && accepted.paths().is_empty());
}

#[test]
fn connections_go_to_other_tasks_and_threads() {
    fn is_for_all<T: Clone + Send + Sync + 'static>() {}
    fn is_send<T: Send>() {}
    is_for_all::<AsyncSocket>();
    is_for_all::<Connection>();
    is_for_all::<SharedSocket>();
    is_send::<Socket>();
}

/// A panic of one task is no reason for others to wait for ever.
#[tokio::test]
async fn a_call_that_panics_ends_all_waits() {
    let (server, at) = server(&Protection::Plain);
    let connection = client(&Protection::Plain).connect(&[Path::to(at)]).await.unwrap();
    let accepted = server.accept().await.unwrap();
    let (waiting, broken) = (accepted.clone(), server.clone());
    let reading = tokio::spawn(async move { waiting.recv().await.map(|_| ()) });
    let accepting = server.clone();
    let accepting = tokio::spawn(async move { accepting.accept().await.map(|_| ()) });
    // It waits for room, as nobody reads at the other end.
    let writing = accepted.clone();
    let writing = tokio::spawn(async move {
        let ended = loop {
            match writing.send(&[7; 100_000], &SendOptions::default()).await {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        Err::<(), Error>(ended)
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let panicked = tokio::spawn(async move { broken.with(|_| -> Result<(), Error> { panic!("seven") }) }).await;
    assert!(panicked.is_err());
    let all = async { (reading.await.unwrap(), accepting.await.unwrap(), writing.await.unwrap()) };
    let (read, accept, write) = tokio::time::timeout(Duration::from_secs(20), all).await.expect("they wait for ever");
    for ended in [read, accept, write] {
        assert!(matches!(ended, Err(Error::Broken)), "{ended:?}");
    }
    drop(connection);
}

/// Connections that nobody accepts, and that end, are forgotten.
#[tokio::test]
async fn who_comes_and_goes_before_anybody_accepts_is_not_kept() {
    let (server, at) = server(&Protection::Plain);
    for _ in 0..5 {
        let connection = client(&Protection::Plain).connect(&[Path::to(at)]).await.unwrap();
        connection.shutdown().await.unwrap();
    }
    while server.with(|socket| Ok(socket.connections().count())).unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let last = client(&Protection::Plain).connect(&[Path::to(at)]).await.unwrap();
    last.send(b"I stay", &SendOptions::default()).await.unwrap();
    let accepted = server.accept().await.unwrap();
    assert_eq!(accepted.recv().await.unwrap().unwrap().data, b"I stay");
}

/// The next item of a stream, as `StreamExt::next` has it.
async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

#[tokio::test]
async fn connections_messages_and_events_are_streams_and_dropping_one_loses_nothing() {
    let (server, at) = server(&Protection::Anyone);
    let mut incoming = server.incoming();
    assert!(tokio::time::timeout(Duration::from_millis(20), next(&mut incoming)).await.is_err(), "nobody is there");
    let sending = tokio::spawn(async move {
        let connection = client(&Protection::Anyone).connect(&[Path::to(at)]).await.unwrap();
        let options = SendOptions::new().report();
        for n in 0..100_u8 {
            connection.send(&[n], &options).await.unwrap();
            if n % 10 == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let mut events = connection.events();
        let mut delivered = 0;
        while delivered < 100 {
            delivered += usize::from(matches!(next(&mut events).await, Some(Ok(Event::Delivered { .. }))));
        }
        drop(events);
        connection.shutdown().await.unwrap();
    });
    let accepted = next(&mut incoming).await.unwrap().unwrap();
    let mut came = Vec::new();
    loop {
        // Streams and futures are dropped again and again while they wait.
        let mut messages = accepted.messages();
        match tokio::time::timeout(Duration::from_millis(1), next(&mut messages)).await {
            Ok(Some(message)) => came.push(message.unwrap().data[0]),
            Ok(None) => {
                assert!(next(&mut messages).await.is_none(), "it goes on after its end");
                break;
            }
            Err(_) => {}
        }
    }
    assert_eq!(came, (0..100).collect::<Vec<u8>>());
    sending.await.unwrap();
}

#[tokio::test]
async fn a_task_that_waits_for_a_stream_is_woken() {
    let (server, at) = server(&Protection::Plain);
    let reading = tokio::spawn(async move {
        let mut incoming = server.incoming();
        let mut messages = next(&mut incoming).await.unwrap().unwrap().messages();
        let mut count = 0;
        while let Some(message) = next(&mut messages).await {
            message.unwrap();
            count += 1;
        }
        count
    });
    let connection = client(&Protection::Plain).connect(&[Path::to(at)]).await.unwrap();
    for n in 0..5_u8 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        connection.send(&[n], &SendOptions::default()).await.unwrap();
    }
    connection.shutdown().await.unwrap();
    assert_eq!(tokio::time::timeout(Duration::from_secs(5), reading).await.unwrap().unwrap(), 5);
}

#[tokio::test]
async fn a_connection_that_is_dropped_with_messages_unread_is_not_kept() {
    let (server, at) = server(&Protection::Plain);
    let connection = client(&Protection::Plain).connect(&[Path::to(at)]).await.unwrap();
    let accepted = server.accept().await.unwrap();
    for n in 0..10_u8 {
        connection.send(&[n], &SendOptions::default()).await.unwrap();
    }
    // They have come, and more does after the end has begun.
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(accepted);
    _ = connection.send(&[10], &SendOptions::default()).await;
    let ended = tokio::time::timeout(Duration::from_secs(5), connection.closed()).await;
    assert_eq!(ended.unwrap().unwrap().0, CloseReason::Shutdown);
    for _ in 0..50 {
        if server.with(|socket| Ok(socket.connections().count())).unwrap() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the connection is still there, and nobody can read it any more");
}
