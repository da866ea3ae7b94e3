//! Checks a PAM bundle of anybody: rules, checksum, signature, manifest. Works without a data directory.

mod chain;
mod manifest;

use std::{
    collections::BTreeSet,
    io::{self, Read},
    path::{Path, PathBuf},
};

use satchel_host::Files;
use satchel_pam::{
    issue::{Issue, Severity},
    parse::{self, ChecksumReading},
    sign::{PublicKey, SignatureCheck},
    validate::{self, BundleCheck},
};

use crate::{
    envelope::Keys,
    intake::{Bundle, IntakeError, Limits, Source},
    listed,
    manifest::Selected,
    rotation,
};

pub use chain::Merged;

/// The file that every bundle has.
const STORE: &str = "memory-store.json";
const EMBEDDINGS: &str = "embeddings.json";
/// Longest document that is read, in bytes; it is held in memory.
const MAX_DOCUMENT: u64 = 2 << 30;
/// Bytes that tell whether a file may be JSON; white space may come first.
const HEAD: u64 = 4_096;
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
}

/// Why nothing could be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The path.
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// Something else.
    #[error("{path:?} is not a PAM bundle: {seen}")]
    NoBundle { path: PathBuf, seen: String },
    /// A file of the bundle.
    #[error("cannot read {name:?} of the bundle")]
    Read { name: String, source: io::Error },
    /// A file larger than any real one.
    #[error("{name:?} has more than {MAX_DOCUMENT} bytes")]
    TooLarge { name: String },
    /// The key that was asked for.
    #[error("{text:?} is not a public key; give the z6Mk… that `satchel verify` shows, or a did:key")]
    BadSigner { text: String },
}

/// Checks the bundle at `path`: a folder, a ZIP, or a single PAM document.
///
/// # Errors
/// When it cannot be read, or is no PAM bundle at all.
pub fn path(path: &Path, options: &Options) -> Result<Report, VerifyError> {
    let wanted = options.signers.iter().map(|text| key(text)).collect::<Result<Vec<_>, _>>()?;
    let mut checked = check(path, options.keys.as_ref())?;
    let mut findings = Vec::new();
    let mut merged = None;
    if let Some(base) = &options.base {
        let mut base = check(base, options.keys.as_ref())?;
        findings = judged(&mut base, options, &wanted);
        findings.iter_mut().for_each(|finding| finding.path.insert_str(0, "base: "));
        let (made, issues) =
            chain::check(base.report, base.selection.as_ref(), &checked.report, &checked.predecessors);
        merged = made;
        checked.report.issues.extend(issues);
    }
    Ok(conclude(checked, findings, merged, options, &wanted))
}

/// One bundle on its own.
struct Checked {
    report: validate::Report,
    manifest: Signed,
    conversations: u64,
    selection: Option<Selected>,
    /// Keys that the signer's follows.
    predecessors: Vec<PublicKey>,
}

fn check(path: &Path, keys: Option<&Keys>) -> Result<Checked, VerifyError> {
    let source = Source::at(path)?.with_keys(keys.cloned());
    let bundle = source.open(&Limits::default())?;
    let root = match bundle.list() {
        [entry] => match lone(&bundle, &entry.path)? {
            Lone::Store => Some(folder_of(&entry.path)),
            Lone::Document(issues) => {
                let report = of_document(issues);
                let manifest = Signed::Absent;
                let predecessors = Vec::new();
                return Ok(Checked { report, manifest, conversations: 1, selection: None, predecessors });
            }
            Lone::Other => None,
        },
        _ => outermost_store(&bundle),
    };
    let root = root.ok_or_else(|| VerifyError::NoBundle { path: path.to_owned(), seen: seen(&bundle) })?;
    let (mut report, conversations) = check_documents(&bundle, &root)?;
    let manifest::Looked { state, issues, manifest } = manifest::check(&bundle, &root, &report)?;
    report.issues.extend(issues);
    let selection = report.store.as_ref().and_then(|store| Selected::of(&store.header, manifest.as_ref()));
    for unread in bundle.unread() {
        report.issues.push(Issue::error(
            "files",
            unread.name.clone(),
            format!("cannot be checked: {}", unread.reason),
        ));
    }
    let rotations = manifest.map(|manifest| manifest.rotations).unwrap_or_default();
    let predecessors = match &report.signature {
        SignatureCheck::Valid { key } => rotation::predecessors(&rotations, key),
        SignatureCheck::Invalid(_) | SignatureCheck::Absent | SignatureCheck::Unsupported(_) => Vec::new(),
    };
    Ok(Checked { report, manifest: state, conversations, selection, predecessors })
}

