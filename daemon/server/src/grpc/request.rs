//! Helpers that all services share: running blocking work, the response header, filling a page.

use std::path::Path;

use prost::Message;
use satchel_store::{Cursor, Page, Revision};

use super::{
    call_state::CallState,
    page_token::{self, ListId, PagePosition},
    status::CallError,
};

/// Bytes at which a page ends. It leaves space for one more row below the 4 MiB that clients accept by default.
pub(super) const PAGE_BYTES: usize = 3 << 20;
/// Rows that are fetched at once, so that a page of large rows does not first collect a thousand of them.
const FETCH_ROWS: usize = 50;
/// Longest id or other name in a request, in bytes.
const MAX_NAME_BYTES: usize = 1_024;
/// Longest path that is accepted, in bytes; no system accepts longer ones.
const MAX_PATH_BYTES: usize = 4_096;

/// The position and size of a requested page.
pub(super) struct PageRequest {
    pub(super) list: ListId,
    /// The revision that all pages show.
    pub(super) revision: Revision,
    /// The position in the list; `None` on the first page.
    pub(super) cursor: Option<Cursor>,
    /// Largest number of rows.
    pub(super) rows: usize,
}

impl CallState {
    /// Returns the revision that a request asks for; without one, the current revision.
    pub(super) fn as_of(&self, wire: Option<i64>) -> Result<Revision, CallError> {
        let current = self.store.revision();
        let Some(wire) = wire else { return Ok(current) };
        let revision = u64::try_from(wire).ok().map(Revision::new).filter(|revision| *revision <= current);
        revision.ok_or_else(|| {
            let problem = format!("must lie between 0 and {}, the current revision", current.get());
            CallError::invalid_field("as_of_revision", problem)
        })
    }

    /// Opens the page token of a list. Page size and token must be cleared in `request`.
    pub(super) fn page_request(
        &self,
        method: &str,
        request: &impl Message,
        page_size: i32,
        page_token: &str,
    ) -> Result<PageRequest, CallError> {
        let rows = page_token::page_size(page_size)
            .ok_or_else(|| CallError::invalid_field("page_size", "must not be negative"))?;
        let device = self.device().map_or("", |device| device.id.as_str());
        let list = ListId::of(&self.store.store_id().to_string(), device, method, request);
        if page_token.is_empty() {
            return Ok(PageRequest { list, revision: self.store.revision(), cursor: None, rows });
        }
        let PagePosition { revision, cursor } =
            page_token::open(&self.page_key, list, page_token, self.now_seconds())?;
        let (revision, cursor) = (Revision::new(revision), Some(Cursor::from_bytes(&cursor)));
        Ok(PageRequest { list, revision, cursor, rows })
    }

    /// Seals the position of the next page in a token; empty after the last page.
    pub(super) fn next_token(&self, page: &PageRequest, next: Option<&Cursor>) -> String {
        next.map_or_else(String::new, |cursor| {
            let position = PagePosition { revision: page.revision.get(), cursor: cursor.as_bytes().to_vec() };
            page_token::seal(&self.page_key, page.list, &position, self.now_seconds())
        })
    }

    /// Returns the rows of a page, and the token of the next page.
    pub(super) fn fill<R, M: Message>(
        &self,
        page: &PageRequest,
        fetch: impl Fn(Option<&Cursor>, usize) -> Result<Page<R>, CallError>,
        show: impl Fn(R) -> Result<M, CallError>,
    ) -> Result<(Vec<M>, String), CallError> {
        self.fill_visible(page, fetch, |row| show(row).map(Some))
    }

    /// Returns the rows of a page that `show` does not leave out, and the token of the next page.
    pub(super) fn fill_visible<R, M: Message>(
        &self,
        page: &PageRequest,
        fetch: impl Fn(Option<&Cursor>, usize) -> Result<Page<R>, CallError>,
        show: impl Fn(R) -> Result<Option<M>, CallError>,
    ) -> Result<(Vec<M>, String), CallError> {
        let (rows, next) = fill_page(page.rows, page.cursor.clone(), fetch, show)?;
        Ok((rows, self.next_token(page, next.as_ref())))
    }

