//! Frontiers and changes of the exchange between stores.

use std::collections::BTreeSet;

use satchel_core::sync::{PayloadRange, Refused, is_file_recipient};
use satchel_proto::{integers::signed, v1};
use satchel_sync::{
    ChangeError, ChangeHash, Counter, Frontier, Head, OriginId, SignedChange,
    limits::{MAX_ORIGINS, VERSION},
};
use uuid::Uuid;

use super::WireError;
use crate::peers::PeerIdentity;

/// Longest age recipient, in bytes.
const MAX_RECIPIENT_BYTES: usize = 256;

/// Converts a frontier to the wire.
#[must_use]
pub fn frontier_to_wire(frontier: &Frontier) -> v1::Frontier {
    let head = |(origin, head): (OriginId, Head)| v1::SeriesHead {
        origin: origin.to_string(),
        counter: signed(head.counter.get()),
        change_sha256: head.hash.as_bytes().to_vec(),
    };
    v1::Frontier { heads: frontier.heads().map(head).collect() }
}

/// Reads a frontier.
///
/// # Errors
/// Too many heads, or one that is not valid; two of one series.
pub fn frontier_from_wire(wire: v1::Frontier) -> Result<Frontier, WireError> {
    let invalid = |problem: &str| WireError::new("frontier.heads", problem);
    if wire.heads.len() > MAX_ORIGINS {
        return Err(invalid("are more than 1,024"));
    }
    let mut frontier = Frontier::new();
    for v1::SeriesHead { origin, counter, change_sha256 } in wire.heads {
        let origin = Uuid::parse_str(&origin).map_err(|_| invalid("have an origin that is no UUID"))?;
        let origin = OriginId::from_uuid(origin);
        let counter = u64::try_from(counter).ok().and_then(Counter::new);
        let counter = counter.ok_or_else(|| invalid("have a counter that no change has"))?;
        let hash = change_sha256.try_into().map_err(|_| invalid("have a hash that has not 32 bytes"))?;
        if frontier.head(origin).is_some() {
            return Err(invalid("have a series twice"));
        }
        let head = Head { counter, hash: ChangeHash::from_bytes(hash) };
        frontier.advance(origin, head).map_err(|_| invalid("contradict each other"))?;
    }
    Ok(frontier)
}

/// Converts a change that was refused to the wire.
#[must_use]
pub fn refused_to_wire(refused: &Refused) -> v1::RefusedChange {
    let Refused { origin, counter, error } = refused;
    v1::RefusedChange {
        origin: origin.to_string(),
        counter: signed(counter.get()),
        problem: error.to_string(),
    }
}

/// Reads what a peer says about itself. Empty texts say nothing.
///
/// # Errors
/// The origin is no UUID, or the recipient no age recipient.
pub(crate) fn identity_from_wire(origin: &str, recipient: String) -> Result<PeerIdentity, WireError> {
    let parsed = (!origin.is_empty()).then(|| Uuid::parse_str(origin)).transpose();
    let origin = parsed.map_err(|_| WireError::new("origin", "is no UUID"))?.map(OriginId::from_uuid);
    if !recipient.is_empty() && (recipient.len() > MAX_RECIPIENT_BYTES || !is_file_recipient(&recipient)) {
        return Err(WireError::new("file_recipient", "is no age recipient"));
    }
    Ok(PeerIdentity { origin, recipient: (!recipient.is_empty()).then_some(recipient) })
}

/// Converts a run of changes to the wire.
#[must_use]
pub fn range_to_wire(range: &PayloadRange) -> v1::ChangeRange {
    let PayloadRange { origin, first, last } = range;
    v1::ChangeRange { origin: origin.to_string(), first: signed(first.get()), last: signed(last.get()) }
}

/// Reads a run of changes.
///
/// # Errors
/// The origin is no UUID, or the counters are not those of a run.
pub fn range_from_wire(wire: v1::ChangeRange) -> Result<PayloadRange, WireError> {
    let v1::ChangeRange { origin, first, last } = wire;
    let invalid = |problem: &str| WireError::new("ranges", problem);
    let origin = Uuid::parse_str(&origin).map_err(|_| invalid("have an origin that is no UUID"))?;
    let counter = |counter: i64| u64::try_from(counter).ok().and_then(Counter::new);
    match (counter(first), counter(last)) {
        (Some(first), Some(last)) if first <= last => {
            Ok(PayloadRange { origin: OriginId::from_uuid(origin), first, last })
        }
        _ => Err(invalid("have counters that are not the first and the last one of a run")),
    }
}

