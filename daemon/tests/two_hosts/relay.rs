//! A network in user space that delays packets, loses some of them, and loses all of a link that is cut. The kernel can do that too, with
//! the queueing discipline `netem`, but many kernels are built without it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use satchel_tests::generate::Rng;
use tempfile::TempDir;

use crate::home::LONG;

/// Largest packet that passes.
pub(crate) const MAX_PACKET_BYTES: usize = 1_500;
/// How long a packet is on the way. An answer takes as long again.
pub(crate) const DELAY: Duration = Duration::from_millis(200);
/// How many packets are lost.
const LOSS_PERCENT: u64 = 5;
/// Packets on the way at the same time. As in a router, further ones are lost.
const MAX_QUEUED: usize = 10_000;

/// The network. The machines on it are the [`Tunnel`](crate::tunnel::Tunnel)s that are connected to it.
pub(crate) struct Relay {
    folder: TempDir,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Two machines that can reach each other without a third one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link(Ipv4Addr, Ipv4Addr);

/// What happens when a number of packets has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing but that [`Relay::wait`] returns.
    Continue,
    /// From then on, packets are lost.
    Cut,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) delivered: u64,
    /// At random, not because a link was cut.
    pub(crate) lost: u64,
}

struct Shared {
    traffic: Mutex<Traffic>,
    /// Wakes when an event of [`Traffic::awaited`] has happened.
    happened: Condvar,
}

struct Traffic {
    random: Rng,
    cut: BTreeSet<Link>,
    /// What happens after how many more packets with data.
    awaited: BTreeMap<Link, (u64, Then)>,
    counts: Counts,
}

struct Packet {
    due: Instant,
    to: Ipv4Addr,
    bytes: Vec<u8>,
}

/// Where the relay takes packets.
pub(crate) fn socket_of_relay(folder: &Path) -> PathBuf {
    folder.join("relay")
}

/// Where the machine with this address takes packets.
pub(crate) fn socket_of_machine(folder: &Path, address: Ipv4Addr) -> PathBuf {
    folder.join(address.to_string())
}

impl Relay {
    /// Returns a network without machines. The same `seed` draws the same random numbers.
    pub(crate) fn start(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(socket_of_relay(folder.path())).unwrap();
        let traffic = Traffic {
            random: Rng::new(seed),
            cut: BTreeSet::new(),
            awaited: BTreeMap::new(),
            counts: Counts::default(),
        };
        let shared = Arc::new(Shared { traffic: Mutex::new(traffic), happened: Condvar::new() });
        let (sender, receiver) = sync_channel(MAX_QUEUED);
        let (sending, folder_of_sockets) = (socket.try_clone().unwrap(), folder.path().to_owned());
        let routing = Arc::clone(&shared);
        let threads = vec![
            thread::spawn(move || take(&socket, &routing, &sender)),
            thread::spawn(move || deliver(&sending, &folder_of_sockets, &receiver)),
        ];
        Self { folder, shared, threads }
    }

    /// Where the sockets are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Cuts a link: what is sent is lost, and nothing tells either side so.
    pub(crate) fn cut(&self, link: Link) {
        self.shared.lock().cut.insert(link);
    }

    pub(crate) fn join(&self, link: Link) {
        self.shared.lock().cut.remove(&link);
    }

    pub(crate) fn is_cut(&self, link: Link) -> bool {
        self.shared.lock().cut.contains(&link)
    }

    /// Lets something happen once so many packets with data have passed a link, which is in the middle of what the machines exchange.
    pub(crate) fn after(&self, link: Link, packets: u64, then: Then) {
        self.shared.lock().awaited.insert(link, (packets, then));
    }

    /// Waits until that has happened.
    pub(crate) fn wait(&self, link: Link) {
        let Shared { happened, .. } = &*self.shared;
        let pending = |traffic: &mut Traffic| traffic.awaited.contains_key(&link);
        let (traffic, waited) = happened.wait_timeout_while(self.shared.lock(), LONG, pending).unwrap();
        assert!(!waited.timed_out(), "too few packets pass {link:?}: {:?}", traffic.awaited);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.shared.lock().counts
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // An empty packet ends the first thread, and that the other one.
        let woken =
            UnixDatagram::unbound().and_then(|socket| socket.send_to(&[], socket_of_relay(self.folder())));
        assert!(woken.is_ok() || thread::panicking(), "{woken:?}");
        for ended in self.threads.drain(..).map(JoinHandle::join) {
            assert!(ended.is_ok() || thread::panicking(), "a thread of the relay panicked");
        }
    }
}

impl Link {
    pub(crate) fn between(a: Ipv4Addr, b: Ipv4Addr) -> Self {
        Self(a.min(b), a.max(b))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap()
    }

    /// Returns where a packet goes, if it is not lost.
    fn route(&self, packet: &[u8]) -> Option<Ipv4Addr> {
        let (from, to) = ends(packet)?;
        let mut traffic = self.lock();
        let passes = traffic.passes(Link::between(from, to), carries_data(packet));
        self.happened.notify_all();
        passes.then_some(to)
    }
}

impl Traffic {
    fn passes(&mut self, link: Link, data: bool) -> bool {
        if self.cut.contains(&link) {
            return false;
        }
        if self.random.chance(LOSS_PERCENT) {
            self.counts.lost += 1;
            return false;
        }
        self.counts.delivered += 1;
        if let Some((packets, then)) = self.awaited.get_mut(&link).filter(|_| data) {
            *packets = packets.saturating_sub(1);
            if *packets == 0 {
                let cuts = *then == Then::Cut;
                self.awaited.remove(&link);
                self.cut.extend(cuts.then_some(link));
            }
        }
        true
    }
}

/// Takes packets from the machines until an empty one comes.
fn take(socket: &UnixDatagram, shared: &Shared, queue: &SyncSender<Packet>) {
    let mut buffer = [0; MAX_PACKET_BYTES];
    loop {
        let length = socket.recv(&mut buffer).unwrap();
        if length == 0 {
            return;
        }
        let bytes = &buffer[..length];
        if let Some(to) = shared.route(bytes) {
            // It fails if the queue is full, or the test ends.
            drop(queue.try_send(Packet { due: Instant::now() + DELAY, to, bytes: bytes.to_vec() }));
        }
    }
}

/// Delivers packets when they are due. All take equally long, so none overtakes another.
fn deliver(socket: &UnixDatagram, folder: &Path, queue: &Receiver<Packet>) {
    for Packet { due, to, bytes } in queue {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // It fails if there is no such machine, or it is gone.
        drop(socket.send_to(&bytes, socket_of_machine(folder, to)));
    }
}

/// Returns the addresses of an IPv4 packet (RFC 791, 3.1).
fn ends(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let address = |at: usize| packet.get(at..at + 4)?.first_chunk::<4>().copied().map(Ipv4Addr::from);
    let version = packet.first()? >> 4;
    (version == 4).then_some((address(12)?, address(16)?))
}

/// Returns whether a packet of TCP (RFC 9293, 3.1) has more than its headers.
fn carries_data(packet: &[u8]) -> bool {
    // Both headers say how many words of four bytes they have, in half a byte.
    let bytes = |at: usize, shift: u8| packet.get(at).map_or(0, |byte| usize::from(byte >> shift & 0xf) * 4);
    let header = bytes(0, 0);
    packet.len() > header + bytes(header + 12, 4)
}
