//! Ends with keys of their own, and hosts with names.

use braidcast_socket::{
    CloseReason, ConnectionId, Error, Event, Identity, Insecurity, Path, Peer, Profile, SendError, SendOptions, Socket,
    Trust,
};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

/// Polls both in turn until `done` says so of an event of the first (0) or the second (1).
fn both(mut ends: [&mut Socket; 2], mut done: impl FnMut(usize, ConnectionId, Event) -> bool) {
    for _ in 0..20_000 {
        for (which, end) in ends.iter_mut().enumerate() {
            if let Some((connection, event)) = end.poll(Some(Duration::from_millis(1))).unwrap()
                && done(which, connection, event)
            {
                return;
            }
        }
    }
    panic!("nothing happened for long");
}

fn with_identity(own: &Identity, trust: Trust) -> Socket {
    Socket::builder().identity(own.clone(), trust).build().unwrap()
}

#[test]
fn each_end_knows_who_is_there_and_lets_in_others_later() {
    let [home, one, other] = [(); 3].map(|()| Identity::generate().unwrap());
    let mut server = with_identity(&home, Trust::Only(vec![one.fingerprint()]));
    let at = server.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    server.listen();
    let home_only = || Trust::Only(vec![home.fingerprint()]);

    let mut client = with_identity(&one, home_only());
    let there = client.connect(&[Path::to(at)]).unwrap();
    assert_eq!(client.peer(there).unwrap(), None, "nobody is there yet");
    let mut peers = [None; 2];
    let fingerprint = |peer: Option<Peer>| peer.filter(|it| it.authenticated).and_then(|it| it.fingerprint);
    let mut connected = Vec::new();
    both([&mut server, &mut client], |which, connection, event| {
        if event == Event::Connected {
            connected.push((which, connection));
        }
        connected.len() == 2
    });
    for (which, connection) in connected {
        peers[which] = fingerprint(if which == 0 { &server } else { &client }.peer(connection).unwrap());
    }
    assert_eq!(peers, [Some(one.fingerprint()), Some(home.fingerprint())]);

    let mut stranger = with_identity(&other, home_only());
    let refused = |server: &mut Socket, stranger: &mut Socket| {
        let mut why = None;
        stranger.connect(&[Path::to(at)]).unwrap();
        both([server, stranger], |which, _, event| {
            if let (1, Event::Closed { reason, .. }) = (which, &event) {
                why = Some(reason.clone());
            }
            why.is_some() || event == Event::Connected
        });
        why
    };
    let why = refused(&mut server, &mut stranger);
    assert!(matches!(why, Some(CloseReason::Insecure { why: Insecurity::NotLetIn, .. })), "{why:?}");
    assert!(!why.unwrap().may_pass());
    while server.poll(Some(Duration::from_millis(50))).unwrap().is_some() {}
    let turned_away = server.next_refused().map(|it| it.why);
    assert!(matches!(turned_away, Some(CloseReason::Insecure { why: Insecurity::WrongKey, .. })), "{turned_away:?}");
    server.set_trust(Trust::Only(vec![other.fingerprint()])).unwrap();
    assert_eq!(refused(&mut server, &mut stranger), None, "it is let in now");
    let known = [one.fingerprint().to_string()];
    assert_eq!(Trust::only(&known).unwrap(), Trust::Only(vec![one.fingerprint()]));
    assert!(matches!(Trust::only(["nobody"]), Err(Error::Fingerprint(_))));
    let mut anybody = Socket::builder().build().unwrap();
    assert!(matches!(anybody.set_trust(Trust::Anyone), Err(Error::NoIdentity)));
}

#[test]
fn an_identity_is_made_once_and_kept() {
    let folder = std::env::temp_dir().join(format!("braidcast-identity-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("own");
    let missing = Identity::load(&file).unwrap_err().to_string();
    assert!(missing.contains("own: No such file") && missing.contains("braidcast key identity"), "{missing}");
    let made = Identity::load_or_create(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    for again in [Identity::load(&file).unwrap(), Identity::load_or_create(&file).unwrap()] {
        assert_eq!(again.fingerprint(), made.fingerprint());
    }
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let warnings = with_identity(&Identity::load(&file).unwrap(), Trust::Anyone).take_warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("chmod 600"), "{warnings:?}");
    std::fs::write(&file, "not a key").unwrap();
    assert!(matches!(Identity::load(&file), Err(Error::Identity { .. })));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The name has an address of each family or of one; whichever the server does not have is passed
/// over.
#[test]
fn a_name_leads_to_whichever_of_its_addresses_answers() {
    for profile in [Profile::Live, Profile::Bulk, Profile::Voice] {
        let mut server = Socket::builder().profile(profile).build().unwrap();
        let at = server.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        server.listen();
        let mut client = Socket::builder().profile(profile).build().unwrap();
        let connection = client.connect(&[Path::to_host("localhost", at.port())]).unwrap();
        let mut name = None;
        both([&mut server, &mut client], |which, _, event| {
            if let (1, Event::PathUp { name: it, remote }) = (which, event) {
                name = Some((it, remote));
            }
            name.is_some()
        });
        assert_eq!(name, Some((format!("localhost:{}", at.port()), at)));
        client.send(connection, b"hello", &SendOptions::default()).unwrap();
        both([&mut server, &mut client], |which, _, event| which == 0 && event == Event::Readable);
    }
}

#[test]
fn a_name_without_an_address_ends_the_connection() {
    let mut client = Socket::builder().build().unwrap();
    let connection = client.connect(&["no-such-host.invalid:9".parse().unwrap()]).unwrap();
    let early = client.send(connection, b"too early", &SendOptions::default());
    assert!(matches!(early, Err(Error::Send(SendError::BufferFull { .. }))), "{early:?}");
    // A resolver without network may take a minute.
    let (id, event) = client.poll(Some(Duration::from_secs(120))).unwrap().expect("the resolver says something");
    let Event::Closed { reason, unsettled } = event else { panic!("{event:?}") };
    assert!(matches!(&reason, CloseReason::Unresolved { host, .. } if host == "no-such-host.invalid"), "{reason:?}");
    assert!(reason.may_pass() && unsettled.is_empty() && id == connection);
    let connection = client.connect(&["no-such-host.invalid:9".parse().unwrap()]).unwrap();
    client.shutdown(connection).unwrap();
    let end = Event::Closed { reason: CloseReason::Shutdown, unsettled: Vec::new() };
    assert_eq!(client.poll(PATIENCE).unwrap(), Some((connection, end)));
}

#[test]
fn a_name_that_no_path_leads_to_ends_the_connection() {
    let mut client = Socket::builder().build().unwrap();
    let connection = client.connect(&["localhost:9@nothere0".parse().unwrap()]).unwrap();
    let end = Event::Closed { reason: CloseReason::PathsFailed, unsettled: Vec::new() };
    assert_eq!(client.poll(PATIENCE).unwrap(), Some((connection, end)));
    assert_eq!(client.take_warnings(), ["no path can be used: there is no nothere0"]);
}