/// Changes that a peer has sent.
#[derive(Debug, Default)]
pub struct WireChanges {
    /// Those that this program can read. Only their form was checked.
    pub changes: Vec<SignedChange>,
    /// The first one of each series that a newer program wrote in another format. What follows it in its series is left out.
    pub newer: Vec<v1::RefusedChange>,
}

/// Reads changes.
///
/// # Errors
/// Bytes that are no change in any format.
pub fn changes_from_wire(wire: &[Vec<u8>]) -> Result<WireChanges, ChangeError> {
    let (mut read, mut stopped) = (WireChanges::default(), BTreeSet::new());
    for bytes in wire {
        match SignedChange::decode(bytes) {
            Ok(change) if stopped.contains(&change.change().origin) => {}
            Ok(change) => read.changes.push(change),
            Err(error @ ChangeError::UnknownVersion { origin, counter, found }) if found > VERSION => {
                if stopped.insert(origin) {
                    let (origin, problem) = (origin.to_string(), format!("{error}; use a newer satchel"));
                    read.newer.push(v1::RefusedChange { origin, counter: signed(counter), problem });
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_frontier_survives_the_wire_and_a_wrong_one_is_refused() {
        let mut frontier = Frontier::new();
        for n in 1..4_u8 {
            let head =
                Head { counter: Counter::new(u64::from(n)).unwrap(), hash: ChangeHash::from_bytes([n; 32]) };
            frontier.advance(OriginId::from_uuid(Uuid::from_u128(n.into())), head).unwrap();
        }
        let wire = frontier_to_wire(&frontier);
        assert_eq!(frontier_from_wire(wire.clone()).unwrap(), frontier);
        let wrong = |change: &dyn Fn(&mut v1::SeriesHead)| {
            let mut wire = wire.clone();
            change(&mut wire.heads[1]);
            frontier_from_wire(wire).unwrap_err().to_string()
        };
        assert!(wrong(&|head| head.origin = "x".to_owned()).contains("UUID"));
        assert!(wrong(&|head| head.counter = 0).contains("counter"));
        assert!(wrong(&|head| head.counter = -1).contains("counter"));
        assert!(wrong(&|head| head.change_sha256.truncate(31)).contains("32 bytes"));
        let first = wire.heads[0].origin.clone();
        assert!(wrong(&|head| head.origin.clone_from(&first)).contains("twice"));
        let many = v1::Frontier { heads: vec![wire.heads[0].clone(); MAX_ORIGINS + 1] };
        assert!(frontier_from_wire(many).is_err());
        assert!(changes_from_wire(&[vec![1, 2, 3]]).is_err());
    }

    #[test]
    fn a_range_survives_the_wire_and_a_wrong_one_is_refused() {
        let (first, last) = (Counter::new(3).unwrap(), Counter::new(5).unwrap());
        let range = PayloadRange { origin: OriginId::from_uuid(Uuid::from_u128(7)), first, last };
        let wire = range_to_wire(&range);
        assert_eq!(range_from_wire(wire.clone()).unwrap(), range);
        for wrong in [
            v1::ChangeRange { origin: "x".to_owned(), ..wire.clone() },
            v1::ChangeRange { first: 0, ..wire.clone() },
            v1::ChangeRange { last: 2, ..wire.clone() },
            v1::ChangeRange { last: -1, ..wire },
        ] {
            assert!(range_from_wire(wrong).is_err());
        }
    }

    #[test]
    fn a_change_of_a_newer_program_stops_its_own_series_only() {
        let series = |seed: u8| {
            let key = satchel_sync::SigningKey::from_bytes(&[seed; 32]);
            let (mut author, genesis) =
                satchel_sync::Author::begin(key, [seed; 16], &Frontier::new()).unwrap();
            let next = author.append(satchel_sync::Kind(1), vec![seed], &Frontier::new()).unwrap();
            [genesis, next]
        };
        let ([genesis, next], other) = (series(1), series(2));
        let mut newer = genesis.encode();
        newer[1] = 2;
        newer.truncate(30);
        let wire = [newer, next.encode(), other[0].encode(), other[1].encode()];
        let WireChanges { changes, newer } = changes_from_wire(&wire).unwrap();
        assert_eq!(changes, other);
        assert_eq!((newer.len(), newer[0].counter), (1, 1));
        assert_eq!(newer[0].origin, genesis.change().origin.to_string());
        assert!(newer[0].problem.contains("format 2"), "{newer:?}");
    }
}
