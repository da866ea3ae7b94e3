//! Conversations of which pages were asked for a moment ago: to lay out a long one for each of its pages would take the square of its
//! length in all.
//!
//! **Invariant:** one is found only for the same list at the same revision, so a page is the same whether it was kept or not.

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

/// Messages from which on a conversation is kept: laying out a shorter one takes less than its page.
const LONG: usize = 1_000;
/// Conversations that are kept: two clients that read, and one that looks something up.
const KEPT: usize = 3;
/// Messages of all that are kept, some 300 bytes of memory each; a longer conversation is kept alone.
const MESSAGES: usize = 400_000;
/// How long one is kept that nobody asks for.
const FOR: Duration = Duration::from_secs(20);

/// How often one was laid out since this process began.
static LAID_OUT: AtomicU64 = AtomicU64::new(0);

/// Returns how often a conversation was laid out since this process began: what the work on long ones follows.
#[must_use]
pub fn laid_out() -> u64 {
    LAID_OUT.load(Ordering::Relaxed)
}

/// A conversation, laid out for a list of its messages.
pub(super) struct Laid {
    pub(super) record: ConversationRecord,
    pub(super) places: Places,
    /// The places of the messages that the list holds, in order.
    pub(super) chosen: Vec<usize>,
}

/// Those that are kept; clones share them.
#[derive(Clone, Default)]
pub struct Recent(Arc<Mutex<VecDeque<Kept>>>);

struct Kept {
    list: ListId,
    revision: Revision,
    laid: Arc<Laid>,
    used: Instant,
}

impl Recent {
    /// What was laid out for this list at this revision; else what `lay` makes.
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

    /// Keeps a long one, as there are more pages of it; with the last page it goes. True: somebody should see to it that it goes too
    /// where the last page is never asked for.
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

    /// Waits until one that nobody asks for has gone.
    pub(super) async fn forget_later(self) {
        tokio::time::sleep(FOR).await;
        self.kept().retain(|one| one.used.elapsed() < FOR);
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
