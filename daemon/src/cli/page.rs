//! Walking the pages of a list, and finding the one record that a shortened id means.

use super::error::CliError;

/// Rows of a page when many are wanted; the most that the daemon gives.
const BIG_PAGE: usize = 1_000;
/// Characters of a shortened id at least; fewer are more often a slip than a choice.
const MIN_PREFIX: usize = 4;
/// Candidates that an ambiguous id names.
const CANDIDATES: usize = 5;

/// One page as the daemon gave it.
pub(crate) struct Page<T> {
    pub rows: Vec<T>,
    /// Empty: the last one.
    pub next: String,
}

/// What a list shows, and what it leaves out.
#[derive(Debug)]
pub(crate) struct Listing<T> {
    pub rows: Vec<T>,
    pub left: Left,
}

/// How many rows stand behind the shown ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    Exactly(u64),
    /// At least so many; counting on would take long.
    AtLeast(u64),
}

impl Left {
    /// Whether there are more rows.
    pub(crate) fn more(self) -> bool {
        self != Self::Nothing
    }

    /// The line under a list.
    pub(crate) fn hint(self) -> Option<String> {
        let number = super::text::number;
        match self {
            Self::Nothing => None,
            Self::Exactly(n) => Some(format!("{} more; --limit N or --all shows them", number(n))),
            Self::AtLeast(n) => Some(format!("more than {} more; --limit N or --all shows them", number(n))),
        }
    }
}

/// Collects `want` rows (none: all of them), and counts what is left as far as one further page tells.
///
/// # Errors
/// As `fetch`, which gets a page size and a token.
pub(crate) async fn collect<T>(
    want: Option<usize>,
    mut fetch: impl AsyncFnMut(i32, String) -> Result<Page<T>, CliError>,
) -> Result<Listing<T>, CliError> {
    let want = want.unwrap_or(usize::MAX);
    let (mut rows, mut token) = (Vec::new(), String::new());
    loop {
        let page = fetch(size(want - rows.len()), token).await?;
        rows.extend(page.rows);
        token = page.next;
        if token.is_empty() || rows.len() >= want {
            break;
        }
    }
    let surplus = rows.len().saturating_sub(want);
    rows.truncate(want);
    let mut left = if surplus == 0 { Left::Nothing } else { Left::Exactly(surplus as u64) };
    if !token.is_empty() {
        let page = fetch(size(BIG_PAGE), token).await?;
        let further = (surplus + page.rows.len()) as u64;
        left = if page.next.is_empty() { Left::Exactly(further) } else { Left::AtLeast(further) };
    }
    // A last page may be empty.
    if left == Left::Exactly(0) {
        left = Left::Nothing;
    }
    Ok(Listing { rows, left })
}

fn size(rows: usize) -> i32 {
    i32::try_from(rows.min(BIG_PAGE)).unwrap_or(i32::MAX)
}

/// Returns the id that `given` means: itself when it is a whole one, however short, else the only one that starts with it.
///
/// # Errors
/// A beginning that is too short, fits none or fits several; or as `fetch`, which gets a page size and a token and gives
/// ids.
pub(crate) async fn resolve(
    kind: &'static str,
    given: &str,
    mut fetch: impl AsyncFnMut(i32, String) -> Result<Page<String>, CliError>,
) -> Result<String, CliError> {
    if let Ok(whole) = uuid::Uuid::try_parse(given) {
        return Ok(whole.to_string());
    }
    let (mut fitting, mut token) = (Vec::new(), String::new());
    loop {
        let page = fetch(size(BIG_PAGE), token).await?;
        if page.rows.iter().any(|id| id == given) {
            return Ok(given.to_owned());
        }
        fitting.extend(page.rows.into_iter().filter(|id| starts_with(id, given)));
        token = page.next;
        if token.is_empty() {
            break;
        }
    }
    pick_long(kind, given, fitting)
}

/// Returns the only id that `given` is the beginning of.
///
/// # Errors
/// As [`pick`], and when `given` is shorter than [`MIN_PREFIX`]: no whole id is it.
pub(crate) fn pick_long(kind: &'static str, given: &str, fitting: Vec<String>) -> Result<String, CliError> {
    if given.chars().count() < MIN_PREFIX {
        let problem = format!(
            "no {kind} has the id {given:?}, and it is too short for the beginning of one; give {MIN_PREFIX} characters or more"
        );
        return Err(CliError::Usage(problem));
    }
    pick(kind, given, fitting)
}