    /// Returns a page of a list in memory, and the token of the next page.
    pub(super) fn fill_from<R: Clone, M: Message>(
        &self,
        page: &PageRequest,
        all: &[R],
        show: impl Fn(R) -> Result<M, CallError>,
    ) -> Result<(Vec<M>, String), CallError> {
        self.fill(page, |after, limit| slice_page(all, after, limit), show)
    }

    fn now_seconds(&self) -> u64 {
        u64::try_from(self.clock.now_micros() / 1_000_000).unwrap_or(0)
    }
}

/// Opens the page token of a list request, which has the fields `page_size` and `page_token`.
macro_rules! page_request {
    ($state:ident, $method:literal, $request:ident) => {{
        let size = std::mem::take(&mut $request.page_size);
        let token = std::mem::take(&mut $request.page_token);
        $state.page_request($method, &$request, size, &token)
    }};
}
pub(super) use page_request;

/// Implements a service whose methods run on threads that may block on the disk, one line for each method:
/// `method: Request => Response = function;`. A method whose function only reads a few records is marked by `[short]`
/// before its name; see [`CallState::respond_short`](super::call_state::CallState::respond_short). Other items of the
/// service follow after `..`.
macro_rules! service {
    ($service:ident for $handler:ident {
        $([short] $short:ident: $short_request:ident => $short_response:ident = $short_function:path;)*
        $($method:ident: $request:ident => $response:ident = $function:path;)+
        $(.. $($other:tt)+)?
    }) => {
        #[tonic::async_trait]
        impl $service for $handler {
            $(async fn $short(
                &self,
                request: tonic::Request<satchel_proto::v1::$short_request>,
            ) -> Result<tonic::Response<satchel_proto::v1::$short_response>, tonic::Status> {
                let state = $crate::grpc::call_state::CallState::of(&self.0, &request)?;
                let request = request.into_inner();
                state.respond_short(move |state| $short_function(state, request)).await
            })*
            $(async fn $method(
                &self,
                request: tonic::Request<satchel_proto::v1::$request>,
            ) -> Result<tonic::Response<satchel_proto::v1::$response>, tonic::Status> {
                let state = $crate::grpc::call_state::CallState::of(&self.0, &request)?;
                let request = request.into_inner();
                state.respond(move |state| $function(state, request)).await
            })+
            $($($other)+)?
        }
    };
}
pub(super) use service;

/// Fills a page with at most `rows` rows. It ends before the row that would exceed [`PAGE_BYTES`], unless that is the
/// first. Rows for which `show` returns `None` are left out.
fn fill_page<R, M: Message>(
    rows: usize,
    start: Option<Cursor>,
    fetch: impl Fn(Option<&Cursor>, usize) -> Result<Page<R>, CallError>,
    show: impl Fn(R) -> Result<Option<M>, CallError>,
) -> Result<(Vec<M>, Option<Cursor>), CallError> {
    let mut filled = Vec::new();
    let mut bytes = 0;
    let mut at = start;
    let mut limit = FETCH_ROWS.min(rows);
    loop {
        let slice = fetch(at.as_ref(), limit)?;
        let fetched = slice.items.len();
        let (mut taken, mut left_out) = (0, 0);
        for row in slice.items {
            if filled.len() == rows {
                break;
            }
            if let Some(row) = show(row)? {
                bytes += row.encoded_len();
                if bytes > PAGE_BYTES && !filled.is_empty() {
                    break;
                }
                filled.push(row);
            } else {
                left_out += 1;
            }
            taken += 1;
        }
        if taken < fetched {
            // Fetch again up to the last row that fits, because only the end of a fetched page has a cursor.
            let next = if taken == 0 { at } else { fetch(at.as_ref(), taken)?.next };
            return Ok((filled, next));
        }
        at = slice.next;
        if at.is_none() || filled.len() >= rows {
            return Ok((filled, at));
        }
        // Where rows are left out, as many again are probably needed to find the rest.
        limit = if left_out > 0 { FETCH_ROWS } else { FETCH_ROWS.min(rows - filled.len()) };
    }
}

