//! Recently read conversations. To prepare a long conversation again for each of its pages would take time quadratic in
//! its length.
//!
//! **Invariant:** an entry is used only for the same list at the same revision, so a page is the same with and without
//! the cache.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use satchel_core::conversation_record::MessageTree;
use satchel_store::{ConversationRecord, Revision};

use super::page_token::ListId;

/// Number of messages from which on a conversation is cached. A shorter one takes less time to prepare than its page.
const MIN_MESSAGES: usize = 1_000;
/// Number of cached conversations: enough for two clients that read one, and a third that looks something up.
const MAX_LISTINGS: usize = 3;
/// Number of messages of all cached conversations, at about 300 bytes of memory each. A longer conversation is cached
/// alone.
const MAX_MESSAGES: usize = 400_000;
/// How long an entry is cached after its last use.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// How often a conversation was prepared since this process began.
static LISTINGS_PREPARED: AtomicU64 = AtomicU64::new(0);

/// Returns how often a conversation was prepared since this process began, as a measure of the work on long ones.
#[must_use]
pub fn listings_prepared() -> u64 {
    LISTINGS_PREPARED.load(Ordering::Relaxed)
}

/// A conversation prepared for a list of its messages.
pub(super) struct MessageListing {
    pub(super) record: ConversationRecord,
    pub(super) tree: MessageTree,
    /// The indexes of the messages in the list, in order.
    pub(super) selected: Vec<usize>,
}

/// The cache of prepared conversations; clones share it.
#[derive(Clone, Default)]
pub struct ListingCache(Arc<Mutex<VecDeque<CachedListing>>>);

struct CachedListing {
    list: ListId,
    revision: Revision,
    listing: Arc<MessageListing>,
    used: Instant,
}

impl ListingCache {
    /// Returns the cached entry for this list at this revision, or else the result of `prepare`.
    pub(super) fn get_or_prepare<E>(
        &self,
        list: ListId,
        revision: Revision,
        prepare: impl FnOnce() -> Result<MessageListing, E>,
    ) -> Result<Arc<MessageListing>, E> {
        let mut entries = self.entries();
        if let Some(at) = entries.iter().position(|entry| entry.list == list && entry.revision == revision)
            && let Some(entry) = entries.remove(at)
        {
            let listing = Arc::clone(&entry.listing);
            entries.push_front(CachedListing { used: Instant::now(), ..entry });
            return Ok(listing);
        }
        drop(entries);
        LISTINGS_PREPARED.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(prepare()?))
    }

    /// Caches a long conversation if more pages follow, and removes it with the last page. Returns true if the caller
    /// should also schedule its removal, in case the last page is never requested.
    pub(super) fn update(
        &self,
        list: ListId,
        revision: Revision,
        listing: &Arc<MessageListing>,
        more: bool,
    ) -> bool {
        let mut entries = self.entries();
        entries.retain(|entry| entry.list != list || entry.revision != revision);
        if !more || listing.record.heads.len() < MIN_MESSAGES {
            return false;
        }
        entries.push_front(CachedListing {
            list,
            revision,
            listing: Arc::clone(listing),
            used: Instant::now(),
        });
        let mut messages = 0;
        let fits = entries.iter().take(MAX_LISTINGS).take_while(|entry| {
            messages += entry.listing.record.heads.len();
            messages <= MAX_MESSAGES
        });
        let fits = fits.count().max(1);
        entries.truncate(fits);
        true
    }

    /// Waits, then removes entries that were not used in the meantime.
    pub(super) async fn evict_idle(self) {
        tokio::time::sleep(IDLE_TIMEOUT).await;
        self.entries().retain(|entry| entry.used.elapsed() < IDLE_TIMEOUT);
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<CachedListing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
