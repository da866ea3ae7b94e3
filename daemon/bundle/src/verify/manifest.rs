//! Checks the manifest of a bundle that Satchel wrote: every file is unchanged, and there are no unlisted files beside
//! them.

use std::{collections::BTreeSet, io};

use satchel_pam::{
    hash::Sha256Digest,
    issue::Issue,
    sign::{self, SignatureCheck},
    validate,
};
use satchel_source::{Bundle, FileSet as _};
use sha2::{Digest, Sha256};

use super::{SignatureState, VerifyError, names_below, read_limited};
use crate::manifest::{MANIFEST, MAX_MANIFEST_BYTES, Manifest, SIGNATURE};

/// The result of checking a manifest.
pub(super) struct ManifestCheck {
    pub(super) state: SignatureState,
    pub(super) issues: Vec<Issue>,
    /// The manifest as it was read, whether or not it is signed.
    pub(super) manifest: Option<Manifest>,
}

/// Checks the manifest, if there is one, with the key of PAM's signature.
pub(super) fn check(
    bundle: &Bundle,
    root: &str,
    report: &validate::Report,
) -> Result<ManifestCheck, VerifyError> {
    let names = names_below(bundle, root);
    if !names.contains(MANIFEST) {
        let orphan = names
            .contains(SIGNATURE)
            .then(|| manifest_issue(SIGNATURE, "signs a manifest that is not there"));
        let state = if orphan.is_some() { SignatureState::Invalid } else { SignatureState::Absent };
        return Ok(ManifestCheck { state, issues: orphan.into_iter().collect(), manifest: None });
    }
    let bytes = read_limited(bundle, &format!("{root}{MANIFEST}"), MAX_MANIFEST_BYTES)?;
    let mut issues = Vec::new();
    let mut found = None;
    match Manifest::parse(&bytes) {
        Ok(manifest) => {
            issues.extend(check_files(bundle, root, &manifest, &names)?);
            issues.extend(check_export(&manifest, report));
            found = Some(manifest);
        }
        Err(problem) => issues.push(manifest_issue(MANIFEST, &problem)),
    }
    let signature = if names.contains(SIGNATURE) {
        Some(read_limited(bundle, &format!("{root}{SIGNATURE}"), MAX_MANIFEST_BYTES)?)
    } else {
        None
    };
    issues.extend(check_signature(&bytes, signature.as_deref(), report));
    let state = if issues.is_empty() { SignatureState::Valid } else { SignatureState::Invalid };
    Ok(ManifestCheck { state, issues, manifest: found })
}

fn check_files(
    bundle: &Bundle,
    root: &str,
    manifest: &Manifest,
    names: &BTreeSet<&str>,
) -> Result<Vec<Issue>, VerifyError> {
    let mut issues = Vec::new();
    let mut listed = BTreeSet::from([MANIFEST, SIGNATURE]);
    for file in &manifest.files {
        if !listed.insert(&file.path) {
            issues.push(manifest_issue(&file.path, "is listed twice"));
        } else if !names.contains(file.path.as_str()) {
            issues.push(manifest_issue(&file.path, "is listed and missing"));
        } else if hash(bundle, &format!("{root}{}", file.path))? != (file.sha256, file.bytes) {
            issues.push(manifest_issue(&file.path, "is not the file that was signed"));
        }
    }
    issues.extend(
        names
            .iter()
            .filter(|name| !listed.contains(*name))
            .map(|name| manifest_issue(name, "was added after the signing")),
    );
    Ok(issues)
}

fn hash(bundle: &Bundle, name: &str) -> Result<(Sha256Digest, u64), VerifyError> {
    struct Sum(Sha256, u64);
    impl io::Write for Sum {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            self.1 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let failed = |source| VerifyError::Read { name: name.to_owned(), source };
    let mut sum = Sum(Sha256::new(), 0);
    io::copy(&mut bundle.open(name, 0).map_err(failed)?, &mut sum).map_err(failed)?;
    Ok((Sha256Digest::from_bytes(sum.0.finalize().into()), sum.1))
}

/// Checks that the manifest belongs to this export, and not to another one with the same files.
fn check_export(manifest: &Manifest, report: &validate::Report) -> Vec<Issue> {
    let Some(store) = &report.store else { return Vec::new() };
    let mut issues = Vec::new();
    if store.header.export_id.as_deref() != Some(manifest.export_id.as_str()) {
        issues.push(manifest_issue(MANIFEST, "is about another export"));
    }
    if store.header.base_export_id != manifest.base_export_id {
        issues.push(manifest_issue(MANIFEST, "names another base than the memory store"));
    }
    if store.header.since.map(|since| since.to_string()) != manifest.since {
        issues.push(manifest_issue(MANIFEST, "names another `since` than the memory store"));
    }
    if store.header.export_type.as_str() != manifest.export_type {
        issues.push(manifest_issue(MANIFEST, "names another type of export than the memory store"));
    }
    issues
}

fn check_signature(bytes: &[u8], signature: Option<&[u8]>, report: &validate::Report) -> Option<Issue> {
    let SignatureCheck::Valid { key } = &report.signature else {
        return Some(manifest_issue(
            SIGNATURE,
            "cannot be checked, as the memory store has no valid signature to name the key",
        ));
    };
    let Some(text) = signature.and_then(|signature| std::str::from_utf8(signature).ok()) else {
        return Some(manifest_issue(SIGNATURE, "is missing or not text"));
    };
    let problem = sign::verify_bytes(key, bytes, text.trim_end_matches('\n')).err()?;
    Some(manifest_issue(SIGNATURE, &problem.to_string()))
}

fn manifest_issue(path: &str, problem: &str) -> Issue {
    Issue::error("manifest", path, problem)
}
