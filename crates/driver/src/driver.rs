use crate::clock::{Alarm, Clock};
use crate::outgoing::Outgoing;
use crate::signal::Interrupts;
use crate::socket::{Slots, Socket};
use crate::tap::Tap;
use crate::watch::{InterfaceChange, Watch};
use braidcast_core::{Instant, LATE_WAKE, Machine, SocketId};
use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::thread::{Timespec, nanosleep};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

mod inputs;
mod sockets;
mod waiting;

use inputs::Input;
pub use inputs::{Direction, InputId};
use sockets::OnOpen;
use waiting::Waiting;

const ALARM: Token = Token(0);
const INTERRUPT: Token = Token(1);
const WATCH: Token = Token(2);
const WAKER: Token = Token(3);
/// Sockets have the tokens from here on, by their number.
const FIRST_SOCKET: usize = 1 << 16;
/// Registered file descriptors have the tokens from here on.
const FIRST_INPUT: usize = 2 << 16;
/// Batches that are read after such a pause before timers are looked at: all that a receive buffer
/// holds, as a rule.
const READS_AFTER_A_PAUSE: usize = 256;
/// Longer than that a machine's timers cannot wait.
const MOST_GATHER: Duration = Duration::from_millis(10);
/// What one turn sends at most, in transmits, before it looks at timers and sockets again.
const TRANSMITS_PER_TURN: usize = 64;

/// What ended a call of [`Driver::drive`].
///
/// Whatever it is, the machine may have been fed meanwhile: drain its events each time.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Wake {
    /// The machine got datagrams or its timer ran out; nothing else happened.
    Machine,
    /// A registered file descriptor can be read or written.
    Input(InputId),
    /// Interfaces appeared, vanished, or changed their addresses; none of that, and routes changed.
    Interfaces(Vec<InterfaceChange>),
    /// SIGINT, SIGTERM or SIGHUP came; one within a second after another is the same one. The third
    /// ends the process at once.
    Interrupt,
    /// SIGHUP came, if [`Driver::reload_on_hangup`] was called.
    Reload,
    /// A [`Waker`] was called, perhaps several times.
    Called,
    /// The time that the caller gave has come.
    Until,
}

/// Makes a [`Driver`] that waits, or is about to, return with [`Wake::Called`], from any thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<mio::Waker>);

impl Waker {
    /// Wakes the driver. Nothing happens if it is gone.
    pub fn wake(&self) {
        // It fails only where the descriptor is gone, which the driver and every waker share.
        _ = self.0.wake();
    }
}

/// What one turn of the loop came to.
enum Turn {
    Woke(Wake),
    /// There may be more to do at once.
    Again,
    /// There is nothing to do before the file descriptor is readable.
    Idle,
}

/// Runs a [`Machine`] on real sockets and the real clock, in the caller's thread.
///
/// Each turn handles the timers that are due, sends what the machine wants sent, waits, and reads
/// at most one batch per socket, so that neither a flood of datagrams nor a talkative machine can
/// starve timers, other sockets, inputs or signals.
#[derive(Debug)]
pub struct Driver {
    clock: Clock,
    poll: Poll,
    waiting: Waiting,
    alarm: Alarm,
    sockets: BTreeMap<SocketId, Socket>,
    /// The socket opened last, or one before the first.
    last_socket: u16,
    inputs: BTreeMap<InputId, Input>,
    /// Inputs so far.
    input_count: usize,
    waker: Option<Waker>,
    interrupts: Option<Interrupts>,
    watch: Option<Watch>,
    slots: Slots,
    out: Outgoing,
    /// What happened and was not reported yet. At most one per input, one interrupt, and the
    /// interface changes.
    wakes: VecDeque<Wake>,
    /// Transmits for sockets that are not there (any more).
    misrouted: u64,
    tap: Option<Box<dyn Tap>>,
    on_open: OnOpen,
    /// See [`Driver::gather`].
    gather: Duration,
    /// When the sockets were read last.
    read_at: Instant,
}

impl Driver {
    /// A driver without sockets, whose clock starts at zero now.
    pub fn new() -> io::Result<Self> {
        Self::with_clock(Clock::new())
    }