/// Returns the only id that `given` fits.
///
/// # Errors
/// When none or several fit.
pub(crate) fn pick(kind: &'static str, given: &str, mut fitting: Vec<String>) -> Result<String, CliError> {
    fitting.sort();
    fitting.dedup();
    match fitting.len() {
        0 => Err(CliError::NoSuch { kind, given: given.to_owned() }),
        1 => Ok(fitting.swap_remove(0)),
        _ => {
            fitting.truncate(CANDIDATES);
            Err(CliError::Ambiguous { kind, given: given.to_owned(), fitting })
        }
    }
}

/// Whether `id` starts with `prefix`; letter case does not count, as people copy ids from anywhere.
pub(crate) fn starts_with(id: &str, prefix: &str) -> bool {
    id.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Serves `0..total` in pages of at most `most`.
    fn pages(total: usize, most: usize) -> impl AsyncFnMut(i32, String) -> Result<Page<usize>, CliError> {
        async move |size: i32, token: String| {
            let from: usize = token.parse().unwrap_or(0);
            let to = total.min(from + most.min(usize::try_from(size).unwrap()));
            let next = if to < total { to.to_string() } else { String::new() };
            Ok(Page { rows: (from..to).collect(), next })
        }
    }

    #[tokio::test]
    async fn a_list_stops_at_its_limit_and_counts_the_rest() {
        let list = collect(Some(50), pages(120, 1_000)).await.unwrap();
        assert_eq!((list.rows.len(), list.left), (50, Left::Exactly(70)));
        let list = collect(Some(50), pages(5_000, 1_000)).await.unwrap();
        assert_eq!((list.rows.len(), list.left), (50, Left::AtLeast(1_000)));
        let list = collect(Some(50), pages(50, 1_000)).await.unwrap();
        assert_eq!((list.rows.len(), list.left), (50, Left::Nothing));
    }

    #[tokio::test]
    async fn all_walks_every_page() {
        let list = collect(None, pages(2_345, 300)).await.unwrap();
        assert_eq!(list.rows, (0..2_345).collect::<Vec<_>>());
        assert_eq!(list.left, Left::Nothing);
        assert!(collect(None, pages(0, 10)).await.unwrap().rows.is_empty());
    }

    #[tokio::test]
    async fn short_pages_are_walked_on() {
        let list = collect(Some(50), pages(120, 7)).await.unwrap();
        assert_eq!((list.rows.len(), list.left), (50, Left::AtLeast(7)));
    }

    fn ids(all: &'static [&'static str]) -> impl AsyncFnMut(i32, String) -> Result<Page<String>, CliError> {
        async move |_, token: String| {
            let at: usize = token.parse().unwrap_or(0);
            let next = if at + 1 < all.len() { (at + 1).to_string() } else { String::new() };
            Ok(Page { rows: all.get(at).map(|id| (*id).to_owned()).into_iter().collect(), next })
        }
    }

    const IDS: &[&str] = &["3f2a91bc-x", "3f2a77aa-y", "garden", "garden-2"];

    #[tokio::test]
    async fn a_unique_beginning_is_enough() {
        assert_eq!(resolve("memory", "3F2A9", ids(IDS)).await.unwrap(), "3f2a91bc-x");
        assert_eq!(resolve("memory", "garden", ids(IDS)).await.unwrap(), "garden");
        let whole = "0F3A2B1C-0000-5000-8000-000000000001";
        assert_eq!(resolve("memory", whole, ids(&[])).await.unwrap(), whole.to_lowercase());
    }

    #[tokio::test]
    async fn what_fits_none_or_several_is_refused() {
        let error = resolve("memory", "3f2a", ids(IDS)).await.unwrap_err();
        assert_eq!(error.to_string(), "\"3f2a\" fits more than one memory: 3f2a77aa-y, 3f2a91bc-x");
        assert!(matches!(resolve("memory", "ffff", ids(IDS)).await, Err(CliError::NoSuch { .. })));
        assert!(matches!(resolve("memory", "3f2", ids(IDS)).await, Err(CliError::Usage(_))));
        assert_eq!(
            resolve("memory", "m1", ids(&["m1", "m10"])).await.unwrap(),
            "m1",
            "a whole id may be short"
        );
    }
}
