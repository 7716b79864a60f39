//! Somebody on the path who hears all that two programs say to each other, and may change it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// Who sent a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum From {
    /// Who connects.
    Client,
    /// Who waits for it.
    Server,
}

/// What is to become of a datagram.
pub(crate) enum Action {
    /// It goes on, as it is now.
    Pass,
    /// Nobody gets it.
    Drop,
    /// Its sender gets this for it.
    Answer(Vec<u8>),
}

/// What went by, in turn.
pub(crate) type Heard = Vec<(From, Vec<u8>)>;

/// Between clients and a server.
pub(crate) struct Between {
    /// Port that clients take for the server's.
    pub(crate) port: u16,
    heard: Arc<Mutex<Heard>>,
}

impl Between {
    /// Passes everything on to the server at this port, and back to who sent last.
    pub(crate) fn listening(server: u16) -> Self {
        Self::meddling(server, |_, _| Action::Pass)
    }

    /// The same, where `meddle` may change each datagram and says what becomes of it.
    pub(crate) fn meddling(server: u16, mut meddle: impl FnMut(From, &mut Vec<u8>) -> Action + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (port, heard) = (socket.local_addr().unwrap().port(), Arc::default());
        let kept: Arc<Mutex<Heard>> = Arc::clone(&heard);
        std::thread::spawn(move || {
            let (server, mut client, mut buf) = (SocketAddr::from(([127, 0, 0, 1], server)), None, vec![0; 65_536]);
            while let Ok((len, sender)) = socket.recv_from(&mut buf) {
                let (from, to) = if sender == server {
                    (From::Server, client)
                } else {
                    client = Some(sender);
                    (From::Client, Some(server))
                };
                let mut datagram = buf[..len].to_vec();
                kept.lock().unwrap().push((from, datagram.clone()));
                // Nobody is there any more: as on any network, nothing comes of it.
                let _ = match (meddle(from, &mut datagram), to) {
                    (Action::Pass, Some(to)) => socket.send_to(&datagram, to),
                    (Action::Answer(answer), _) => socket.send_to(&answer, sender),
                    _ => Ok(0),
                };
            }
        });
        Self { port, heard }
    }

    /// All that was sent so far.
    pub(crate) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }
}