fn key(text: &str) -> Result<PublicKey, VerifyError> {
    PublicKey::parse(text).map_err(|_| VerifyError::BadSigner { text: text.to_owned() })
}

/// What the only file of a source is.
enum Lone {
    /// A memory store, by its name or its own word: a store that was renamed is still one, and so is a damaged one.
    Store,
    /// One conversation or embeddings document, and what is wrong with it.
    Document(Vec<Issue>),
    Other,
}

fn lone(bundle: &Bundle, name: &str) -> Result<Lone, VerifyError> {
    if !begins_like_json(bundle, name)? {
        return Ok(if is_store(name) { Lone::Store } else { Lone::Other });
    }
    let bytes = read(bundle, name)?;
    let issues = match parse::schema_of(&bytes).as_deref() {
        Some("portable-ai-memory-conversation") => {
            let (document, mut issues) = parse::conversation(&bytes);
            issues.extend(document.iter().flat_map(validate::conversation));
            issues
        }
        Some("portable-ai-memory-embeddings") => {
            let (document, mut issues) = parse::embeddings(&bytes);
            issues.extend(document.iter().flat_map(validate::embeddings));
            issues
        }
        Some("portable-ai-memory") => return Ok(Lone::Store),
        Some(_) | None => return Ok(if is_store(name) { Lone::Store } else { Lone::Other }),
    };
    Ok(Lone::Document(issues))
}

/// A document that is no store has neither checksum nor signature.
fn of_document(issues: Vec<Issue>) -> validate::Report {
    validate::Report {
        store: None,
        issues,
        checksum: ChecksumReading::Absent,
        signature: SignatureCheck::Absent,
    }
}

/// Whether it is worth reading whole: people also point at films.
fn begins_like_json(bundle: &Bundle, name: &str) -> Result<bool, VerifyError> {
    let mut head = Vec::new();
    let reader = bundle.open(name, 0).map_err(unreadable(name))?;
    reader.take(HEAD).read_to_end(&mut head).map_err(unreadable(name))?;
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    Ok(text.trim_ascii_start().starts_with(b"{"))
}

fn is_store(name: &str) -> bool {
    name == STORE || name.ends_with("/memory-store.json")
}

/// The folder of a file in its container, with a final `/` or empty.
fn folder_of(name: &str) -> String {
    name.rfind('/').map_or_else(String::new, |end| name[..=end].to_owned())
}

