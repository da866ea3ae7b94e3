//! Checks a PAM bundle of anybody: rules, checksum, signature, manifest. Works without a data directory.

mod chain;
mod covered;
mod judge;
mod manifest;
mod verdict;

use std::{
    collections::BTreeSet,
    io::{self, Read},
    path::{Path, PathBuf},
};

use satchel_pam::{
    issue::{Issue, Severity},
    sign::PublicKey,
};
use satchel_source::{
    Bundle, CancelToken, Files, IntakeError, Limits, Opened, Source, Unread,
    envelope::Keys,
    listed,
    pam::{LONGEST_CONVERSATION, PamFiles},
};

use crate::manifest::Selected;
use satchel_seal::PackedError;

use chain::Content;
pub use chain::Merged;
pub use covered::{Coverage, Covered};
pub use judge::{Judged, judge};
use verdict::{conclude, judged, part};

/// The file that every bundle has.
const STORE: &str = "memory-store.json";
/// Unreadable files that a refusal names.
const MAX_UNREAD: usize = 8;
/// Issues that are reported one by one.
const MAX_ISSUES: usize = 10_000;

/// How strict to be.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The only keys that may have signed, themselves or by a key that is proven to follow one of them: multibase, `did:key` or
    /// base58. None: any.
    pub signers: Vec<String>,
    /// The bundle that this one, an incremental export, builds on. It is checked as well, by the same rules.
    pub base: Option<PathBuf>,
    /// The keys of the data directory; a bundle that one of them signed must have a manifest.
    pub own_keys: Vec<String>,
    /// Refuse what is only warned of: no signature, an unknown algorithm, warnings.
    pub strict: bool,
    /// What opens the bundle and its base, if they are encrypted.
    pub keys: Option<Keys>,
    /// Ends the verification.
    pub cancel: CancelToken,
}

/// What came of checking a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// It is of this key over this content.
    Valid,
    /// It is not.
    Invalid,
    /// There is none.
    Absent,
    /// We cannot tell.
    Unsupported,
}

impl Signed {
    /// Of several: the worst.
    fn of_all(all: impl Iterator<Item = Self>) -> Self {
        let badness = |one: &Self| match one {
            Self::Valid => 0,
            Self::Absent => 1,
            Self::Unsupported => 2,
            Self::Invalid => 3,
        };
        all.max_by_key(badness).unwrap_or(Self::Absent)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it alone makes the bundle invalid.
    pub severity: Severity,
    /// The rule or check.
    pub check: String,
    /// The file, and where in it.
    pub path: String,
    /// For people.
    pub message: String,
}

/// What came of checking a bundle.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether all of it holds.
    pub valid: bool,
    /// PAM's signature.
    pub signature: Signed,
    /// The manifest's.
    pub manifest: Signed,
    /// Who signed, multibase; set if PAM's signature is valid.
    pub signer: Option<String>,
    /// Keys that the signer's is proven to follow, the newest first, multibase.
    pub predecessors: Vec<String>,
    /// What is wrong, errors first.
    pub issues: Vec<Finding>,
    /// How many issues there are, those past the first 10,000 too.
    pub issues_found: usize,
    /// Memories of the store.
    pub memories: u64,
    /// Conversation files that were read.
    pub conversations: u64,
    /// What base and bundle make; none without a base, or if they do not fit.
    pub merged: Option<Merged>,
    /// Set if it says that it is no copy of a store, but a part of one, or without identifiers.
    pub selection: Option<Selected>,
    /// Which parts of it a signature covers.
    pub covered: Covered,
    /// Each bundle, and what lies there without one; one, in almost all cases.
    pub bundles: Vec<Part>,
}

/// What came of checking one of the bundles at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it lies there; empty: it is all of it.
    pub path: String,
    /// As of a [`Report`], all of these.
    pub valid: bool,
    pub signature: Signed,
    pub manifest: Signed,
    pub signer: Option<String>,
    pub predecessors: Vec<String>,
    pub covered: Covered,
    pub memories: u64,
    pub conversations: u64,
}

/// Why nothing could be checked.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The path.
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// Something else.
    #[error("{path:?} is not a PAM bundle: {seen}")]
    NoBundle { path: PathBuf, seen: String },
    /// More than can be compared with a base.
    #[error("{path:?} holds more than one bundle, or documents beside it: {}; name one of them", listed(&refs(places)))]
    Several { path: PathBuf, places: Vec<String> },
    /// A file of the bundle.
    #[error("cannot read {name:?} of the bundle")]
    Read { name: String, source: io::Error },
    /// A file larger than any real one.
    #[error("{name:?} has more than {limit} bytes")]
    TooLarge { name: String, limit: u64 },
    /// The disk.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[from] PackedError),
    /// Whoever asked for it stopped it.
    #[error("the verification was cancelled")]
    Cancelled,
    /// The key that was asked for.
    #[error("{text:?} is not a public key; give the z6Mk… that `satchel verify` shows, or a did:key")]
    BadSigner { text: String },
}

/// Checks what lies at `path`: a folder, a ZIP, or a single PAM document. Where there are several bundles, or documents beside them, each
/// is checked.
///
/// # Errors
/// When it cannot be read, or is no PAM bundle at all.
pub fn path(path: &Path, options: &Options) -> Result<Report, VerifyError> {
    let report = checked(path, options);
    // Its readers stop where the cancellation finds them, which looks like damage.
    if options.cancel.cancelled() { Err(VerifyError::Cancelled) } else { report }
}