    /// The same with the clock of another one: for threads whose machines share what they know.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn with_clock(clock: Clock) -> io::Result<Self> {
        let (poll, alarm) = (Poll::new()?, Alarm::new(clock)?);
        poll.registry().register(&mut SourceFd(&alarm.raw_fd()), ALARM, Interest::READABLE)?;
        Ok(Self {
            clock,
            poll,
            waiting: Waiting::new(),
            alarm,
            sockets: BTreeMap::new(),
            last_socket: u16::MAX,
            inputs: BTreeMap::new(),
            input_count: 0,
            waker: None,
            interrupts: None,
            watch: None,
            slots: Slots::new(),
            out: Outgoing::default(),
            wakes: VecDeque::new(),
            misrouted: 0,
            tap: None,
            on_open: OnOpen::default(),
            gather: Duration::ZERO,
            read_at: Instant::ZERO,
        })
    }

    /// The time now, counted from when the driver was made. It never goes back, and runs on while
    /// the computer sleeps.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The driver's clock, for other threads.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Lets datagrams gather for this long, from 0 to 10 ms: once the sockets are empty nothing is waited for before
    /// that, neither timers nor signals. For a program through which the datagrams of many pass at any time, as a
    /// network card moderates its interrupts: to wake up for each of them costs more than to read it.
    pub fn gather(&mut self, time: Duration) {
        self.gather = time.min(MOST_GATHER);
    }

    /// Has each socket that is open remember for this many peers at a time by which of our addresses they are reached;
    /// 4,096 without it. It remembers twice as many at most, some 100 bytes each: those that left are forgotten later.
    pub fn expect_peers(&mut self, peers: usize) {
        self.sockets.values_mut().for_each(|socket| socket.expect_peers(peers));
    }

    /// Has `tap` hear every datagram from now on.
    pub fn listen_in(&mut self, tap: Box<dyn Tap>) {
        self.tap = Some(tap);
    }

    /// Closes a socket. What the machine still sends through it is dropped and counted. Does
    /// nothing if it is closed.
    pub fn unbind(&mut self, id: SocketId) {
        // Closing takes it out of epoll, too.
        self.sockets.remove(&id);
    }

    /// The socket `id`, if it is open.
    pub fn socket(&self, id: SocketId) -> Option<&Socket> {
        self.sockets.get(&id)
    }

    pub(crate) fn socket_mut(&mut self, id: SocketId) -> Option<&mut Socket> {
        self.sockets.get_mut(&id)
    }

    /// The open sockets, by id.
    pub fn sockets(&self) -> impl Iterator<Item = (SocketId, &Socket)> {
        self.sockets.iter().map(|(id, socket)| (*id, socket))
    }

    /// How many transmits named a socket that is not open.
    pub fn misrouted(&self) -> u64 {
        self.misrouted
    }

    /// Turns SIGINT, SIGTERM and SIGHUP into [`Wake::Interrupt`], for the whole process. One within
    /// a second after another is the same one; the third ends the process at once, with exit status
    /// 128 + signal.
    pub fn catch_interrupts(&mut self) -> io::Result<()> {
        let interrupts = Interrupts::catch()?;
        self.poll.registry().register(&mut SourceFd(&interrupts.raw_fd()), INTERRUPT, Interest::READABLE)?;
        self.interrupts = Some(interrupts);
        Ok(())
    }

    /// SIGHUP asks for what is configured to be read again from now on ([`Wake::Reload`]), and ends
    /// nothing. After [`catch_interrupts`](Self::catch_interrupts).
    pub fn reload_on_hangup(&self) {
        self.interrupts.iter().for_each(Interrupts::reload_on_hangup);
    }

    /// Returns `true` if SIGTERM has come: the system, not a user, wants the program to end.
    pub fn is_terminated(&self) -> bool {
        self.interrupts.as_ref().is_some_and(Interrupts::is_terminated)
    }

    /// Reports from now on, as [`Wake::Interfaces`], what changes about the interfaces and routes of
    /// this machine.
    pub fn watch_interfaces(&mut self) -> io::Result<()> {
        if self.watch.is_some() {
            return Ok(());
        }
        let watch = Watch::new()?;
        self.poll.registry().register(&mut SourceFd(&watch.raw_fd()), WATCH, Interest::READABLE)?;
        self.watch = Some(watch);
        Ok(())
    }

    /// What other threads wake this driver with.
    ///
    /// # Errors
    /// The first time: no file descriptor is left.
    pub fn waker(&mut self) -> io::Result<Waker> {
        if let Some(waker) = &self.waker {
            return Ok(waker.clone());
        }
        let waker = Waker(Arc::new(mio::Waker::new(self.poll.registry(), WAKER)?));
        Ok(self.waker.insert(waker).clone())
    }

    /// Runs `machine` until something happens that the caller may want to look at, or until
    /// `until`.
    ///
    /// Errors are those of the operating system's polling itself; what fails on a socket is counted
    /// there.
    pub fn drive<M: Machine>(&mut self, machine: &mut M, until: Option<Instant>) -> io::Result<Wake> {
        let mut fed = false;
        loop {
            if let Turn::Woke(wake) = self.turn(machine, until, &mut fed, true)? {
                return Ok(wake);
            }
        }
    }

    /// The same without waiting, for programs that wait elsewhere. Call it until it returns `None`,
    /// after each call to the machine too; then wait until this driver's file descriptor
    /// ([`AsRawFd`]) is readable. Datagrams, timers and `until` make it readable.
    ///
    /// # Errors
    /// As [`drive`](Self::drive).
    pub fn try_drive<M: Machine>(&mut self, machine: &mut M, until: Option<Instant>) -> io::Result<Option<Wake>> {
        let mut fed = false;
        loop {
            match self.turn(machine, until, &mut fed, false)? {
                Turn::Woke(wake) => return Ok(Some(wake)),
                Turn::Idle => return Ok(None),
                Turn::Again => {}
            }
        }
    }

    /// Runs one turn of the loop. `fed`: the machine got something in the turns so far.
    fn turn<M: Machine>(
        &mut self,
        machine: &mut M,
        until: Option<Instant>,
        fed: &mut bool,
        may_wait: bool,
    ) -> io::Result<Turn> {
        let mut now = self.now();
        if is_late(machine, now) {
            *fed |= self.read_first(machine)?;
            now = self.now();
        }
        *fed |= handle_due_timer(machine, now);
        let more = self.flush(machine, now)?;
        let rested = self.end_rests(now);
        if let Some(wake) = self.wakes.pop_front() {
            return Ok(Turn::Woke(wake));
        }
        let deadline = [machine.poll_timeout(), until, rested].into_iter().flatten().min();
        let busy = *fed || more || self.sockets.values().any(Socket::is_readable);
        let busy = busy || deadline.is_some_and(|at| at <= now);
        if may_wait && !busy {
            self.let_gather(now);
        }
        self.wait(busy, may_wait, deadline)?;
        let now = self.now();
        self.end_rests(now);
        *fed |= self.receive(machine, now);
        // If this process did not run for a while, the next turn reads on before its timers.
        if *fed || !is_late(machine, now) {
            *fed |= handle_due_timer(machine, now);
        }
        if *fed {
            self.flush(machine, now)?;
        }
        if let Some(wake) = self.wakes.pop_front() {
            return Ok(Turn::Woke(wake));
        }
        if until.is_some_and(|at| at <= now) {
            return Ok(Turn::Woke(Wake::Until));
        }
        if *fed {
            return Ok(Turn::Woke(Wake::Machine));
        }
        Ok(if busy || !self.waiting.ready.is_empty() { Turn::Again } else { Turn::Idle })
    }

    fn let_gather(&self, now: Instant) {
        let left = self.gather.saturating_sub(now.since(self.read_at));
        if let Ok(time) = Timespec::try_from(left)
            && !left.is_zero()
        {
            // A signal ends it early, which is as good.
            let _ = nanosleep(&time);
        }
    }

    /// This process did not run for a while: what came meanwhile goes to the machine before its
    /// timers, which may wait for just that. Returns `true` if there was anything.
    fn read_first<M: Machine>(&mut self, machine: &mut M) -> io::Result<bool> {
        self.wait(true, false, None)?;
        let mut fed = false;
        for _ in 0..READS_AFTER_A_PAUSE {
            let now = self.now();
            if !self.receive(machine, now) {
                break;
            }
            fed = true;
        }
        Ok(fed)
    }

    /// Sends what waits and what the machine has to send. Returns `true` if it may have more.
    fn flush<M: Machine>(&mut self, machine: &mut M, now: Instant) -> io::Result<bool> {
        for _ in 0..TRANSMITS_PER_TURN {
            let Some((transmit, payload)) = self.out.next(machine, now) else { return Ok(false) };
            let id = transmit.route.socket;
            let Some(socket) = self.sockets.get_mut(&id) else {
                self.misrouted += 1;
                continue;
            };
            if let Some(tap) = &mut self.tap {
                tap.sent(now, socket.local_addr(), &transmit, payload);
            }
            let was_blocked = socket.is_blocked();
            socket.send(&transmit, payload);
            if socket.is_blocked() && !was_blocked {
                // Only now: a socket that is always watched for writability wakes us for each
                // packet that leaves.
                let both = Interest::READABLE | Interest::WRITABLE;
                self.poll.registry().reregister(&mut SourceFd(&socket.raw_fd()), socket_token(id), both)?;
            }
        }
        Ok(true)
    }

    /// Polls once, and notes what is ready; waits only if it `may_wait` and is not `busy`.
    fn wait(&mut self, busy: bool, may_wait: bool, deadline: Option<Instant>) -> io::Result<()> {
        let always_ready = self.renew_inputs()?;
        if !self.look(busy || always_ready, may_wait, deadline)? {
            return Ok(());
        }
        for place in 0..self.waiting.ready.len() {
            let event = self.waiting.ready[place];
            match event.token {
                ALARM => self.alarm.rang(),
                WAKER if self.wakes.contains(&Wake::Called) => {}
                WAKER => self.wakes.push_back(Wake::Called),
                INTERRUPT => {
                    if self.interrupts.as_mut().is_some_and(Interrupts::take) {
                        self.wakes.push_front(Wake::Interrupt);
                    }
                    if self.interrupts.as_ref().is_some_and(Interrupts::take_reload) {
                        self.wakes.push_back(Wake::Reload);
                    }
                }
                WATCH => {
                    let changes = self.watch.as_mut().map_or(Ok(Vec::new()), Watch::changes)?;
                    // Route after route may change: one wake is for all.
                    if !changes.is_empty() || !self.wakes.contains(&Wake::Interfaces(Vec::new())) {
                        self.wakes.push_back(Wake::Interfaces(changes));
                    }
                }
                Token(token) if token >= FIRST_INPUT => {
                    let id = InputId(token - FIRST_INPUT);
                    if let Some(input) = self.inputs.get_mut(&id) {
                        input.reported = true;
                        self.wakes.push_back(Wake::Input(id));
                    }
                }
                token @ Token(number) => {
                    let id = u16::try_from(number - FIRST_SOCKET).map(SocketId);
                    let Some(socket) = id.ok().and_then(|id| self.sockets.get_mut(&id)) else { continue };
                    if event.readable {
                        socket.set_readable();
                    }
                    if socket.is_blocked() && event.writable {
                        socket.send_backlog();
                        if !socket.is_blocked() {
                            let fd = socket.raw_fd();
                            self.poll.registry().reregister(&mut SourceFd(&fd), token, Interest::READABLE)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads one batch from each readable socket. Returns `true` if the machine got anything.
    fn receive<M: Machine>(&mut self, machine: &mut M, now: Instant) -> bool {
        let mut datagrams = 0;
        for (&id, socket) in &mut self.sockets {
            if socket.is_readable() {
                let (local, tap) = (socket.local_addr(), &mut self.tap);
                datagrams += socket.receive(id, &mut self.slots, |datagram| {
                    if let Some(tap) = tap {
                        tap.received(now, local, &datagram);
                    }
                    machine.handle_datagram(now, datagram);
                    machine.heard()
                });
            }
        }
        if datagrams > 0 {
            self.read_at = now;
        }
        datagrams > 0
    }
}

/// Readable when [`try_drive`](Driver::try_drive) has something to do. It is the driver's; do not
/// close or change it.
impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.registry().as_fd()
    }
}

/// The same as [`AsFd`] has it.
impl AsRawFd for Driver {
    fn as_raw_fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }
}

/// Returns `true` if a timer was due for so long that this process did not run meanwhile.
fn is_late<M: Machine>(machine: &M, now: Instant) -> bool {
    machine.poll_timeout().is_some_and(|at| now.since(at) > LATE_WAKE)
}

/// Returns `true` if a timer was due.
fn handle_due_timer<M: Machine>(machine: &mut M, now: Instant) -> bool {
    let due = machine.poll_timeout().is_some_and(|at| at <= now);
    if due {
        machine.handle_timeout(now);
    }
    due
}

fn socket_token(id: SocketId) -> Token {
    Token(FIRST_SOCKET + usize::from(id.0))
}

#[cfg(test)]
mod tests;
