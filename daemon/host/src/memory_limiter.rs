//! A limit on the memory of one run, summed over all its linear memories.

use wasmtime::ResourceLimiter;

/// Python components need 21 instances; the rest is reserve.
const MAX_INSTANCES: usize = 200;
const MAX_TABLES: usize = 200;
const MAX_MEMORIES: usize = 50;
/// Elements of all tables together; each is a pointer.
const MAX_TABLE_ELEMENTS: usize = 100_000;

/// A limiter that refuses growth beyond a sum and remembers the refusal. After a refusal, a guest's allocator traps
/// with `unreachable`, which does not show the reason.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    max_bytes: usize,
    bytes: usize,
    table_elements: usize,
    denied: bool,
}

impl MemoryLimiter {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, bytes: 0, table_elements: 0, denied: false }
    }

    /// Returns the bytes of all memories together. Memories never shrink.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether growth was refused since the last `clear_denied`.
    pub(crate) fn denied(&self) -> bool {
        self.denied
    }

    /// Clears the refusal. The guest continued after it, so a later trap has another reason.
    pub(crate) fn clear_denied(&mut self) {
        self.denied = false;
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let sum = self.bytes.saturating_add(desired.saturating_sub(current));
        if sum > self.max_bytes {
            self.denied = true;
            return Ok(false);
        }
        // Growth beyond the memory's own maximum fails without a further call to the limiter.
        if maximum.is_none_or(|maximum| desired <= maximum) {
            self.bytes = sum;
        }
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let sum = self.table_elements.saturating_add(desired.saturating_sub(current));
        if sum > MAX_TABLE_ELEMENTS {
            return Ok(false);
        }
        if maximum.is_none_or(|maximum| desired <= maximum) {
            self.table_elements = sum;
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grow(limiter: &mut MemoryLimiter, current: usize, desired: usize) -> bool {
        limiter.memory_growing(current, desired, None).is_ok_and(|allowed| allowed)
    }

    #[test]
    fn memories_are_summed() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(grow(&mut limiter, 0, 60));
        assert!(grow(&mut limiter, 0, 40));
        assert!(!grow(&mut limiter, 40, 41));
        assert!(limiter.denied());
        assert_eq!(limiter.bytes(), 100);
    }

    #[test]
    fn a_refusal_is_remembered_until_cleared() {
        let mut limiter = MemoryLimiter::new(10);
        assert!(!grow(&mut limiter, 0, 11));
        assert!(limiter.denied());
        limiter.clear_denied();
        assert!(!limiter.denied());
    }

    #[test]
    fn growth_that_fails_by_its_own_maximum_is_not_charged() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(limiter.memory_growing(0, 80, Some(50)).is_ok_and(|allowed| allowed));
        assert!(grow(&mut limiter, 0, 90));
    }

    #[test]
    fn tables_are_summed() {
        let mut limiter = MemoryLimiter::new(0);
        assert!(limiter.table_growing(0, 60_000, None).is_ok_and(|allowed| allowed));
        assert!(limiter.table_growing(0, 60_000, None).is_ok_and(|allowed| !allowed));
    }
}
