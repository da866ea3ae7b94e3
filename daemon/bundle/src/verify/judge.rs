//! The single place where PAM documents are judged: which files belong together, which checks pass, who signed them,
//! and what the signatures cover.

use satchel_pam::{
    embedding,
    issue::{Issue, Severity},
    parse::{self, ChecksumReading},
    sign::{PublicKey, SignatureCheck},
    store::StoreHeader,
    validate::{self, BundleCheck, Counts},
};
use satchel_source::{
    Bundle, Document, Files as _,
    pam::{self, PamFiles},
};

use super::{Coverage, Covered, Signed, VerifyError, is_store, manifest, unchecked, unreadable, within};
use crate::{
    manifest::{MANIFEST, OURS, SELECTION, Selected},
    rotation,
};

/// Returns the sets of documents that belong together: those that an import finds, and stores that do not declare their
/// schema.
pub(super) fn sets(bundle: &Bundle) -> Vec<PamFiles> {
    let mut sets = pam::find(bundle);
    for entry in bundle.list().iter().filter(|entry| is_store(&entry.path)) {
        let name = &entry.path;
        let known =
            |files: &PamFiles| files.store.as_ref() == Some(name) || files.conversations.contains(name);
        if !sets.iter().any(known) {
            sets.push(pam::around(bundle, name));
        }
    }
    // Documents that were found without a store may belong to a damaged one.
    let stores: Vec<String> =
        sets.iter().filter(|files| files.store.is_some()).map(|files| files.root.clone()).collect();
    for files in sets.iter_mut().filter(|files| files.store.is_none()) {
        let homeless = |name: &String| !stores.iter().any(|root| name.starts_with(root.as_str()));
        files.conversations.retain(homeless);
        files.embeddings.retain(homeless);
    }
    sets.retain(|files| !files.files().is_empty());
    sets
}

/// The result for one bundle, or for documents without one: which checks pass, who signed, and what the signatures
/// cover.
///
/// `verify`, `apply` and `import` all use this. If it finds an error, only the person who supplied the files vouches
/// for them.
pub struct Judged {
    /// Its path in the source; empty if it is the whole source.
    pub(super) place: String,
    pub(super) report: validate::Report,
    pub(super) manifest: Signed,
    pub(super) conversations: u64,
    pub(super) selection: Option<Selected>,
    /// Keys that the signing key is proven to succeed.
    pub(super) predecessors: Vec<PublicKey>,
    pub(super) covered: Covered,
    /// Whether it claims that somebody vouches for it.
    pub(super) claimed: bool,
}

impl Judged {
    /// Returns the key that signed it, if all checks passed.
    #[must_use]
    pub fn signer(&self) -> Option<&PublicKey> {
        match &self.report.signature {
            SignatureCheck::Valid { key } if self.problem().is_none() => Some(key),
            _ => None,
        }
    }

    /// Returns whether no manifest lists its files.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.manifest == Signed::Absent
    }

    /// Returns which parts signatures cover.
    #[must_use]
    pub fn covered(&self) -> Covered {
        self.covered
    }

    /// Returns whether it claims that somebody vouches for it: by a signature, by a manifest, or because it says that
    /// Satchel wrote it.
    #[must_use]
    pub fn claimed(&self) -> bool {
        self.claimed
    }

    /// Returns the keys that the signing key is proven to succeed.
    #[must_use]
    pub fn predecessors(&self) -> &[PublicKey] {
        &self.predecessors
    }

    /// Describes the failed checks for the user.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let mut errors = self.report.issues.iter().filter(|issue| issue.severity == Severity::Error);
        let first = errors.next()?;
        let more = match errors.count() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        Some(format!("{} {}{more}", first.path, first.message))
    }
}

