//! Fetches the pages of a list, and finds the one record for an abbreviated id.

use super::error::CliError;

/// Rows per page when many are wanted; the most that the daemon returns.
const MAX_PAGE_SIZE: usize = 1_000;
/// Minimum length of an abbreviated id, in characters; a shorter one is more often a mistake than intended.
pub(super) const MIN_PREFIX_LENGTH: usize = 4;
/// Maximum number of candidates that are listed for an ambiguous id.
const MAX_CANDIDATES: usize = 5;

/// One page, as the daemon returned it.
pub(crate) struct ResultPage<T> {
    pub rows: Vec<T>,
    /// Empty on the last page.
    pub next: String,
}

/// The rows that a list shows, and how many it leaves out.
#[derive(Debug)]
pub(crate) struct Listing<T> {
    pub rows: Vec<T>,
    pub remaining: Remaining,
}

/// Number of rows after those shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    Nothing,
    Exactly(u64),
    /// At least this many; counting all of them would take long.
    AtLeast(u64),
}

impl Remaining {
    /// Returns whether there are more rows.
    pub(crate) fn more(self) -> bool {
        self != Self::Nothing
    }

    /// Returns the line below a list.
    pub(crate) fn hint(self) -> Option<String> {
        let number = super::text::number;
        match self {
            Self::Nothing => None,
            Self::Exactly(n) => Some(format!("{} more; use --limit N or --all to show them", number(n))),
            Self::AtLeast(n) => {
                Some(format!("more than {} more; use --limit N or --all to show them", number(n)))
            }
        }
    }
}

/// Collects `want` rows (`None`: all), and counts the remaining rows within one further page.
///
/// # Errors
/// Returns the errors of `fetch`, which is called with a page size and a token.
pub(crate) async fn collect_rows<T>(
    max_rows: Option<usize>,
    mut fetch: impl AsyncFnMut(i32, String) -> Result<ResultPage<T>, CliError>,
) -> Result<Listing<T>, CliError> {
    let max_rows = max_rows.unwrap_or(usize::MAX);
    let (mut rows, mut token) = (Vec::new(), String::new());
    loop {
        let page = fetch(page_size(max_rows - rows.len()), token).await?;
        rows.extend(page.rows);
        token = page.next;
        if token.is_empty() || rows.len() >= max_rows {
            break;
        }
    }
    let surplus = rows.len().saturating_sub(max_rows);
    rows.truncate(max_rows);
    let mut remaining = if surplus == 0 { Remaining::Nothing } else { Remaining::Exactly(surplus as u64) };
    if !token.is_empty() {
        let page = fetch(page_size(MAX_PAGE_SIZE), token).await?;
        let further = (surplus + page.rows.len()) as u64;
        remaining =
            if page.next.is_empty() { Remaining::Exactly(further) } else { Remaining::AtLeast(further) };
    }
    // The last page may be empty.
    if remaining == Remaining::Exactly(0) {
        remaining = Remaining::Nothing;
    }
    Ok(Listing { rows, remaining })
}

fn page_size(rows: usize) -> i32 {
    i32::try_from(rows.min(MAX_PAGE_SIZE)).unwrap_or(i32::MAX)
}

/// Returns the id for `given`: `given` itself if it is a complete id, however short, otherwise the only id that
/// starts with it.
///
/// # Errors
/// Fails if an abbreviated id is too short or matches none or several; and with the errors of `fetch`, which is
/// called with a page size and a token and returns ids.
pub(crate) async fn resolve_id(
    kind: &'static str,
    given: &str,
    mut fetch: impl AsyncFnMut(i32, String) -> Result<ResultPage<String>, CliError>,
) -> Result<String, CliError> {
    if let Ok(full) = uuid::Uuid::try_parse(given) {
        return Ok(full.to_string());
    }
    let (mut fitting, mut token) = (Vec::new(), String::new());
    loop {
        let page = fetch(page_size(MAX_PAGE_SIZE), token).await?;
        if page.rows.iter().any(|id| id == given) {
            return Ok(given.to_owned());
        }
        fitting.extend(page.rows.into_iter().filter(|id| starts_with(id, given)));
        token = page.next;
        if token.is_empty() {
            break;
        }
    }
    resolve_prefix(kind, given, fitting)
}

/// Returns the only id that starts with `given`.
///
/// # Errors
/// As [`single_match`], and if `given` is shorter than [`MIN_PREFIX_LENGTH`]: no complete id equals it.
pub(crate) fn resolve_prefix(
    kind: &'static str,
    given: &str,
    fitting: Vec<String>,
) -> Result<String, CliError> {
    if given.chars().count() < MIN_PREFIX_LENGTH {
        let problem = format!(
            "no {kind} has the id {given:?}; a prefix of an id needs at least {MIN_PREFIX_LENGTH} characters"
        );
        return Err(CliError::Usage(problem));
    }
    single_match(kind, given, fitting)
}

