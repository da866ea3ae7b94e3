//! Verifies any PAM bundle: rules, checksum, signature, manifest. Needs no data directory.

mod coverage;
mod evaluate;
mod incremental;
mod manifest;
mod verdict;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_pam::{
    issue::{Issue, Severity},
    sign::{PublicKey, SignatureCheck},
};
use satchel_source::{
    Bundle, CancelToken, FileSet, Limits, OpenedArchives, ReadAt, Source, SourceError, UnreadFile,
    envelope::DecryptionKeys,
    pam::{MAX_CONVERSATION_BYTES, PamFiles},
    quoted_list,
};

use crate::manifest::BundleSelection;
use satchel_seal::PackedMapError;

pub use coverage::{Coverage, SignatureCoverage};
pub use evaluate::{BundleVerdict, evaluate};
pub use incremental::MergedStore;
use incremental::StoreContent;
use verdict::{all_findings, bundle_report, conclude};

/// The file that every bundle has.
const STORE: &str = "memory-store.json";
/// The maximum number of unreadable files that an error names.
const MAX_UNREAD: usize = 8;
/// The maximum number of issues that are reported individually.
const MAX_ISSUES: usize = 10_000;

/// The options of a verification.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// The only keys that may have signed, either directly or by a key that is proven to succeed one of them:
    /// multibase, `did:key` or base58. If empty, any key may have signed.
    pub signers: Vec<String>,
    /// The bundle that this one, an incremental export, builds on. It is checked too, by the same rules.
    pub base: Option<PathBuf>,
    /// The keys of the data directory. A bundle that was signed by one of them must have a manifest.
    pub own_keys: Vec<String>,
    /// Rejects bundles that otherwise cause only a warning: no signature, an unknown algorithm, warnings.
    pub strict: bool,
    /// The keys that open the bundle and its base, if they are encrypted.
    pub keys: Option<DecryptionKeys>,
    /// The bytes and the lengths of paths that are not files of the machine.
    pub stored: BTreeMap<PathBuf, (Arc<dyn ReadAt>, u64)>,
    /// Cancels the verification.
    pub cancel: CancelToken,
}

/// The result of checking a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureState {
    /// The signature is by this key over this content.
    Valid,
    /// The signature is invalid.
    Invalid,
    /// There is no signature.
    Absent,
    /// The signature cannot be checked.
    Unsupported,
}

impl SignatureState {
    /// Returns the worst of several results.
    fn worst(all: impl Iterator<Item = Self>) -> Self {
        let severity = |one: &Self| match one {
            Self::Valid => 0,
            Self::Absent => 1,
            Self::Unsupported => 2,
            Self::Invalid => 3,
        };
        all.max_by_key(severity).unwrap_or(Self::Absent)
    }
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyFinding {
    /// Whether it alone makes the bundle invalid.
    pub severity: Severity,
    /// The rule or check.
    pub check: String,
    /// The file, and the position in it.
    pub path: String,
    /// A message for the user.
    pub message: String,
}

/// The result of verifying a bundle.
#[derive(Clone, Debug)]
pub struct VerifyReport {
    /// Whether all checks passed.
    pub valid: bool,
    /// The result for PAM's signature.
    pub signature: SignatureState,
    /// The result for the manifest's signature.
    pub manifest: SignatureState,
    /// The key that signed, multibase; set if PAM's signature is valid, and by the same key in all bundles.
    pub signer: Option<String>,
    /// Keys that the signing key is proven to succeed, the newest first, multibase. Empty if there are several bundles.
    pub predecessors: Vec<String>,
    /// The problems found, errors first.
    pub issues: Vec<VerifyFinding>,
    /// The total number of issues, including those beyond the first 10,000.
    pub issues_found: usize,
    /// Memories of the store.
    pub memories: u64,
    /// Conversation files that were read.
    pub conversations: u64,
    /// The result of merging base and bundle; `None` without a base, or if they do not fit together.
    pub merged: Option<MergedStore>,
    /// Set if the bundle says that it is not a copy of a store, but a part of one or without identifiers.
    pub selection: Option<BundleSelection>,
    /// Which parts of it a signature covers.
    pub coverage: SignatureCoverage,
    /// The result for each bundle, and for documents outside of any bundle. Almost always there is one.
    pub bundles: Vec<BundleReport>,
}

/// The result of verifying one of the bundles at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleReport {
    /// Its path in the source; empty if it is the whole source.
    pub path: String,
    /// This and all following fields have the same meaning as in [`VerifyReport`].
    pub valid: bool,
    pub signature: SignatureState,
    pub manifest: SignatureState,
    pub signer: Option<String>,
    pub predecessors: Vec<String>,
    pub coverage: SignatureCoverage,
    pub memories: u64,
    pub conversations: u64,
}