fn checked(path: &Path, options: &Options) -> Result<Report, VerifyError> {
    let wanted = options.signers.iter().map(|text| key(text)).collect::<Result<Vec<_>, _>>()?;
    let mut all = check(path, options)?;
    let mut findings = Vec::new();
    let mut merged = None;
    if let Some(base_path) = &options.base {
        let mut base = only(base_path, check(base_path, options)?)?;
        let mut checked = only(path, all)?;
        findings = judged(&mut base, options, &wanted);
        findings.iter_mut().for_each(|finding| finding.path.insert_str(0, "base: "));
        let (whole, changes) = (content(base_path, options)?, content(path, options)?);
        let (made, issues) = chain::check(
            (&base.report, &checked.report),
            (&whole, &changes),
            base.selection.as_ref(),
            &checked.predecessors,
        )?;
        merged = made;
        checked.report.issues.extend(issues);
        all = vec![checked];
    }
    let several = all.len() > 1;
    let parts = all.into_iter().map(|checked| part(checked, several, options, &wanted)).collect();
    Ok(conclude(parts, findings, merged, options.strict))
}

/// The memory store at `path`, which holds no other bundle.
fn content(path: &Path, options: &Options) -> Result<Content, VerifyError> {
    let (bundle, sets) = open(path, options)?;
    let store = sets.into_iter().find_map(|files| files.store);
    Ok(Content { bundle, store })
}

fn only(path: &Path, checked: Vec<Judged>) -> Result<Judged, VerifyError> {
    let places = checked.iter().map(|one| one.place.clone()).collect();
    match <[Judged; 1]>::try_from(checked) {
        Ok([only]) => Ok(only),
        Err(_) => Err(VerifyError::Several { path: path.to_owned(), places }),
    }
}

/// What lies at `path`, with archives inside archives opened as an import opens them, and the documents that belong together in it.
fn open(path: &Path, options: &Options) -> Result<(Bundle, Vec<PamFiles>), VerifyError> {
    let source = Source::at(path)?.with_keys(options.keys.clone());
    let mut bundle = source.open_until(&Limits::default(), &options.cancel)?;
    let mut opened = Opened::default();
    loop {
        let sets = judge::sets(&bundle);
        let files: Vec<String> = sets.iter().flat_map(PamFiles::files).collect();
        let claimed = files.iter().map(String::as_str).collect();
        let inner = opened.left(&bundle, &claimed);
        if inner.is_empty() {
            bundle = opened.without_barren(bundle, &claimed);
            if sets.is_empty() {
                return Err(VerifyError::NoBundle { path: path.to_owned(), seen: seen(&bundle) });
            }
            return Ok((bundle, sets));
        }
        let after = bundle.opening(&inner)?;
        opened.add(std::mem::replace(&mut bundle, after), inner);
    }
}

fn check(path: &Path, options: &Options) -> Result<Vec<Judged>, VerifyError> {
    let (bundle, sets) = open(path, options)?;
    let mut all = sets.iter().map(|files| judge(&bundle, files)).collect::<Result<Vec<_>, _>>()?;
    let roots: Vec<&str> =
        sets.iter().filter(|files| files.store.is_some()).map(|files| files.root.as_str()).collect();
    let elsewhere = |unread: &&Unread| !roots.iter().any(|root| unread.name.starts_with(*root));
    let elsewhere: Vec<Issue> = bundle.never_read().filter(elsewhere).map(unchecked).collect();
    all[0].report.issues.extend(elsewhere);
    Ok(all)
}

/// A file that could not be taken in may be anything.
fn unchecked(unread: &Unread) -> Issue {
    Issue::error("files", unread.name.clone(), format!("cannot be checked: {}", unread.reason))
}

fn key(text: &str) -> Result<PublicKey, VerifyError> {
    PublicKey::parse(text).map_err(|_| VerifyError::BadSigner { text: text.to_owned() })
}

fn is_store(name: &str) -> bool {
    name == STORE || name.ends_with("/memory-store.json")
}

/// What stands there instead of a bundle.
fn seen(bundle: &Bundle) -> String {
    let names: Vec<&str> = bundle.list().iter().map(|entry| entry.path.as_str()).collect();
    let mut seen = match names.as_slice() {
        [] if bundle.unread().is_empty() => vec!["there is no file in it".to_owned()],
        [] => Vec::new(),
        [name] => vec![format!("{name:?} is no PAM document")],
        names => vec![format!("it holds no memory-store.json but {}", listed(names))],
    };
    let unread = bundle.unread().iter().take(MAX_UNREAD);
    seen.extend(unread.map(|unread| format!("{:?} was left out, as {}", unread.name, unread.reason)));
    seen.join("; ")
}

/// Reads a conversation, of which the document is held in memory.
fn within(bundle: &Bundle, name: &str) -> Result<Box<dyn Read + Send>, VerifyError> {
    if bundle.size_of(name) > LONGEST_CONVERSATION {
        return Err(VerifyError::TooLarge { name: name.to_owned(), limit: LONGEST_CONVERSATION });
    }
    bundle.open(name, 0).map_err(unreadable(name))
}

fn read(bundle: &Bundle, name: &str, limit: u64) -> Result<Vec<u8>, VerifyError> {
    let mut bytes = Vec::new();
    let reader = bundle.open(name, 0).map_err(unreadable(name))?;
    reader.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable(name))?;
    if bytes.len() as u64 > limit {
        return Err(VerifyError::TooLarge { name: name.to_owned(), limit });
    }
    Ok(bytes)
}

fn unreadable(name: &str) -> impl Fn(io::Error) -> VerifyError + '_ {
    |source| VerifyError::Read { name: name.to_owned(), source }
}

fn refs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// Every file of the bundle, by its name in it.
fn names<'a>(bundle: &'a Bundle, root: &str) -> BTreeSet<&'a str> {
    bundle.list().iter().filter_map(|entry| entry.path.strip_prefix(root)).collect()
}
