//! Determines the standing of PAM documents: whether they are merged as the user's own, or only add what is missing.

use satchel_bundle::{
    manifest::{MANIFEST, SIGNATURE},
    verify,
};
use satchel_merge::evidence::UNSIGNED;
use satchel_pam::sign::PublicKey;

use super::{PamRun, scan::ScannedStore};
use crate::ingest::{receipt::DocumentStanding, request::Apply};

/// The keys that this data directory knows, as multibase.
#[derive(Clone, Debug, Default)]
pub(in crate::ingest) struct KnownKeys {
    /// Keys that this data directory signs with now, or signed with earlier.
    pub(in crate::ingest) own: Vec<String>,
    /// Keys of others that the user trusts.
    pub(in crate::ingest) trusted: Vec<String>,
}

/// What is known about the origin of documents before they are read.
pub(super) struct DocumentOrigin {
    pub(super) standing: DocumentStanding,
    /// The key that signed them, if all of them pass verification.
    pub(super) signer: Option<PublicKey>,
    /// The reason why they fail verification.
    pub(super) problem: Option<String>,
    /// The signer's key and its predecessors, as multibase.
    keys: Vec<String>,
    /// Part of the documents is not covered by a signature.
    pub(super) open: bool,
}

impl DocumentOrigin {
    /// Returns the standing of documents without a verified signer.
    pub(super) fn of_nobody(apply: Option<&Apply>) -> Self {
        let forced = apply.is_some_and(|apply| apply.force);
        let standing = if forced { DocumentStanding::Forced } else { DocumentStanding::Untrusted };
        Self { standing, signer: None, problem: None, keys: Vec::new(), open: false }
    }

    /// Returns the stranger whose documents they are; `None` if they are merged.
    pub(super) fn untrusted_signer(&self) -> Option<String> {
        let name = || self.signer.as_ref().map_or_else(|| UNSIGNED.to_owned(), PublicKey::multibase);
        (self.standing == DocumentStanding::Untrusted).then(name)
    }

    /// Returns the problems that the user waived.
    pub(super) fn forced(&self) -> Vec<String> {
        let by = match (&self.problem, &self.signer) {
            _ if self.standing != DocumentStanding::Forced => return Vec::new(),
            (Some(problem), _) => problem.clone(),
            (None, Some(key)) => {
                format!("it is signed by {}, a key that is not trusted here", key.multibase())
            }
            (None, None) => "nobody signed it".to_owned(),
        };
        vec![by]
    }
}

impl PamRun<'_> {
    /// Determines the standing of a store's documents; the error is the reason why they are refused.
    pub(super) fn right(&self, looked: &ScannedStore) -> Result<DocumentOrigin, String> {
        if !self.claims(looked) {
            return self.wanted_signer(DocumentOrigin::of_nobody(self.apply));
        }
        let judged =
            verify::evaluate(self.bundle, self.files).map_err(|error| satchel_source::chain(&error))?;
        if !judged.claims_signer() {
            return self.wanted_signer(DocumentOrigin::of_nobody(self.apply));
        }
        let signer = judged.signer().cloned();
        let keys = signer.iter().chain(judged.predecessors().iter().filter(|_| signer.is_some()));
        let keys: Vec<String> = keys.map(PublicKey::multibase).collect();
        let own = keys.iter().any(|key| self.keys.own.contains(key));
        if own && judged.lacks_manifest() {
            // As in `verify`: bundles signed by this data directory have a manifest.
            let problem = format!("{MANIFEST} is missing, so relations and conversations are not signed");
            return self.wanted_signer(DocumentOrigin {
                problem: Some(problem),
                ..DocumentOrigin::of_nobody(self.apply)
            });
        }
        let (problem, open) = (judged.problem(), !judged.coverage().whole());
        let right = DocumentOrigin { signer, problem, keys, open, ..DocumentOrigin::of_nobody(self.apply) };
        if let Some(standing) = self.known(&right).filter(|_| !self.watched) {
            return self.wanted_signer(DocumentOrigin { standing, ..right });
        }
        self.wanted_signer(right)
    }

    /// Returns whether the documents claim an origin: by a manifest, a signature or the name of an exporter.
    fn claims(&self, looked: &ScannedStore) -> bool {
        let beside = |name: &str| self.files.companions.contains(&format!("{}{name}", self.files.root));
        beside(MANIFEST)
            || beside(SIGNATURE)
            || looked.scan.signed.signature.is_some()
            || looked.root.header.exported_by.is_some()
    }

    /// Returns the standing if the signer's documents are merged. Documents that are not fully signed have none: the
    /// unsigned part may come from anybody.
    fn known(&self, right: &DocumentOrigin) -> Option<DocumentStanding> {
        if right.open {
            return None;
        }
        if right.keys.iter().any(|key| self.keys.own.contains(key)) {
            return Some(DocumentStanding::Own);
        }
        let named = self.apply.and_then(|apply| apply.trust.as_ref()).map(PublicKey::multibase);
        let trusted = |key: &String| self.keys.trusted.contains(key) || named.as_ref() == Some(key);
        right.keys.iter().any(trusted).then_some(DocumentStanding::Trusted)
    }

    /// Checks that the signer is the one that the user named.
    pub(super) fn wanted_signer(&self, right: DocumentOrigin) -> Result<DocumentOrigin, String> {
        let Some(named) = self.apply.and_then(|apply| apply.trust.as_ref()) else { return Ok(right) };
        let named = named.multibase();
        match (&right.signer, &right.problem) {
            (_, Some(problem)) => Err(format!("{problem}; `satchel verify` says more")),
            (None, None) => Err(format!("nobody signed it, and --trust names {named}")),
            (Some(_), None) if right.keys.contains(&named) && right.standing == DocumentStanding::Untrusted => {
                Err("its signature does not cover all of it, so the rest may be anybody's; `satchel verify` says more"
                    .to_owned())
            }
            (Some(_), None) if right.keys.contains(&named) => Ok(right),
            (Some(key), None) => {
                Err(format!("it is signed by {}, not by {named}, which --trust names", key.multibase()))
            }
        }
    }
}
