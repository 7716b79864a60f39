//! RFC 6525 with usrsctp: each end resets and adds streams of each direction.

use braidcast_interop::Ours;
use braidcast_interop::usrsctp::{Telling, build, free_port};
use braidcast_sctp::{AssociationId, Event, Options, SendOptions, StreamChange, StreamRequest};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

struct Talk {
    ours: Ours,
    id: AssociationId,
    theirs: Telling,
    /// What the peer said so far.
    said: Vec<String>,
    /// What came back, by stream.
    came: Vec<(u16, Vec<u8>)>,
}

impl Talk {
    fn send(&mut self, stream: u16, text: &str) {
        let how = SendOptions { stream, ..SendOptions::default() };
        self.ours.with(self.id, |it, now| it.send(now, text.as_bytes(), how)).unwrap().unwrap();
    }

    fn ask(&mut self, request: StreamRequest) {
        self.ours.with(self.id, |it, now| it.reconfigure(now, request)).unwrap().unwrap();
    }

    /// Waits until the peer has said all `lines` and we have heard of all `changes`, since the last
    /// time; in whatever order.
    fn until(&mut self, what: &str, lines: &[&str], changes: &[StreamChange]) {
        let Self { ours, id, theirs, said, came } = self;
        ours.until(LIMIT, what, |ours| {
            said.extend(core::iter::from_fn(|| theirs.line()));
            let mut buf = Vec::new();
            ours.with(*id, |it, now| {
                while let Some(info) = it.recv(now, &mut buf) {
                    came.push((info.stream, buf.clone()));
                }
            });
            let told = |change: &StreamChange| ours.events.contains(&(*id, Event::StreamsChanged(change.clone())));
            lines.iter().all(|line| said.iter().any(|it| it == line)) && changes.iter().all(told)
        });
        let refused = ours.events.iter().find(|(_, event)| matches!(event, Event::StreamsRefused(..)));
        assert_eq!(refused, None, "{what}: {said:?}");
        assert!(!said.iter().any(|line| line.contains("denied") || line.contains("failed")), "{what}: {said:?}");
        said.clear();
        ours.events.retain(|(_, event)| !matches!(event, Event::StreamsChanged(_)));
    }
}

#[test]
fn usrsctp_and_we_reset_and_add_streams_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build("usrsctp_streams", folder.path()) else { return };
    let (udp, port) = (free_port().unwrap(), 5009);
    let theirs = Telling::start(&program, &[&udp.to_string(), &port.to_string()]).unwrap();
    let options = Options::live().with(|it| it.reconfiguration = true);
    let mut ours = Ours::new(options);
    let id = ours.connect(udp, port);
    ours.until(LIMIT, "connected", |ours| ours.events.contains(&(id, Event::Connected)));
    let mut talk = Talk { ours, id, theirs, said: Vec::new(), came: Vec::new() };

    talk.send(1, "one");
    talk.send(1, "two");
    talk.until("two messages", &["got 1 0", "got 1 1"], &[]);
    talk.ask(StreamRequest::ResetOutgoing(vec![1]));
    talk.send(1, "three");
    talk.until("our reset", &["reset in 1", "got 1 0"], &[StreamChange::OutgoingReset(vec![1])]);

    talk.ask(StreamRequest::ResetIncoming(vec![1]));
    talk.until("the reset that we asked for", &["reset out 1"], &[StreamChange::IncomingReset(vec![1])]);
    talk.send(1, "four");
    talk.send(1, "reset-out 1");
    talk.until("its reset", &["got 1 1", "asked ok", "reset out 1"], &[StreamChange::IncomingReset(vec![1])]);
    talk.send(1, "reset-in 1");
    talk.until("the reset that it asked for", &["asked ok", "reset in 1"], &[StreamChange::OutgoingReset(vec![1])]);
    talk.send(1, "five");
    talk.until("after four resets", &["got 1 0"], &[]);

    talk.ask(StreamRequest::AddOutgoing(3));
    talk.until("streams of ours", &[], &[StreamChange::Outgoing(67)]);
    talk.send(66, "six");
    talk.until("on a new stream", &["got 66 0"], &[]);
    talk.ask(StreamRequest::AddIncoming(2));
    talk.until("streams of its that we asked for", &[], &[StreamChange::Incoming(12)]);
    talk.send(0, "add-out 3");
    talk.until("streams of its", &["asked ok"], &[StreamChange::Incoming(15)]);

    let came = &mut talk.came;
    let id = talk.id;
    talk.ours.until(LIMIT, "all echoes", |ours| {
        let mut buf = Vec::new();
        ours.with(id, |it, now| {
            while let Some(info) = it.recv(now, &mut buf) {
                came.push((info.stream, buf.clone()));
            }
        });
        // It has fewer streams than we: the message on stream 66 does not come back.
        came.len() == 5
    });
    let texts: Vec<_> = came.iter().map(|(stream, text)| (*stream, std::str::from_utf8(text).unwrap())).collect();
    assert_eq!(texts, [(1, "one"), (1, "two"), (1, "three"), (1, "four"), (1, "five")]);
}
