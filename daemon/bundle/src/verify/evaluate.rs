//! The single place where PAM documents are judged: which files belong together, which checks pass, who signed them,
//! and what the signatures cover.

use satchel_pam::{
    embedding,
    issue::{Issue, Severity},
    parse::{self, ChecksumStatus},
    sign::{PublicKey, SignatureCheck},
    store::StoreHeader,
    validate::{self, BundleCheck, Counts},
};
use satchel_source::{
    Bundle, FileSet as _, SourceText,
    pam::{self, PamFiles},
};

use super::{
    Coverage, SignatureCoverage, SignatureState, VerifyError, is_store, manifest, open_conversation,
    read_error, unread_issue, valid_key,
};
use crate::{
    manifest::{BundleSelection, MANIFEST, PROGRAM_NAME, SELECTION_PROGRAM_NAME},
    rotation,
};

/// Returns the sets of documents that belong together: those that an import finds, and stores that do not declare their
/// schema.
pub(super) fn document_sets(bundle: &Bundle) -> Vec<PamFiles> {
    let mut sets = pam::find(bundle);
    for entry in bundle.list().iter().filter(|entry| is_store(&entry.path)) {
        let name = &entry.path;
        let known =
            |files: &PamFiles| files.store.as_ref() == Some(name) || files.conversations.contains(name);
        if !sets.iter().any(known) {
            sets.push(pam::find_around(bundle, name));
        }
    }
    // Documents that were found without a store may belong to a damaged one.
    let stores: Vec<String> =
        sets.iter().filter(|files| files.store.is_some()).map(|files| files.root.clone()).collect();
    for files in sets.iter_mut().filter(|files| files.store.is_none()) {
        let without_store = |name: &String| !stores.iter().any(|root| name.starts_with(root.as_str()));
        files.conversations.retain(without_store);
        files.embeddings.retain(without_store);
    }
    sets.retain(|files| !files.files().is_empty());
    sets
}

/// The result for one bundle, or for documents without one: which checks pass, who signed, and what the signatures
/// cover.
///
/// `verify`, `apply` and `import` all use this. If it finds an error, only the person who supplied the files vouches
/// for them.
pub struct BundleVerdict {
    /// Its path in the source; empty if it is the whole source.
    pub(super) path: String,
    pub(super) report: validate::Report,
    pub(super) manifest: SignatureState,
    pub(super) conversations: u64,
    pub(super) selection: Option<BundleSelection>,
    /// Keys that the signing key is proven to succeed.
    pub(super) predecessors: Vec<PublicKey>,
    pub(super) coverage: SignatureCoverage,
    /// Whether it claims that somebody vouches for it.
    pub(super) claims_signer: bool,
}

impl BundleVerdict {
    /// Returns the key that signed it, if all checks passed.
    #[must_use]
    pub fn signer(&self) -> Option<&PublicKey> {
        valid_key(&self.report.signature).filter(|_| self.problem().is_none())
    }

    /// Returns whether no manifest lists its files.
    #[must_use]
    pub fn lacks_manifest(&self) -> bool {
        self.manifest == SignatureState::Absent
    }

    /// Returns which parts signatures cover.
    #[must_use]
    pub fn coverage(&self) -> SignatureCoverage {
        self.coverage
    }

