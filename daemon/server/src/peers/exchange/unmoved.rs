//! Rounds of an exchange in which one of the stores lacked something, and nothing was moved.

use satchel_sync::Frontier;

/// How often an exchange looks again. A peer that always says something else must not keep it busy for ever.
const MAX_ROUNDS: u32 = 8;

/// What the stores had in the last such round, this one and the peer's.
#[derive(Debug, Default)]
pub(super) struct Unmoved {
    last: Option<(Frontier, Frontier)>,
    rounds: u32,
}

impl Unmoved {
    /// Notes a round, and returns whether another one may tell more: a third store may have given one of the two what was to be moved, so
    /// that `ours` or `theirs` is out of date. Only if both are the same as before does something keep the stores apart.
    pub(super) fn looks_again(&mut self, ours: &Frontier, theirs: &Frontier) -> bool {
        let now = Some((ours.clone(), theirs.clone()));
        let changed = self.last != now;
        self.last = now;
        self.rounds += 1;
        changed && self.rounds <= MAX_ROUNDS
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_sync::{ChangeHash, Counter, Head, OriginId};
    use uuid::Uuid;

    use super::*;

    fn frontier(counter: u64) -> Frontier {
        let mut frontier = Frontier::new();
        let head = Head { counter: Counter::new(counter).unwrap(), hash: ChangeHash::from_bytes([1; 32]) };
        frontier.advance(OriginId::from_uuid(Uuid::from_u128(1)), head).unwrap();
        frontier
    }

    #[test]
    fn an_exchange_looks_again_until_both_stores_have_what_they_had() {
        let mut unmoved = Unmoved::default();
        assert!(unmoved.looks_again(&frontier(1), &frontier(2)));
        assert!(unmoved.looks_again(&frontier(2), &frontier(3)), "another store has given something");
        assert!(unmoved.looks_again(&frontier(2), &frontier(4)), "and again");
        assert!(!unmoved.looks_again(&frontier(2), &frontier(4)));
    }

    #[test]
    fn a_peer_that_always_says_something_else_is_not_asked_for_ever() {
        let mut unmoved = Unmoved::default();
        let asked = (2..).take_while(|counter| unmoved.looks_again(&frontier(1), &frontier(*counter)));
        assert_eq!(asked.count(), 8);
    }
}
