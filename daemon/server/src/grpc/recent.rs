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

use satchel_core::conversation_record::Places;
use satchel_store::{ConversationRecord, Revision};

use super::page::ListId;

/// Number of messages from which on a conversation is cached. A shorter one takes less time to prepare than its page.
const LONG: usize = 1_000;
/// Number of cached conversations: enough for two clients that read one, and a third that looks something up.
const KEPT: usize = 3;
/// Number of messages of all cached conversations, at about 300 bytes of memory each. A longer conversation is cached
/// alone.
const MESSAGES: usize = 400_000;
/// How long an entry is cached after its last use.
const FOR: Duration = Duration::from_secs(20);

/// How often a conversation was prepared since this process began.
static LAID_OUT: AtomicU64 = AtomicU64::new(0);

/// Returns how often a conversation was prepared since this process began, as a measure of the work on long ones.
#[must_use]
pub fn laid_out() -> u64 {
    LAID_OUT.load(Ordering::Relaxed)
}

/// A conversation prepared for a list of its messages.
pub(super) struct Laid {
    pub(super) record: ConversationRecord,
    pub(super) places: Places,
    /// The indexes of the messages in the list, in order.
    pub(super) chosen: Vec<usize>,
}

/// The cache of prepared conversations; clones share it.
#[derive(Clone, Default)]
pub struct Recent(Arc<Mutex<VecDeque<Kept>>>);

struct Kept {
    list: ListId,
    revision: Revision,
    laid: Arc<Laid>,
    used: Instant,
}

impl Recent {
    /// Returns the cached entry for this list at this revision, or else the result of `lay`.
    pub(super) fn laid<E>(
        &self,
        list: ListId,
        revision: Revision,
        lay: impl FnOnce() -> Result<Laid, E>,
    ) -> Result<Arc<Laid>, E> {
        let mut kept = self.kept();
        if let Some(at) = kept.iter().position(|one| one.list == list && one.revision == revision)
            && let Some(one) = kept.remove(at)
        {
            let laid = Arc::clone(&one.laid);
            kept.push_front(Kept { used: Instant::now(), ..one });
            return Ok(laid);
        }
        drop(kept);
        LAID_OUT.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(lay()?))
    }

    /// Caches a long conversation if more pages follow, and removes it with the last page. Returns true if the caller
    /// should also schedule its removal, in case the last page is never requested.
    pub(super) fn keep(&self, list: ListId, revision: Revision, laid: &Arc<Laid>, more: bool) -> bool {
        let mut kept = self.kept();
        kept.retain(|one| one.list != list || one.revision != revision);
        if !more || laid.record.heads.len() < LONG {
            return false;
        }
        kept.push_front(Kept { list, revision, laid: Arc::clone(laid), used: Instant::now() });
        let mut messages = 0;
        let fits = kept.iter().take(KEPT).take_while(|one| {
            messages += one.laid.record.heads.len();
            messages <= MESSAGES
        });
        let fits = fits.count().max(1);
        kept.truncate(fits);
        true
    }

    /// Waits, then removes entries that were not used in the meantime.
    pub(super) async fn forget_later(self) {
        tokio::time::sleep(FOR).await;
        self.kept().retain(|one| one.used.elapsed() < FOR);
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