/// Returns the only id in `fitting`.
///
/// # Errors
/// Fails if there is none, or if there are several.
pub(crate) fn single_match(
    kind: &'static str,
    given: &str,
    mut fitting: Vec<String>,
) -> Result<String, CliError> {
    fitting.sort();
    fitting.dedup();
    match fitting.len() {
        0 => Err(CliError::NoSuch { kind, given: given.to_owned() }),
        1 => Ok(fitting.swap_remove(0)),
        _ => {
            fitting.truncate(MAX_CANDIDATES);
            Err(CliError::Ambiguous { kind, given: given.to_owned(), fitting })
        }
    }
}

/// Returns whether `id` starts with `prefix`, ignoring case, because people copy ids from anywhere.
pub(crate) fn starts_with(id: &str, prefix: &str) -> bool {
    id.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Serves `0..total` in pages of at most `most`.
    fn page_source(
        total: usize,
        most: usize,
    ) -> impl AsyncFnMut(i32, String) -> Result<ResultPage<usize>, CliError> {
        async move |size: i32, token: String| {
            let from: usize = token.parse().unwrap_or(0);
            let to = total.min(from + most.min(usize::try_from(size).unwrap()));
            let next = if to < total { to.to_string() } else { String::new() };
            Ok(ResultPage { rows: (from..to).collect(), next })
        }
    }

    #[tokio::test]
    async fn a_list_stops_at_its_limit_and_counts_the_rest() {
        let list = collect_rows(Some(50), page_source(120, 1_000)).await.unwrap();
        assert_eq!((list.rows.len(), list.remaining), (50, Remaining::Exactly(70)));
        let list = collect_rows(Some(50), page_source(5_000, 1_000)).await.unwrap();
        assert_eq!((list.rows.len(), list.remaining), (50, Remaining::AtLeast(1_000)));
        let list = collect_rows(Some(50), page_source(50, 1_000)).await.unwrap();
        assert_eq!((list.rows.len(), list.remaining), (50, Remaining::Nothing));
    }

    #[tokio::test]
    async fn all_fetches_every_page() {
        let list = collect_rows(None, page_source(2_345, 300)).await.unwrap();
        assert_eq!(list.rows, (0..2_345).collect::<Vec<_>>());
        assert_eq!(list.remaining, Remaining::Nothing);
        assert!(collect_rows(None, page_source(0, 10)).await.unwrap().rows.is_empty());
    }

    #[tokio::test]
    async fn short_pages_are_continued() {
        let list = collect_rows(Some(50), page_source(120, 7)).await.unwrap();
        assert_eq!((list.rows.len(), list.remaining), (50, Remaining::AtLeast(7)));
    }

    fn id_source(
        all: &'static [&'static str],
    ) -> impl AsyncFnMut(i32, String) -> Result<ResultPage<String>, CliError> {
        async move |_, token: String| {
            let at: usize = token.parse().unwrap_or(0);
            let next = if at + 1 < all.len() { (at + 1).to_string() } else { String::new() };
            Ok(ResultPage { rows: all.get(at).map(|id| (*id).to_owned()).into_iter().collect(), next })
        }
    }

    const IDS: &[&str] = &["3f2a91bc-x", "3f2a77aa-y", "garden", "garden-2"];

    #[tokio::test]
    async fn a_unique_prefix_is_enough() {
        assert_eq!(resolve_id("memory", "3F2A9", id_source(IDS)).await.unwrap(), "3f2a91bc-x");
        assert_eq!(resolve_id("memory", "garden", id_source(IDS)).await.unwrap(), "garden");
        let full = "0F3A2B1C-0000-5000-8000-000000000001";
        assert_eq!(resolve_id("memory", full, id_source(&[])).await.unwrap(), full.to_lowercase());
    }

    #[tokio::test]
    async fn a_prefix_that_matches_none_or_several_is_rejected() {
        let error = resolve_id("memory", "3f2a", id_source(IDS)).await.unwrap_err();
        assert_eq!(error.to_string(), "\"3f2a\" matches more than one memory: 3f2a77aa-y, 3f2a91bc-x");
        assert!(matches!(resolve_id("memory", "ffff", id_source(IDS)).await, Err(CliError::NoSuch { .. })));
        assert!(matches!(resolve_id("memory", "3f2", id_source(IDS)).await, Err(CliError::Usage(_))));
        assert_eq!(
            resolve_id("memory", "m1", id_source(&["m1", "m10"])).await.unwrap(),
            "m1",
            "a whole id may be short"
        );
    }
}