/// Why nothing could be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The path cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The path contains something else.
    #[error("{path:?} is not a PAM bundle: {seen}")]
    NoBundle { path: PathBuf, seen: String },
    /// More than one bundle, which cannot be compared with a base.
    #[error("{path:?} holds more than one bundle, or documents beside it: {}; name one of them", quoted_list(&refs(places)))]
    MultipleBundles { path: PathBuf, places: Vec<String> },
    /// A file of the bundle cannot be read.
    #[error("cannot read {name:?} of the bundle")]
    Read { name: String, source: io::Error },
    /// A file is larger than any real one.
    #[error("{name:?} has more than {limit} bytes")]
    TooLarge { name: String, limit: u64 },
    /// The temporary file cannot be used.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[from] PackedMapError),
    /// The caller cancelled the verification.
    #[error("the verification was cancelled")]
    Cancelled,
    /// A given public key is invalid.
    #[error("{text:?} is not a public key; give the z6Mk… that `satchel verify` shows, or a did:key")]
    BadSigner { text: String },
}

/// Verifies the bundle at `path`: a folder, a ZIP, or a single PAM document. If there are several bundles, or documents
/// beside them, each is verified.
///
/// # Errors
/// If it cannot be read, or is not a PAM bundle at all.
pub fn path(path: &Path, options: &VerifyOptions) -> Result<VerifyReport, VerifyError> {
    let report = check_path(path, options);
    // A cancelled reader stops anywhere, and the result looks like damage.
    if options.cancel.cancelled() { Err(VerifyError::Cancelled) } else { report }
}