/// Returns a page of a list in memory. The cursor is the index of the next row.
pub(super) fn slice_page<T: Clone>(
    all: &[T],
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<T>, CallError> {
    let from = index_of(after)?;
    let items: Vec<T> = all.iter().skip(from).take(limit).cloned().collect();
    let end = from.saturating_add(items.len());
    Ok(Page { items, next: (end < all.len()).then(|| index_cursor(end)) })
}

/// Reads a cursor that is an index.
pub(super) fn index_of(cursor: Option<&Cursor>) -> Result<usize, CallError> {
    let Some(cursor) = cursor else { return Ok(0) };
    let bytes: [u8; 8] = cursor.as_bytes().try_into().map_err(CallError::internal)?;
    usize::try_from(u64::from_be_bytes(bytes)).map_err(CallError::internal)
}

/// Converts an index to a cursor.
pub(super) fn index_cursor(index: usize) -> Cursor {
    Cursor::from_bytes(&(index as u64).to_be_bytes())
}

/// Checks a required id or other name.
pub(super) fn check_required(field: &str, value: &str) -> Result<(), CallError> {
    if value.is_empty() {
        return Err(CallError::invalid_field(field, "must not be empty"));
    }
    check_length(field, value)
}

/// Checks a path on this machine.
pub(super) fn check_absolute(field: &str, path: &str) -> Result<(), CallError> {
    if path.len() > MAX_PATH_BYTES || !Path::new(path).is_absolute() {
        return Err(CallError::invalid_field(field, "must be an absolute path"));
    }
    Ok(())
}

/// Checks an optional id or other name.
pub(super) fn check_length(field: &str, value: &str) -> Result<(), CallError> {
    if value.len() > MAX_NAME_BYTES {
        return Err(CallError::invalid_field(field, format!("is longer than {MAX_NAME_BYTES} bytes")));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;
    use satchel_proto::v1;

    use super::*;

    /// Returns a function that lists `lengths`; each row is shown as a text of that many bytes.
    fn fetch(lengths: &[usize]) -> impl Fn(Option<&Cursor>, usize) -> Result<Page<usize>, CallError> + '_ {
        |after, limit| slice_page(lengths, after, limit)
    }

    fn text(length: usize) -> v1::MemoryId {
        v1::MemoryId { id: "x".repeat(length) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn pages_return_every_row_once_and_stay_within_the_limits(
            lengths in proptest::collection::vec(prop_oneof![0..200_usize, 600_000..1_000_000_usize], 0..130),
            hidden_every in 1..6_usize,
            rows in 1..120_usize,
        ) {
            let mut seen = Vec::new();
            let mut at = None;
            let shown = |length: &usize| hidden_every == 1 || !length.is_multiple_of(hidden_every);
            loop {
                let show = |length| Ok(shown(&length).then(|| text(length)));
                let (page, next) = fill_page(rows, at, fetch(&lengths), show).unwrap();
                prop_assert!(page.len() <= rows);
                prop_assert!(page.iter().map(Message::encoded_len).sum::<usize>() <= PAGE_BYTES);
                prop_assert!(next.is_none() || !page.is_empty());
                prop_assert!(next != Some(index_cursor(0)));
                seen.extend(page.iter().map(|row| row.id.len()));
                at = next;
                if at.is_none() {
                    break;
                }
            }
            prop_assert_eq!(seen, lengths.into_iter().filter(|length| shown(length)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn names_are_bounded() {
        assert!(check_required("id", "a").is_ok());
        assert!(check_required("id", "").is_err());
        assert!(check_required("id", &"a".repeat(MAX_NAME_BYTES + 1)).is_err());
        assert!(check_length("leaf_id", "").is_ok());
    }
}
