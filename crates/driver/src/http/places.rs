//! Who may be connected at a time, and who goes for a newcomer.

use braidcast_core::{NoRoom, Strangers};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections of each kind at a time: those whose request is not there yet, those that are answered, and those that
/// know the password.
pub const MOST_CONNECTIONS: usize = 32;
/// Threads at a time: those who have to go leave a moment later.
const MOST_THREADS: usize = 4 * MOST_CONNECTIONS;
/// Wrong passwords that wait for their answer at a time. More are cut off.
const MOST_WRONG: usize = 8;
/// Among readers of one network the oldest has this time before it goes for another. A request has none: it comes
/// with the packet that opens the connection, or a round trip later.
const READ: Duration = Duration::from_secs(5);

/// The places of one server's connections. Those who say nothing, and those who read without end, hold theirs only as
/// long as nobody else asks: then the oldest of the network with most places goes ([`Strangers`]). Who knows the
/// password never goes for those who do not.
pub(super) struct Places {
    begin: Instant,
    table: Mutex<Table>,
}

struct Table {
    next: u64,
    threads: usize,
    wrong: usize,
    members: usize,
    asking: Strangers<u64>,
    reading: Strangers<u64>,
    /// By which the streams of those who may have to go are closed.
    streams: HashMap<u64, TcpStream>,
}

impl Table {
    /// A stranger comes to one of the pools, and the one who goes for it is cut off.
    fn come(
        &mut self,
        pool: fn(&mut Self) -> &mut Strangers<u64>,
        now: Duration,
        host: IpAddr,
        id: u64,
    ) -> Result<(), NoRoom> {
        let now = braidcast_core::Instant::ZERO + now;
        if let Some(other) = pool(self).make_room(now, host)?
            && let Some(stream) = self.streams.remove(&other)
        {
            // It may be gone already.
            let _gone = stream.shutdown(Shutdown::Both);
        }
        pool(self).enter(now, host, id);
        Ok(())
    }
}

/// One connection's place, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    id: u64,
    host: IpAddr,
    is_member: bool,
}

impl Places {
    pub(super) fn new() -> Self {
        let table = Table {
            next: 0,
            threads: 0,
            wrong: 0,
            members: 0,
            asking: Strangers::bounded(MOST_CONNECTIONS, Duration::ZERO),
            reading: Strangers::bounded(MOST_CONNECTIONS, READ),
            streams: HashMap::new(),
        };
        Self { begin: Instant::now(), table: Mutex::new(table) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection comes, and its request has yet to.
    ///
    /// # Errors
    /// There are too many, or too few descriptors.
    pub(super) fn enter(self: &Arc<Self>, stream: &TcpStream) -> io::Result<Place> {
        let (host, own) = (stream.peer_addr()?.ip(), stream.try_clone()?);
        let mut table = self.table();
        let id = table.next;
        if table.threads >= MOST_THREADS || table.come(|it| &mut it.asking, self.begin.elapsed(), host, id).is_err() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        table.next += 1;
        table.threads += 1;
        table.streams.insert(id, own);
        Ok(Place { places: Arc::clone(self), id, host, is_member: false })
    }
}

impl Place {
    /// Its request is there and is now answered. Returns `false` if there is no room among those who read.
    pub(super) fn read(&mut self, knows_password: bool) -> bool {
        let mut table = self.places.table();
        table.asking.leave(self.id);
        if !knows_password {
            return table.come(|it| &mut it.reading, self.places.begin.elapsed(), self.host, self.id).is_ok();
        }
        table.streams.remove(&self.id);
        self.is_member = table.members < MOST_CONNECTIONS;
        table.members += usize::from(self.is_member);
        self.is_member
    }

    /// A wrong password came: waits for `penance`. Returns `false` at once if too many wait.
    pub(super) fn repent(&self, penance: Duration) -> bool {
        {
            let mut table = self.places.table();
            if table.wrong >= MOST_WRONG {
                return false;
            }
            table.wrong += 1;
        }
        std::thread::sleep(penance);
        self.places.table().wrong -= 1;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.places.table();
        table.threads -= 1;
        table.members -= usize::from(self.is_member);
        table.asking.leave(self.id);
        table.reading.leave(self.id);
        table.streams.remove(&self.id);
    }
}