fn check_path(path: &Path, options: &VerifyOptions) -> Result<VerifyReport, VerifyError> {
    let wanted = options.signers.iter().map(|text| parse_signer(text)).collect::<Result<Vec<_>, _>>()?;
    let mut all = check_all(path, options)?;
    let mut findings = Vec::new();
    let mut merged = None;
    if let Some(base_path) = &options.base {
        let mut base = single(base_path, check_all(base_path, options)?)?;
        let mut checked = single(path, all)?;
        findings = all_findings(&mut base, options, &wanted);
        findings.iter_mut().for_each(|finding| finding.path.insert_str(0, "base: "));
        let (whole, changes) = (open_content(base_path, options)?, open_content(path, options)?);
        let (made, issues) = incremental::check(
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
    let parts = all.into_iter().map(|checked| bundle_report(checked, several, options, &wanted)).collect();
    Ok(conclude(parts, findings, merged, options.strict))
}

/// Returns the memory store at `path`, which must contain no other bundle.
fn open_content(path: &Path, options: &VerifyOptions) -> Result<StoreContent, VerifyError> {
    let (bundle, sets) = open_bundle(path, options)?;
    let store = sets.into_iter().find_map(|files| files.store);
    Ok(StoreContent { bundle, store })
}

fn single(path: &Path, checked: Vec<BundleVerdict>) -> Result<BundleVerdict, VerifyError> {
    let places = checked.iter().map(|one| one.path.clone()).collect();
    match <[BundleVerdict; 1]>::try_from(checked) {
        Ok([only]) => Ok(only),
        Err(_) => Err(VerifyError::MultipleBundles { path: path.to_owned(), places }),
    }
}

/// Opens `path`, with archives inside archives opened as in an import, and returns it with the sets of documents that
/// belong together.
fn open_bundle(path: &Path, options: &VerifyOptions) -> Result<(Bundle, Vec<PamFiles>), VerifyError> {
    let source = match options.stored.get(path) {
        Some((bytes, length)) => Source::stored(path, Arc::clone(bytes), *length),
        None => Source::at(path)?,
    };
    let source = source.with_keys(options.keys.clone());
    let mut bundle = source.open_cancellable(&Limits::default(), &options.cancel)?;
    let mut opened = OpenedArchives::default();
    loop {
        let sets = evaluate::document_sets(&bundle);
        let files: Vec<String> = sets.iter().flat_map(PamFiles::files).collect();
        let claimed = files.iter().map(String::as_str).collect();
        let inner = opened.unopened(&bundle, &claimed);
        if inner.is_empty() {
            bundle = opened.close_unclaimed(bundle, &claimed);
            if sets.is_empty() {
                return Err(VerifyError::NoBundle {
                    path: path.to_owned(),
                    seen: describe_contents(&bundle),
                });
            }
            return Ok((bundle, sets));
        }
        let after = bundle.with_opened(&inner)?;
        opened.add(std::mem::replace(&mut bundle, after), inner);
    }
}

fn check_all(path: &Path, options: &VerifyOptions) -> Result<Vec<BundleVerdict>, VerifyError> {
    let (bundle, sets) = open_bundle(path, options)?;
    let mut all = sets.iter().map(|files| evaluate(&bundle, files)).collect::<Result<Vec<_>, _>>()?;
    let roots: Vec<&str> =
        sets.iter().filter(|files| files.store.is_some()).map(|files| files.root.as_str()).collect();
    let elsewhere = |unread: &&UnreadFile| !roots.iter().any(|root| unread.name.starts_with(*root));
    let elsewhere: Vec<Issue> = bundle.all_unread().filter(elsewhere).map(unread_issue).collect();
    all[0].report.issues.extend(elsewhere);
    Ok(all)
}

/// Reports a file that could not be opened as an error, because it may contain anything.
fn unread_issue(unread: &UnreadFile) -> Issue {
    Issue::error("files", unread.name.clone(), format!("cannot be checked: {}", unread.reason))
}

fn parse_signer(text: &str) -> Result<PublicKey, VerifyError> {
    PublicKey::parse(text).map_err(|_| VerifyError::BadSigner { text: text.to_owned() })
}

fn is_store(name: &str) -> bool {
    name == STORE || name.ends_with("/memory-store.json")
}

/// Describes what `path` contains instead of a bundle.
fn describe_contents(bundle: &Bundle) -> String {
    let names: Vec<&str> = bundle.list().iter().map(|entry| entry.path.as_str()).collect();
    let mut seen = match names.as_slice() {
        [] if bundle.unread().is_empty() => vec!["there is no file in it".to_owned()],
        [] => Vec::new(),
        [name] => vec![format!("{name:?} is no PAM document")],
        names => vec![format!("it holds no memory-store.json but {}", quoted_list(names))],
    };
    let unread = bundle.unread().iter().take(MAX_UNREAD);
    seen.extend(unread.map(|unread| format!("{:?} was left out, as {}", unread.name, unread.reason)));
    seen.join("; ")
}

/// Returns the key of a valid signature.
fn valid_key(signature: &SignatureCheck) -> Option<&PublicKey> {
    match signature {
        SignatureCheck::Valid { key } => Some(key),
        SignatureCheck::Invalid(_) | SignatureCheck::Absent | SignatureCheck::Unsupported(_) => None,
    }
}

/// Opens a conversation for reading, unless it is too long: its document is held in memory.
fn open_conversation(bundle: &Bundle, name: &str) -> Result<Box<dyn Read + Send>, VerifyError> {
    if bundle.size_of(name) > MAX_CONVERSATION_BYTES {
        return Err(VerifyError::TooLarge { name: name.to_owned(), limit: MAX_CONVERSATION_BYTES });
    }
    bundle.open(name, 0).map_err(read_error(name))
}

fn read_limited(bundle: &Bundle, name: &str, limit: u64) -> Result<Vec<u8>, VerifyError> {
    let mut bytes = Vec::new();
    let reader = bundle.open(name, 0).map_err(read_error(name))?;
    reader.take(limit + 1).read_to_end(&mut bytes).map_err(read_error(name))?;
    if bytes.len() as u64 > limit {
        return Err(VerifyError::TooLarge { name: name.to_owned(), limit });
    }
    Ok(bytes)
}

fn read_error(name: &str) -> impl Fn(io::Error) -> VerifyError + '_ {
    |source| VerifyError::Read { name: name.to_owned(), source }
}

fn refs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// Returns every file of the bundle, by its name in the bundle.
fn names_below<'a>(bundle: &'a Bundle, root: &str) -> BTreeSet<&'a str> {
    bundle.list().iter().filter_map(|entry| entry.path.strip_prefix(root)).collect()
}