    /// Returns whether it claims that somebody vouches for it: by a signature, by a manifest, or because it says that
    /// Satchel wrote it.
    #[must_use]
    pub fn claims_signer(&self) -> bool {
        self.claims_signer
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
pub fn evaluate(bundle: &Bundle, files: &PamFiles) -> Result<BundleVerdict, VerifyError> {
    let place = files.store.clone().or_else(|| files.files().first().cloned()).unwrap_or_default();
    let Some(store) = &files.store else {
        let mut issues = orphaned_manifests(bundle, files);
        for name in files.conversations.iter().chain(&files.embeddings) {
            issues.extend(check_loose_document(bundle, name)?);
        }
        let coverage = SignatureCoverage {
            conversations: Coverage::of(!files.conversations.is_empty(), false),
            ..SignatureCoverage::default()
        };
        return Ok(BundleVerdict {
            path: place,
            report: report_without_store(issues),
            manifest: SignatureState::Absent,
            conversations: files.conversations.len() as u64,
            selection: None,
            predecessors: Vec::new(),
            coverage,
            claims_signer: false,
        });
    };
    let mut report = check_documents(bundle, files, store)?;
    let manifest::ManifestCheck { state, issues, manifest } = manifest::check(bundle, &files.root, &report)?;
    report.issues.extend(issues);
    let within = bundle.all_unread().filter(|unread| unread.name.starts_with(&files.root));
    report.issues.extend(within.map(unread_issue));
    let ours = report.store.as_ref().is_some_and(|store| written_by_satchel(&store.header));
    let claims_signer = ours || state != SignatureState::Absent || report.signature != SignatureCheck::Absent;
    if state == SignatureState::Absent && ours {
        let problem = "is missing, and the bundle says that Satchel wrote it: Satchel writes none without";
        report.issues.push(Issue::error("manifest", MANIFEST, problem));
    }
    let selection =
        report.store.as_ref().and_then(|store| BundleSelection::of(&store.header, manifest.as_ref()));
    let rotations = manifest.map(|manifest| manifest.rotations).unwrap_or_default();
    // Anybody may have written the records of an invalid manifest, but each record proves itself.
    let predecessors = valid_key(&report.signature).map(|key| rotation::predecessors(&rotations, key));
    let coverage = SignatureCoverage::of(files, &report, state == SignatureState::Valid);
    let conversations = files.conversations.len() as u64;
    Ok(BundleVerdict {
        path: place,
        report,
        manifest: state,
        conversations,
        selection,
        predecessors: predecessors.unwrap_or_default(),
        coverage,
        claims_signer,
    })
}

/// Returns whether a document says that Satchel wrote it.
fn written_by_satchel(header: &StoreHeader) -> bool {
    let name = header.exported_by.as_deref().and_then(|name| name.split('/').next());
    name.is_some_and(|name| {
        name.eq_ignore_ascii_case(PROGRAM_NAME) || name.eq_ignore_ascii_case(SELECTION_PROGRAM_NAME)
    })
}

/// Reports manifests whose memory store is missing, beside or above documents that remain of the bundle.
fn orphaned_manifests(bundle: &Bundle, files: &PamFiles) -> Vec<Issue> {
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
fn check_loose_document(bundle: &Bundle, name: &str) -> Result<Vec<Issue>, VerifyError> {
    let failed = read_error(name);
    let open = || bundle.open(name, 0).map_err(&failed);
    let schema = parse::schema_from(open()?).map_err(&failed)?;
    let mut issues = if schema.as_deref() == Some(embedding::SCHEMA) {
        validate::embeddings_from(open()?).map_err(&failed)?
    } else {
        let (document, mut issues) =
            parse::conversation_from(open_conversation(bundle, name)?).map_err(&failed)?;
        issues.extend(document.iter().flat_map(validate::conversation));
        issues
    };
    if bundle.list().len() > 1 {
        issues.iter_mut().for_each(|issue| issue.path.insert_str(0, &format!("{name}:")));
    }
    Ok(issues)
}

/// Creates the report of documents without a store, which have neither checksum nor signature.
fn report_without_store(issues: Vec<Issue>) -> validate::Report {
    validate::Report {
        store: None,
        counts: Counts::default(),
        issues,
        checksum: ChecksumStatus::Absent,
        signature: SignatureCheck::Absent,
    }
}

fn check_documents(bundle: &Bundle, files: &PamFiles, store: &str) -> Result<validate::Report, VerifyError> {
    let mut check = BundleCheck::read(&SourceText::new(bundle, store)).map_err(read_error(store))?;
    let name_of = |name: &str| name.strip_prefix(&files.root).unwrap_or(name).to_owned();
    for name in &files.conversations {
        check
            .conversation_from(&name_of(name), open_conversation(bundle, name)?)
            .map_err(read_error(name))?;
    }
    for name in &files.embeddings {
        let input = bundle.open(name, 0).map_err(read_error(name))?;
        check.embeddings_from(&name_of(name), input).map_err(read_error(name))?;
    }
    Ok(check.finish())
}
