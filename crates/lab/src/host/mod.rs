//! Hosts: a protocol endpoint with its traffic and its measures, as one machine, so that the same host runs in the
//! simulator and on real sockets.

mod dccp;
mod encoder;
mod frame_log;
mod jitter_buffers;
mod live;
mod plain;
mod rank;
mod samples;
mod sctp;
mod window;

pub use dccp::{DccpHost, DccpSample};
pub use encoder::Rate;
pub use frame_log::{Frame, FrameId, FrameLog};
pub use jitter_buffers::JitterBuffers;
pub use live::{Came, Camera, LiveReceiver, LiveSample, LiveSender, Taken};
pub use plain::PlainHost;
pub use samples::Samples;
pub use sctp::{Arrival, Delivered, Header, SctpHost, SctpReceiver, SctpSender, Snapshot};
pub use window::Window;

use braidcast_core::{Datagram, Instant, Machine, Route, Transmit};
use braidcast_sim::traffic::DatagramSink;
use std::net::SocketAddr;

/// Any host of an experiment.
#[derive(Debug)]
pub enum Host {
    /// Sends over SCTP.
    SctpSender(Box<SctpHost<SctpSender>>),
    /// Takes what comes over SCTP.
    SctpReceiver(Box<SctpHost<SctpReceiver>>),
    /// Either end of a DCCP connection.
    Dccp(Box<DccpHost>),
    /// Sends a clip as `braidcast send` does.
    LiveSender(Box<LiveSender>),
    /// Takes a clip as `braidcast receive` does.
    LiveReceiver(Box<LiveReceiver>),
    /// TCP, or datagrams.
    Plain(Box<PlainHost>),
}

/// Does the same with whichever host it is.
macro_rules! each {
    ($host:expr, $it:ident => $do:expr) => {
        match $host {
            Host::SctpSender($it) => $do,
            Host::SctpReceiver($it) => $do,
            Host::Dccp($it) => $do,
            Host::LiveSender($it) => $do,
            Host::LiveReceiver($it) => $do,
            Host::Plain($it) => $do,
        }
    };
}

impl Host {
    /// Sets the host's routes, one for each of its paths, and the addresses of its ends. Called
    /// once, before anything else.
    pub fn open(&mut self, routes: &[Route], local: &[SocketAddr]) {
        match self {
            Self::SctpSender(host) => host.open(routes),
            Self::SctpReceiver(host) => host.open(routes),
            Self::Dccp(host) => host.open(routes, local),
            Self::LiveSender(host) => host.open(routes),
            // It answers whoever comes.
            Self::LiveReceiver(_) => {}
            Self::Plain(host) => host.open(routes),
        }
    }

    /// Returns `true` if it has measured all that it is to measure.
    pub fn is_finished(&self, now: Instant) -> bool {
        match self {
            Self::SctpSender(host) => host.is_finished(),
            Self::SctpReceiver(host) => host.is_finished(),
            Self::Dccp(host) => host.is_finished(),
            Self::LiveSender(host) => host.window().is_over(now),
            Self::LiveReceiver(host) => host.window().is_over(now),
            Self::Plain(host) => host.window().is_over(now),
        }
    }

    /// When it counts.
    pub fn window(&self) -> &Window {
        each!(self, it => it.window())
    }

    /// The frames that its application sent over SCTP, DCCP or UDP, or those that came, if the scenario asks for a log.
    pub fn frame_log(&self) -> Option<&FrameLog> {
        match self {
            Self::SctpSender(host) => host.part().frame_log.as_ref(),
            Self::SctpReceiver(host) => host.part().frame_log.as_ref(),
            Self::Dccp(host) => host.frame_log.as_ref(),
            Self::Plain(host) => host.frame_log(),
            Self::LiveSender(_) | Self::LiveReceiver(_) => None,
        }
    }

    /// The SCTP sender that it is, if it is one.
    pub fn sctp_sender(&self) -> Option<&SctpSender> {
        if let Self::SctpSender(host) = self { Some(host.part()) } else { None }
    }

    /// The SCTP receiver that it is, if it is one.
    pub fn sctp_receiver(&self) -> Option<&SctpReceiver> {
        if let Self::SctpReceiver(host) = self { Some(host.part()) } else { None }
    }

    /// The sender of a clip that it is, if it is one.
    pub fn live_sender(&self) -> Option<&LiveSender> {
        if let Self::LiveSender(host) = self { Some(host) } else { None }
    }

    /// The receiver of a clip that it is, if it is one.
    pub fn live_receiver(&self) -> Option<&LiveReceiver> {
        if let Self::LiveReceiver(host) = self { Some(host) } else { None }
    }

    /// The TCP or datagram host that it is, if it is one.
    pub fn plain(&self) -> Option<&PlainHost> {
        if let Self::Plain(host) = self { Some(host) } else { None }
    }

    /// The end of a DCCP connection that it is, if it is one.
    pub fn dccp(&self) -> Option<&DccpHost> {
        if let Self::Dccp(host) = self { Some(host) } else { None }
    }

    /// What it measured of messages that came over DCCP or as datagrams, stream by stream.
    pub fn sink(&self) -> Option<&DatagramSink> {
        match self {
            Self::Dccp(host) => Some(&host.arrived),
            Self::Plain(host) => host.sink(),
            Self::SctpSender(_) | Self::SctpReceiver(_) | Self::LiveSender(_) | Self::LiveReceiver(_) => None,
        }
    }

    /// Who listens to what came over DCCP or as datagrams, if somebody does.
    pub fn jitter_buffers(&self) -> Option<&JitterBuffers> {
        match self {
            Self::Dccp(host) => host.jitter_buffers.as_ref(),
            Self::Plain(host) => host.jitter_buffers(),
            Self::SctpSender(_) | Self::SctpReceiver(_) | Self::LiveSender(_) | Self::LiveReceiver(_) => None,
        }
    }

    /// Bits in a second that it handed to its application, while it counted; none for a sender.
    pub fn goodput(&self) -> Option<f64> {
        match self {
            Self::SctpSender(_) | Self::LiveSender(_) | Self::LiveReceiver(_) => None,
            Self::SctpReceiver(host) => Some(host.part().delivered.goodput()),
            Self::Dccp(host) => host.goodput(),
            Self::Plain(host) => host.goodput(),
        }
    }
}

impl Machine for Host {
    /// Hosts keep their measures until the end and tell nothing before.
    type Event = core::convert::Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        each!(self, it => it.handle_datagram(now, datagram));
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(self, it => it.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        each!(self, it => it.poll_transmit(now, buf))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        each!(self, it => it.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
}
