//! Helpers that all services share: running blocking work, the response header, filling a page.

use std::path::Path;

use prost::Message;
use satchel_proto::{signed::signed, v1};
use satchel_store::{Cursor, Page, Revision};
use tonic::{Response, Status};

use super::{
    Core,
    page::{self, ListId, Place},
    status::Fault,
};

/// Bytes at which a page ends. It leaves space for one more row below the 4 MiB that clients accept by default.
pub(super) const PAGE_BYTES: usize = 3 << 20;
/// Rows that are fetched at once, so that a page of large rows does not first collect a thousand of them.
const SLICE: usize = 50;
/// Longest id or other name in a request, in bytes.
const MAX_NAME_BYTES: usize = 1_024;
/// Longest path that is accepted, in bytes; no system accepts longer ones.
const MAX_PATH_BYTES: usize = 4_096;

/// The position and size of a requested page.
pub(super) struct Paging {
    list: ListId,
    /// The revision of the first page; `None` on the first page.
    pub(super) revision: Option<Revision>,
    /// The position in the list; `None` on the first page.
    pub(super) cursor: Option<Vec<u8>>,
    /// Largest number of rows.
    pub(super) rows: usize,
}

impl Core {
    /// Runs `work` on a thread that may block on the disk, and returns its result as the response.
    pub(super) async fn answer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Fault> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        Ok(Response::new(self.blocking(work).await?))
    }

    /// Runs `work` on a thread that may block on the disk.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Status> {
        self.plugins.pace().asked();
        let core = self.clone();
        let span = tracing::Span::current();
        let task = tokio::task::spawn_blocking(move || span.in_scope(|| work(&core)));
        let outcome = task.await.unwrap_or_else(|broken| Err(Fault::internal(broken)));
        outcome.map_err(Status::from)
    }

    /// Returns the header of a response that shows `revision`.
    pub(super) fn header_at(&self, revision: Revision) -> v1::StoreHeader {
        v1::StoreHeader { store_id: self.store.store_id().to_string(), revision: signed(revision.get()) }
    }

    /// Returns the header of a response that shows the current state of the store.
    pub(super) fn header(&self) -> v1::StoreHeader {
        self.header_at(self.store.revision())
    }

    /// Opens the page token of a list. Page size and token must be cleared in `request`.
    pub(super) fn paging(
        &self,
        method: &str,
        request: &impl Message,
        page_size: i32,
        page_token: &str,
    ) -> Result<Paging, Fault> {
        let rows =
            page::page_rows(page_size).ok_or_else(|| Fault::field("page_size", "must not be negative"))?;
        let list = ListId::of(&self.store.store_id().to_string(), method, request);
        if page_token.is_empty() {
            return Ok(Paging { list, revision: None, cursor: None, rows });
        }
        let Place { revision, cursor } = page::open(&self.page_key, list, page_token, self.now_seconds())?;
        Ok(Paging { list, revision: Some(Revision::new(revision)), cursor: Some(cursor), rows })
    }

    /// Seals the position of the next page in a token; empty after the last page.
    pub(super) fn next_token(&self, paging: &Paging, revision: Revision, cursor: Option<Vec<u8>>) -> String {
        cursor.map_or_else(String::new, |cursor| {
            let place = Place { revision: revision.get(), cursor };
            page::seal(&self.page_key, paging.list, &place, self.now_seconds())
        })
    }

    /// Returns a page of a list in memory, and the token of the next page. Page size and token must be cleared in
    /// `request`.
    pub(super) fn page_of<R: Clone, M: Message>(
        &self,
        (method, request): (&str, &impl Message),
        (size, token): (i32, &str),
        all: &[R],
        show: impl Fn(R) -> Result<M, Fault>,
    ) -> Result<(Vec<M>, String), Fault> {
        let paging = self.paging(method, request, size, token)?;
        let page = |after: Option<&Cursor>, limit| slice_page(all, after, limit);
        let (rows, next) = fill(paging.rows, paging.store_cursor(), page, show)?;
        let next = next.map(|cursor| cursor.as_bytes().to_vec());
        Ok((rows, self.next_token(&paging, self.store.revision(), next)))
    }

    fn now_seconds(&self) -> u64 {
        u64::try_from(self.clock.now_micros() / 1_000_000).unwrap_or(0)
    }
}

impl Paging {
    /// Returns the identity of the list.
    pub(super) fn list(&self) -> ListId {
        self.list
    }

    /// Returns the cursor for the store.
    pub(super) fn store_cursor(&self) -> Option<Cursor> {
        self.cursor.as_deref().map(Cursor::from_bytes)
    }
}

