//! Places for clients over TLS that have not shown who they are: during the handshake, and after it without a certificate.
//!
//! No address keeps others from connecting: when all places are taken, the next client gets that of the client which has
//! been there longest, of those at the address with the most.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::oneshot;

/// Places of one address.
const MAX_PER_ADDRESS: usize = 16;
/// Places of all addresses.
const MAX_PLACES: usize = 128;
/// The bits of an IPv6 address that name its network. A client chooses the others as it likes.
const NETWORK: u128 = !0 << 64;

/// The places. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct UnknownClients(Arc<Mutex<Places>>);

#[derive(Debug, Default)]
struct Places {
    /// By number; a lower one was taken earlier.
    taken: BTreeMap<u64, Taken>,
    next: u64,
}

#[derive(Debug)]
struct Taken {
    origin: IpAddr,
    proved: Arc<AtomicBool>,
    /// Dropping it tells the client that its place was given to another one.
    _evict: oneshot::Sender<()>,
}

/// The place of a client. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct UnknownPlace {
    clients: UnknownClients,
    number: u64,
    /// Set once the client has shown who it is. Then it keeps its place.
    pub(super) proved: Arc<AtomicBool>,
}

/// Completes when the place of a client was given to another one.
pub(super) type Evicted = oneshot::Receiver<()>;

impl UnknownClients {
    /// Returns a place for a client of this address; `None` if the address holds too many, or no place can be freed.
    pub(super) fn admit(&self, address: IpAddr) -> Option<(UnknownPlace, Evicted)> {
        let origin = origin(address);
        let mut places = self.places();
        let of_origin = places.taken.values().filter(|taken| taken.origin == origin).count();
        if of_origin >= MAX_PER_ADDRESS || places.taken.len() >= MAX_PLACES && !places.free_one() {
            return None;
        }
        let (evict, evicted) = oneshot::channel();
        let (number, proved) = (places.next, Arc::new(AtomicBool::new(false)));
        places.next += 1;
        places.taken.insert(number, Taken { origin, proved: Arc::clone(&proved), _evict: evict });
        Some((UnknownPlace { clients: self.clone(), number, proved }, evicted))
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        // A panic between two steps could only leave a place taken that nobody has.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// Frees the oldest place of the address with the most. Returns false if all clients have shown who they are.
    fn free_one(&mut self) -> bool {
        let mut by_origin: HashMap<IpAddr, (usize, Reverse<u64>)> = HashMap::new();
        for (number, taken) in &self.taken {
            if !taken.proved.load(Ordering::Relaxed) {
                by_origin.entry(taken.origin).or_insert((0, Reverse(*number))).0 += 1;
            }
        }
        let oldest = by_origin.into_values().max().map(|(_, Reverse(oldest))| oldest);
        oldest.is_some_and(|oldest| self.taken.remove(&oldest).is_some())
    }
}

impl Drop for UnknownPlace {
    fn drop(&mut self) {
        // It is gone already if another client got it.
        self.clients.places().taken.remove(&self.number);
    }
}

/// Returns what counts as one address: for IPv6 the network, of which one machine has all addresses.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(last: usize) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, u8::try_from(last).unwrap()).into()
    }

    fn evicted(evicted: &mut Evicted) -> bool {
        evicted.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn an_address_has_some_places_and_gets_them_back() {
        let clients = UnknownClients::default();
        let held: Vec<_> = (0..MAX_PER_ADDRESS).map(|_| clients.admit(address(1)).unwrap()).collect();
        assert!(clients.admit(address(1)).is_none());
        assert!(clients.admit(address(2)).is_some());
        drop(held);
        assert!(clients.places().taken.is_empty());
    }

    #[test]
    fn a_new_address_gets_the_oldest_place_of_the_one_that_holds_the_most() {
        let clients = UnknownClients::default();
        let mut few = clients.admit(address(0)).unwrap();
        let mut held = Vec::new();
        while held.len() + 1 < MAX_PLACES {
            held.push(clients.admit(address(1 + held.len() / MAX_PER_ADDRESS)).unwrap());
        }
        for number in 0..3 * MAX_PLACES {
            let place = clients.admit(address(100 + number % 8)).unwrap();
            assert!(clients.places().taken.len() <= MAX_PLACES);
            held.push(place);
        }
        assert!(!evicted(&mut few.1), "an address with one place keeps it");
        let (_, first) = &mut held[0];
        assert!(evicted(first), "the oldest of an address with many goes first");
    }

    #[test]
    fn many_addresses_with_one_place_each_do_not_keep_a_new_one_out() {
        let clients = UnknownClients::default();
        let mut held: Vec<_> =
            (0..MAX_PLACES).map(|number| clients.admit(address(number)).unwrap()).collect();
        let mut new = clients.admit(address(200)).unwrap();
        let gone = held.iter_mut().map(|(_, place)| evicted(place)).collect::<Vec<_>>();
        assert_eq!(gone.iter().position(|gone| *gone), Some(0), "the oldest");
        assert_eq!(gone.iter().filter(|gone| **gone).count(), 1);
        assert!(!evicted(&mut new.1));
    }

    #[test]
    fn clients_that_have_shown_who_they_are_keep_their_places() {
        let clients = UnknownClients::default();
        let held: Vec<_> = (0..MAX_PLACES).map(|number| clients.admit(address(number)).unwrap()).collect();
        held.iter().for_each(|(place, _)| place.proved.store(true, Ordering::Relaxed));
        assert!(clients.admit(address(200)).is_none());
    }

    #[test]
    fn the_addresses_of_one_network_count_as_one() {
        let of = |text: &str| origin(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::7"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::7"), of("2001:db8:1:3::7"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
