//! Describes checksum, count and signature of a store in words. Nothing is refused because of them: the user decides.

use satchel_pam::{
    parse::ChecksumStatus,
    record::Warning,
    sign::{self, SignatureCheck},
    validate,
};

use super::{origin::DocumentOrigin, scan::ScannedStore};

/// Returns one sentence for the receipt.
pub(super) fn summary(looked: &ScannedStore, right: &DocumentOrigin) -> String {
    let scan = &looked.scan;
    let checksum = match &scan.checksum {
        _ if scan.broken.is_some() => "the document is cut, so nothing vouches for it",
        ChecksumStatus::Spec | ChecksumStatus::SdkNormalForm => "the checksum fits the memories",
        ChecksumStatus::Absent => "there is no checksum",
        ChecksumStatus::Mismatch { .. } | ChecksumStatus::NotCanonical(_) => {
            "the checksum does not fit the memories"
        }
    };
    let signature = match sign::verify(&scan.signed) {
        // A valid signature says nothing about files that it does not match.
        SignatureCheck::Valid { .. } if right.signer.is_none() => {
            "the signature does not cover what is there".to_owned()
        }
        SignatureCheck::Valid { key } => format!("signed by {}", key.multibase()),
        SignatureCheck::Invalid(_) => "the signature is not valid".to_owned(),
        SignatureCheck::Absent => "not signed".to_owned(),
        SignatureCheck::Unsupported(_) => "the signature cannot be checked".to_owned(),
    };
    format!("{checksum}; {signature}")
}

/// Returns the problems that deserve their own warnings.
pub(super) fn warnings(name: &str, looked: &ScannedStore) -> Vec<Warning> {
    let ScannedStore { root, scan, .. } = looked;
    let mut found = Vec::new();
    let mut warn = |path: &str, message: String| {
        found.push(Warning { locator: format!("{name}:{path}"), message });
    };
    // A truncated text is reported as such; its wrong checksum adds nothing.
    if scan.broken.is_none() {
        match &scan.checksum {
            ChecksumStatus::Spec | ChecksumStatus::SdkNormalForm => {}
            ChecksumStatus::Absent => warn("$.integrity", "there is no checksum".to_owned()),
            ChecksumStatus::Mismatch { computed } => {
                let problem = "the memories are not those that were exported: their checksum is";
                warn("$.integrity.checksum", format!("{problem} {computed}"));
            }
            ChecksumStatus::NotCanonical(problem) => {
                warn("$.integrity.checksum", format!("there is no canonical form to check: {problem}"));
            }
        }
    }
    match sign::verify(&scan.signed) {
        SignatureCheck::Valid { .. } | SignatureCheck::Absent => {}
        SignatureCheck::Invalid(problem) => {
            warn("$.signature", format!("the signature is not valid: {problem}"));
        }
        SignatureCheck::Unsupported(problem) => {
            warn("$.signature", format!("the signature cannot be checked: {problem}"));
        }
    }
    let stated = root.integrity.as_ref().map(|integrity| integrity.total_memories);
    if let Some(stated) = stated.filter(|stated| *stated != scan.count && scan.broken.is_none()) {
        let message = format!("is {stated}, but there are {} memories", scan.count);
        warn("$.integrity.total_memories", message);
    }
    // The records are validated one by one when they are read; this validates the rest of the root.
    let mut bare = satchel_pam::store::MemoryStore {
        schema_version: root.schema_version.clone(),
        header: root.header.clone(),
        memories: Vec::new(),
        relations: Vec::new(),
        conversations_index: Vec::new(),
        integrity: None,
        signature: root.signature.clone(),
        unknown: root.unknown.clone(),
    };
    if scan.broken.is_none() {
        bare.integrity.clone_from(&root.integrity);
    }
    for issue in validate::memory_store(&bare) {
        found.push(Warning { locator: format!("{name}:{}", issue.path), message: issue.message });
    }
    found
}
