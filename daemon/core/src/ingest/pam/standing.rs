//! By what right PAM documents are taken: merged as the person's own, or only added to what is here.

use satchel_bundle::{
    manifest::{MANIFEST, SIGNATURE},
    verify,
};
use satchel_merge::evidence::UNSIGNED;
use satchel_pam::sign::PublicKey;

use super::{Run, store::Looked};
use crate::ingest::{Apply, receipt::Standing};

/// The keys that this data directory knows, multibase.
#[derive(Clone, Debug, Default)]
pub(in crate::ingest) struct KnownKeys {
    /// Those that sign and signed here.
    pub(in crate::ingest) own: Vec<String>,
    /// Those of others that the person trusts.
    pub(in crate::ingest) trusted: Vec<String>,
}

/// What is known of documents before they are taken.
pub(super) struct Right {
    pub(super) standing: Standing,
    /// Who signed them, if all of them holds.
    pub(super) signer: Option<PublicKey>,
    /// What of them does not hold.
    pub(super) problem: Option<String>,
    /// The signer's key and those that it follows, multibase.
    keys: Vec<String>,
    /// Some of them is covered by no signature.
    pub(super) open: bool,
}

impl Right {
    /// Documents for which nobody vouches.
    pub(super) fn of_nobody(apply: Option<&Apply>) -> Self {
        let forced = apply.is_some_and(|apply| apply.force);
        let standing = if forced { Standing::Forced } else { Standing::Stranger };
        Self { standing, signer: None, problem: None, keys: Vec::new(), open: false }
    }

    /// The stranger whose documents they are; none: they are merged.
    pub(super) fn stranger(&self) -> Option<String> {
        let name = || self.signer.as_ref().map_or_else(|| UNSIGNED.to_owned(), PublicKey::multibase);
        (self.standing == Standing::Stranger).then(name)
    }

    /// What the person let pass.
    pub(super) fn forced(&self) -> Vec<String> {
        let by = match (&self.problem, &self.signer) {
            _ if self.standing != Standing::Forced => return Vec::new(),
            (Some(problem), _) => problem.clone(),
            (None, Some(key)) => {
                format!("it is signed by {}, a key that is not trusted here", key.multibase())
            }
            (None, None) => "nobody signed it".to_owned(),
        };
        vec![by]
    }
}

impl Run<'_> {
    /// By what right the documents of a store are taken; why they are refused otherwise.
    pub(super) fn right(&self, looked: &Looked) -> Result<Right, String> {
        if !self.claims(looked) {
            return self.wanted_signer(Right::of_nobody(self.apply));
        }
        let judged = verify::judge(self.bundle, self.files).map_err(|error| satchel_source::chain(&error))?;
        if !judged.claimed() {
            return self.wanted_signer(Right::of_nobody(self.apply));
        }
        let signer = judged.signer().cloned();
        let keys = signer.iter().chain(judged.predecessors().iter().filter(|_| signer.is_some()));
        let keys: Vec<String> = keys.map(PublicKey::multibase).collect();
        let own = keys.iter().any(|key| self.keys.own.contains(key));
        if own && judged.is_bare() {
            // As `verify` says: what is signed here has a manifest.
            let problem = format!("{MANIFEST} is missing, so relations and conversations are not signed");
            return self.wanted_signer(Right { problem: Some(problem), ..Right::of_nobody(self.apply) });
        }
        let (problem, open) = (judged.problem(), !judged.covered().whole());
        let right = Right { signer, problem, keys, open, ..Right::of_nobody(self.apply) };
        if let Some(standing) = self.known(&right).filter(|_| !self.watched) {
            return self.wanted_signer(Right { standing, ..right });
        }
        self.wanted_signer(right)
    }

    /// Whether they say that somebody vouches for them.
    fn claims(&self, looked: &Looked) -> bool {
        let beside = |name: &str| self.files.beside.contains(&format!("{}{name}", self.files.root));
        beside(MANIFEST)
            || beside(SIGNATURE)
            || looked.scan.signed.signature.is_some()
            || looked.frame.header.exported_by.is_some()
    }

    /// Whose they are, if it is somebody whose documents are merged. What no signature covers may be anybody's.
    fn known(&self, right: &Right) -> Option<Standing> {
        if right.open {
            return None;
        }
        if right.keys.iter().any(|key| self.keys.own.contains(key)) {
            return Some(Standing::Own);
        }
        let named = self.apply.and_then(|apply| apply.trust.as_ref()).map(PublicKey::multibase);
        let trusted = |key: &String| self.keys.trusted.contains(key) || named.as_ref() == Some(key);
        right.keys.iter().any(trusted).then_some(Standing::Trusted)
    }

    /// Whether it is the signer's whom the person named.
    pub(super) fn wanted_signer(&self, right: Right) -> Result<Right, String> {
        let Some(named) = self.apply.and_then(|apply| apply.trust.as_ref()) else { return Ok(right) };
        let named = named.multibase();
        match (&right.signer, &right.problem) {
            (_, Some(problem)) => Err(format!("{problem}; `satchel verify` says more")),
            (None, None) => Err(format!("nobody signed it, and --trust names {named}")),
            (Some(_), None) if right.keys.contains(&named) && right.standing == Standing::Stranger => {
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