/// Judges the documents `files` of `bundle`.
///
/// # Errors
/// If one of them cannot be read.
pub fn judge(bundle: &Bundle, files: &PamFiles) -> Result<Judged, VerifyError> {
    let place = files.store.clone().or_else(|| files.files().first().cloned()).unwrap_or_default();
    let Some(store) = &files.store else {
        let mut issues = orphans(bundle, files);
        for name in files.conversations.iter().chain(&files.embeddings) {
            issues.extend(loose(bundle, name)?);
        }
        let covered = Covered {
            conversations: Coverage::of(!files.conversations.is_empty(), false),
            ..Covered::default()
        };
        return Ok(Judged {
            place,
            report: of_documents(issues),
            manifest: Signed::Absent,
            conversations: files.conversations.len() as u64,
            selection: None,
            predecessors: Vec::new(),
            covered,
            claimed: false,
        });
    };
    let mut report = check_documents(bundle, files, store)?;
    let manifest::Looked { state, issues, manifest } = manifest::check(bundle, &files.root, &report)?;
    report.issues.extend(issues);
    let within = bundle.never_read().filter(|unread| unread.name.starts_with(&files.root));
    report.issues.extend(within.map(unchecked));
    let ours = report.store.as_ref().is_some_and(|store| is_satchels(&store.header));
    let claimed = ours || state != Signed::Absent || report.signature != SignatureCheck::Absent;
    if state == Signed::Absent && ours {
        let problem = "is missing, and the bundle says that Satchel wrote it: Satchel writes none without";
        report.issues.push(Issue::error("manifest", MANIFEST, problem));
    }
    let selection = report.store.as_ref().and_then(|store| Selected::of(&store.header, manifest.as_ref()));
    let rotations = manifest.map(|manifest| manifest.rotations).unwrap_or_default();
    let predecessors = match &report.signature {
        // Anybody may have written the records of an invalid manifest, but each record proves itself.
        SignatureCheck::Valid { key } => rotation::predecessors(&rotations, key),
        SignatureCheck::Invalid(_) | SignatureCheck::Absent | SignatureCheck::Unsupported(_) => Vec::new(),
    };
    let covered = Covered::of(files, &report, state == Signed::Valid);
    let conversations = files.conversations.len() as u64;
    Ok(Judged { place, report, manifest: state, conversations, selection, predecessors, covered, claimed })
}

/// Returns whether a document says that Satchel wrote it.
fn is_satchels(header: &StoreHeader) -> bool {
    let name = header.exported_by.as_deref().and_then(|name| name.split('/').next());
    name.is_some_and(|name| name.eq_ignore_ascii_case(OURS) || name.eq_ignore_ascii_case(SELECTION))
}

/// Reports manifests whose memory store is missing, beside or above documents that remain of the bundle.
fn orphans(bundle: &Bundle, files: &PamFiles) -> Vec<Issue> {
    let mut issues = Vec::new();
    for entry in bundle.list() {
        let Some(root) = entry.path.strip_suffix(MANIFEST) else { continue };
        let folder = root.is_empty() || root.ends_with('/');
        if folder && files.files().iter().any(|name| name.starts_with(root)) {
            issues.push(Issue::error("manifest", entry.path.clone(), "is there without its memory store"));
        }
    }
    issues
}

/// Returns what is wrong with a document that came without a store.
fn loose(bundle: &Bundle, name: &str) -> Result<Vec<Issue>, VerifyError> {
    let failed = unreadable(name);
    let open = || bundle.open(name, 0).map_err(&failed);
    let schema = parse::schema_from(open()?).map_err(&failed)?;
    let mut issues = if schema.as_deref() == Some(embedding::SCHEMA) {
        validate::embeddings_from(open()?).map_err(&failed)?
    } else {
        let (document, mut issues) = parse::conversation_from(within(bundle, name)?).map_err(&failed)?;
        issues.extend(document.iter().flat_map(validate::conversation));
        issues
    };
    if bundle.list().len() > 1 {
        issues.iter_mut().for_each(|issue| issue.path.insert_str(0, &format!("{name}:")));
    }
    Ok(issues)
}

/// Creates the report of documents without a store, which have neither checksum nor signature.
fn of_documents(issues: Vec<Issue>) -> validate::Report {
    validate::Report {
        store: None,
        counts: Counts::default(),
        issues,
        checksum: ChecksumReading::Absent,
        signature: SignatureCheck::Absent,
    }
}

fn check_documents(bundle: &Bundle, files: &PamFiles, store: &str) -> Result<validate::Report, VerifyError> {
    let mut check = BundleCheck::read(&Document::new(bundle, store)).map_err(unreadable(store))?;
    let name_of = |name: &str| name.strip_prefix(&files.root).unwrap_or(name).to_owned();
    for name in &files.conversations {
        check.conversation_from(&name_of(name), within(bundle, name)?).map_err(unreadable(name))?;
    }
    for name in &files.embeddings {
        let input = bundle.open(name, 0).map_err(unreadable(name))?;
        check.embeddings_from(&name_of(name), input).map_err(unreadable(name))?;
    }
    Ok(check.finish())
}