/// Fills a page with at most `rows` rows. It ends before the row that would exceed [`PAGE_BYTES`], unless that is the
/// first.
pub(super) fn fill<R, M: Message>(
    rows: usize,
    start: Option<Cursor>,
    fetch: impl Fn(Option<&Cursor>, usize) -> Result<Page<R>, Fault>,
    show: impl Fn(R) -> Result<M, Fault>,
) -> Result<(Vec<M>, Option<Cursor>), Fault> {
    let mut shown = Vec::new();
    let mut bytes = 0;
    let mut at = start;
    loop {
        let slice = fetch(at.as_ref(), SLICE.min(rows - shown.len()))?;
        let before = shown.len();
        let whole = slice.items.len();
        for row in slice.items {
            let row = show(row)?;
            bytes += row.encoded_len();
            if bytes > PAGE_BYTES && !shown.is_empty() {
                break;
            }
            shown.push(row);
        }
        let taken = shown.len() - before;
        if taken < whole {
            // Fetch again up to the last row that fits, because only the end of a fetched page has a cursor.
            let next = if taken == 0 { at } else { fetch(at.as_ref(), taken)?.next };
            return Ok((shown, next));
        }
        at = slice.next;
        if at.is_none() || shown.len() >= rows {
            return Ok((shown, at));
        }
    }
}

/// Returns a page of a list in memory. The cursor is the index of the next row.
pub(super) fn slice_page<T: Clone>(
    all: &[T],
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<T>, Fault> {
    let from = index_of(after)?;
    let items: Vec<T> = all.iter().skip(from).take(limit).cloned().collect();
    let end = from.saturating_add(items.len());
    Ok(Page { items, next: (end < all.len()).then(|| index_cursor(end)) })
}

/// Reads a cursor that is an index.
pub(super) fn index_of(cursor: Option<&Cursor>) -> Result<usize, Fault> {
    let Some(cursor) = cursor else { return Ok(0) };
    let bytes: [u8; 8] = cursor.as_bytes().try_into().map_err(Fault::internal)?;
    usize::try_from(u64::from_be_bytes(bytes)).map_err(Fault::internal)
}

/// Converts an index to a cursor.
pub(super) fn index_cursor(index: usize) -> Cursor {
    Cursor::from_bytes(&(index as u64).to_be_bytes())
}

/// Checks a required id or other name.
pub(super) fn required(field: &str, value: &str) -> Result<(), Fault> {
    if value.is_empty() {
        return Err(Fault::field(field, "must not be empty"));
    }
    bounded(field, value)
}

/// Checks a path on this machine.
pub(super) fn absolute(field: &str, path: &str) -> Result<(), Fault> {
    if path.len() > MAX_PATH_BYTES || !Path::new(path).is_absolute() {
        return Err(Fault::field(field, "must be an absolute path"));
    }
    Ok(())
}

/// Checks an optional id or other name.
pub(super) fn bounded(field: &str, value: &str) -> Result<(), Fault> {
    if value.len() > MAX_NAME_BYTES {
        return Err(Fault::field(field, format!("is longer than {MAX_NAME_BYTES} bytes")));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a function that lists `lengths`; each row is shown as a text of that many bytes.
    fn fetch(lengths: &[usize]) -> impl Fn(Option<&Cursor>, usize) -> Result<Page<usize>, Fault> + '_ {
        |after, limit| slice_page(lengths, after, limit)
    }

    fn text(length: usize) -> v1::MemoryId {
        v1::MemoryId { id: "x".repeat(length) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn pages_give_every_row_once_and_stay_under_the_limits(
            lengths in proptest::collection::vec(prop_oneof![0..200_usize, 600_000..1_000_000_usize], 0..130),
            rows in 1..120_usize,
        ) {
            let mut seen = Vec::new();
            let mut at = None;
            loop {
                let (page, next) = fill(rows, at, fetch(&lengths), |length| Ok(text(length))).unwrap();
                prop_assert!(page.len() <= rows);
                prop_assert!(page.iter().map(Message::encoded_len).sum::<usize>() <= PAGE_BYTES);
                prop_assert!(next.is_none() || !page.is_empty());
                seen.extend(page.iter().map(|row| row.id.len()));
                at = next;
                if at.is_none() {
                    break;
                }
            }
            prop_assert_eq!(seen, lengths);
        }
    }

    #[test]
    fn names_are_bounded() {
        assert!(required("id", "a").is_ok());
        assert!(required("id", "").is_err());
        assert!(required("id", &"a".repeat(MAX_NAME_BYTES + 1)).is_err());
        assert!(bounded("leaf_id", "").is_ok());
    }
}