/// The folder of the bundle in its container: where the outermost memory store lies.
fn outermost_store(bundle: &Bundle) -> Option<String> {
    let stores = bundle.list().iter().map(|entry| entry.path.as_str()).filter(|name| is_store(name));
    stores.map(folder_of).min_by_key(|root| (root.matches('/').count(), root.len()))
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

fn check_documents(bundle: &Bundle, root: &str) -> Result<(validate::Report, u64), VerifyError> {
    let store = match bundle.list() {
        [entry] => entry.path.clone(),
        _ => format!("{root}{STORE}"),
    };
    let mut check = BundleCheck::new(&read(bundle, &store)?);
    let mut conversations = 0;
    let folder = format!("{root}conversations/");
    for entry in bundle.list() {
        let Some(name) = entry.path.strip_prefix(root) else { continue };
        if entry.path.starts_with(&folder) && has_json_extension(name) {
            conversations += 1;
            check.conversation(name, &read(bundle, &entry.path)?);
        } else if name == EMBEDDINGS {
            check.embeddings(name, &read(bundle, &entry.path)?);
        }
    }
    Ok((check.finish(), conversations))
}

fn has_json_extension(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

fn read(bundle: &Bundle, name: &str) -> Result<Vec<u8>, VerifyError> {
    let mut bytes = Vec::new();
    let reader = bundle.open(name, 0).map_err(unreadable(name))?;
    reader.take(MAX_DOCUMENT + 1).read_to_end(&mut bytes).map_err(unreadable(name))?;
    if bytes.len() as u64 > MAX_DOCUMENT {
        return Err(VerifyError::TooLarge { name: name.to_owned() });
    }
    Ok(bytes)
}

fn unreadable(name: &str) -> impl Fn(io::Error) -> VerifyError + '_ {
    |source| VerifyError::Read { name: name.to_owned(), source }
}

/// Everything that is wrong with a bundle, by its rules and by what was asked of it.
fn judged(checked: &mut Checked, options: &Options, wanted: &[PublicKey]) -> Vec<Finding> {
    let signature = &checked.report.signature;
    let mut findings: Vec<Finding> = checked.report.issues.drain(..).map(finding).collect();
    findings.extend(missing(signature, options.strict));
    findings.extend(wrong_signer(signature, &checked.predecessors, wanted));
    let own = signer(signature).is_some_and(|signer| options.own_keys.contains(&signer));
    if checked.manifest == Signed::Absent && (!wanted.is_empty() || own) {
        findings.push(error(
            "manifest",
            "satchel-manifest.json",
            "is missing, so relations and conversations are not signed",
        ));
    }
    findings
}

fn signer(signature: &SignatureCheck) -> Option<String> {
    match signature {
        SignatureCheck::Valid { key } => Some(key.multibase()),
        SignatureCheck::Invalid(_) | SignatureCheck::Absent | SignatureCheck::Unsupported(_) => None,
    }
}

fn conclude(
    mut checked: Checked,
    of_base: Vec<Finding>,
    merged: Option<Merged>,
    options: &Options,
    wanted: &[PublicKey],
) -> Report {
    let mut findings = judged(&mut checked, options, wanted);
    findings.extend(of_base);
    let Checked { report, manifest, conversations, selection, predecessors } = checked;
    let validate::Report { store, issues: _, checksum: _, signature } = report;
    let worst = |finding: &Finding| finding.severity == Severity::Error || options.strict;
    let valid = !findings.iter().any(worst);
    let issues_found = findings.len();
    findings.sort_by_key(|finding| finding.severity);
    findings.truncate(MAX_ISSUES);
    Report {
        valid,
        signature: state(&signature),
        manifest,
        signer: signer(&signature),
        predecessors: predecessors.iter().map(PublicKey::multibase).collect(),
        issues: findings,
        issues_found,
        memories: store.map_or(0, |store| store.memories.len() as u64),
        conversations,
        merged,
        selection,
    }
}

fn finding(issue: Issue) -> Finding {
    let Issue { severity, rule, path, message } = issue;
    Finding { severity, check: rule.to_owned(), path, message }
}

fn error(check: &str, path: &str, message: &str) -> Finding {
    Finding { severity: Severity::Error, check: check.into(), path: path.into(), message: message.into() }
}

/// A signature that is not there or cannot be checked is no fault of the bundle, but worth a word.
fn missing(signature: &SignatureCheck, strict: bool) -> Option<Finding> {
    let severity = if strict { Severity::Error } else { Severity::Warning };
    let message = match signature {
        SignatureCheck::Absent => "is absent: nobody vouches for the content".to_owned(),
        SignatureCheck::Unsupported(reason) => format!("cannot be checked: {reason}"),
        SignatureCheck::Valid { .. } | SignatureCheck::Invalid(_) => return None,
    };
    Some(Finding { severity, check: "R-18.1".into(), path: "$.signature".into(), message })
}

fn wrong_signer(
    signature: &SignatureCheck,
    predecessors: &[PublicKey],
    wanted: &[PublicKey],
) -> Option<Finding> {
    if wanted.is_empty() {
        return None;
    }
    match signature {
        SignatureCheck::Valid { key } if wanted.contains(key) => None,
        SignatureCheck::Valid { .. } if predecessors.iter().any(|key| wanted.contains(key)) => None,
        SignatureCheck::Valid { key } => {
            let wanted: Vec<String> = wanted.iter().map(PublicKey::multibase).collect();
            let message = format!("is of {}, not of {}", key.multibase(), wanted.join(" or "));
            Some(error("signer", "$.signature", &message))
        }
        _ => Some(error("signer", "$.signature", "is not there to tell who signed")),
    }
}

fn state(signature: &SignatureCheck) -> Signed {
    match signature {
        SignatureCheck::Valid { .. } => Signed::Valid,
        SignatureCheck::Invalid(_) => Signed::Invalid,
        SignatureCheck::Absent => Signed::Absent,
        SignatureCheck::Unsupported(_) => Signed::Unsupported,
    }
}

/// Every file of the bundle, by its name in it.
fn names<'a>(bundle: &'a Bundle, root: &str) -> BTreeSet<&'a str> {
    bundle.list().iter().filter_map(|entry| entry.path.strip_prefix(root)).collect()
}
