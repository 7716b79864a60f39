//! Messages over several networks at once: Wi-Fi, LTE and satellite as one connection, encrypted,
//! with deadlines, without root.
//!
//! This is the library for programs. The command line is the package `braidcast-cli`; its program
//! is `braidcast` too. All that the items here name in their signatures is exported here, so that a
//! program depends on no other crate of Braidcast. What these are made of stands in crates of its
//! own: `braidcast-sctp` and `braidcast-dccp`, the protocols without I/O, and `braidcast-driver`,
//! the event loop.
//!
//! ```no_run
//! use braidcast::{Event, Path, Protection, SendOptions, Socket};
//! use std::time::Duration;
//!
//! let mut socket = Socket::new(&Protection::Key("a passphrase that both ends know".into()))?;
//! let connection = socket.connect(&["home.example:9000@wlan0".parse()?, "home.example:9000@wwan0".parse()?])?;
//! let reading = SendOptions::new().deadline(Duration::from_millis(200));
//! loop {
//!     match socket.poll(None)? {
//!         Some((_, Event::Connected { .. })) => socket.send(connection, b"21.5 C", &reading)?,
//!         Some((_, Event::Closed { reason, .. })) => break println!("{reason}"),
//!         _ => {}
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`Socket`] listens, connects, and carries the messages of all its connections; its example is a
//!   whole program. [`SocketBuilder`] has what can be set, [`Profile`] what is set for live media,
//!   bulk and voice.
//! - [`SharedSocket`] is for several threads.
//! - With the feature `tokio`, `AsyncSocket` and `Connection` are for tasks.
//! - With the feature `media`, `media::MediaSender` and `media::MediaReceiver` carry live video and audio.
#![cfg_attr(docsrs, feature(doc_cfg))]

/// Live media: a transport stream, or access units, in at one end and out on time at the other.
#[cfg(feature = "media")]
pub use braidcast_live as media;
pub use braidcast_socket::*;

#[cfg(test)]
mod tests {
    use super::*;

    const fn can_move<T: Send>() {}
    const fn can_be_shared<T: Send + Sync>() {}

    // What may go to another thread is part of the interface. These fail to compile, and never at run time.
    const _: () = {
        can_move::<Socket>();
        can_be_shared::<SharedSocket>();
        can_be_shared::<Closing>();
        can_be_shared::<Waker>();
    };

    macro_rules! can_all_be_shared {
        ($($name:ty),*) => {
            const _: () = { $(can_be_shared::<$name>();)* };
        };
    }
    can_all_be_shared! {
        SocketBuilder, Profile, Options, SendOptions, Protection, Secured, Identity, Trust, Fingerprint, Path, Target, Via,
        ConnectionId, Event, Received, Timing, Peer, Refused, PathReport, PathState, CloseReason, Insecurity, Instant,
        RateLimits, RateOptions, RateReport, FecCode, SchedulerKind
    }
    can_all_be_shared! { Error, BindError, LinksError, ConnectError, JoinError, SendError, SecretError, Misuse }

    #[cfg(feature = "tokio")]
    mod tasks {
        use super::*;
        use std::time::Duration;

        can_all_be_shared! { AsyncSocket, Connection, Message, Incoming, Messages, ConnectionEvents }

        const fn can_go<T: Send>(_: &T) {}

        // The executors of programs move tasks between threads.
        #[expect(dead_code, reason = "it is compiled, and that is the test")]
        fn futures(socket: &AsyncSocket, connection: &Connection, paths: &[Path], how: &SendOptions) {
            can_go(&socket.accept());
            can_go(&socket.connect(paths));
            can_go(&socket.close(Duration::ZERO));
            can_go(&connection.send(b"", how));
            can_go(&connection.recv());
            can_go(&connection.event());
            can_go(&connection.shutdown());
            can_go(&connection.closed());
        }
    }

    #[cfg(feature = "media")]
    mod live {
        use super::*;
        use crate::media::*;

        can_all_be_shared! {
            MediaSender, MediaReceiver, MediaSenderBuilder, MediaReceiverBuilder, SenderEvent, ReceiverEvent, AccessUnit, Track,
            Report, Permit, Admission, Farewell, StartError, SenderOptions, ReceiverOptions, crate::media::Error
        }

        #[cfg(feature = "tokio")]
        can_all_be_shared! { SenderEvents, ReceiverEvents }
    }
}
