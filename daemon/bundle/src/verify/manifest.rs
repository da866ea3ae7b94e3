//! Checks the manifest of a bundle that Satchel wrote: every file is unchanged, and there are no unlisted files beside
//! them.

use std::{collections::BTreeSet, io};

use satchel_pam::{
    hash::Sha256Digest,
    issue::Issue,
    sign::{self, SignatureCheck},
    validate,
};
use satchel_source::{Bundle, Files as _};
use sha2::{Digest, Sha256};

use super::{Signed, VerifyError, names, read};
use crate::manifest::{LONGEST_MANIFEST, MANIFEST, Manifest, SIGNATURE};

/// The result of checking a manifest.
pub(super) struct Looked {
    pub(super) state: Signed,
    pub(super) issues: Vec<Issue>,
    /// The manifest as it was read, whether or not it is signed.
    pub(super) manifest: Option<Manifest>,
}

/// Checks the manifest, if there is one, with the key of PAM's signature.
pub(super) fn check(bundle: &Bundle, root: &str, report: &validate::Report) -> Result<Looked, VerifyError> {
    let names = names(bundle, root);
    if !names.contains(MANIFEST) {
        let orphan =
            names.contains(SIGNATURE).then(|| wrong(SIGNATURE, "signs a manifest that is not there"));
        let state = if orphan.is_some() { Signed::Invalid } else { Signed::Absent };
        return Ok(Looked { state, issues: orphan.into_iter().collect(), manifest: None });
    }
    let bytes = read(bundle, &format!("{root}{MANIFEST}"), LONGEST_MANIFEST)?;
    let mut issues = Vec::new();
    let mut found = None;
    match Manifest::parse(&bytes) {
        Ok(manifest) => {
            issues.extend(files(bundle, root, &manifest, &names)?);
            issues.extend(export(&manifest, report));
            found = Some(manifest);
        }
        Err(problem) => issues.push(wrong(MANIFEST, &problem)),
    }
    let signature = if names.contains(SIGNATURE) {
        Some(read(bundle, &format!("{root}{SIGNATURE}"), LONGEST_MANIFEST)?)
    } else {
        None
    };
    issues.extend(signed(&bytes, signature.as_deref(), report));
    let state = if issues.is_empty() { Signed::Valid } else { Signed::Invalid };
    Ok(Looked { state, issues, manifest: found })
}

fn files(
    bundle: &Bundle,
    root: &str,
    manifest: &Manifest,
    names: &BTreeSet<&str>,
) -> Result<Vec<Issue>, VerifyError> {
    let mut issues = Vec::new();
    let mut listed = BTreeSet::from([MANIFEST, SIGNATURE]);
    for file in &manifest.files {
        if !listed.insert(&file.path) {
            issues.push(wrong(&file.path, "is listed twice"));
        } else if !names.contains(file.path.as_str()) {
            issues.push(wrong(&file.path, "is listed and missing"));
        } else if hash(bundle, &format!("{root}{}", file.path))? != (file.sha256, file.bytes) {
            issues.push(wrong(&file.path, "is not the file that was signed"));
        }
    }
    issues.extend(
        names
            .iter()
            .filter(|name| !listed.contains(*name))
            .map(|name| wrong(name, "was added after the signing")),
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
fn export(manifest: &Manifest, report: &validate::Report) -> Vec<Issue> {
    let Some(store) = &report.store else { return Vec::new() };
    let mut issues = Vec::new();
    if store.header.export_id.as_deref() != Some(manifest.export_id.as_str()) {
        issues.push(wrong(MANIFEST, "is about another export"));
    }
    if store.header.base_export_id != manifest.base_export_id {
        issues.push(wrong(MANIFEST, "names another base than the memory store"));
    }
    if store.header.since.map(|since| since.to_string()) != manifest.since {
        issues.push(wrong(MANIFEST, "names another `since` than the memory store"));
    }
    if store.header.export_type.as_str() != manifest.export_type {
        issues.push(wrong(MANIFEST, "names another type of export than the memory store"));
    }
    issues
}

fn signed(bytes: &[u8], signature: Option<&[u8]>, report: &validate::Report) -> Option<Issue> {
    let SignatureCheck::Valid { key } = &report.signature else {
        return Some(wrong(
            SIGNATURE,
            "cannot be checked, as the memory store has no valid signature to name the key",
        ));
    };
    let Some(text) = signature.and_then(|signature| std::str::from_utf8(signature).ok()) else {
        return Some(wrong(SIGNATURE, "is missing or not text"));
    };
    let problem = sign::verify_bytes(key, bytes, text.trim_end_matches('\n')).err()?;
    Some(wrong(SIGNATURE, &problem.to_string()))
}

fn wrong(path: &str, problem: &str) -> Issue {
    Issue::error("manifest", path, problem)
}
