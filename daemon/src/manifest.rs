//! `satchel-manifest.json`: what PAM's own signature leaves out — every file, the base, the revisions, the filter.

use satchel_pam::{
    hash::Sha256Digest,
    jcs::{self, JcsError},
};
use serde::{Deserialize, Serialize};

/// The manifest's file name in a bundle.
pub const MANIFEST: &str = "satchel-manifest.json";
/// Its signature's.
pub const SIGNATURE: &str = "satchel-manifest.sig";
/// The only version so far.
pub const VERSION: u32 = 1;

/// The manifest; its file holds the RFC 8785 form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`VERSION`].
    pub version: u32,
    /// PAM `export_id`.
    pub export_id: String,
    /// `full` or `incremental`.
    pub export_type: String,
    /// The full export that an incremental one builds on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_export_id: Option<String>,
    /// PAM `since`, as it stands in the memory store, which no signature of PAM covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// First revision that it may differ in from its base; 0 in a full export.
    pub from_revision: u64,
    /// The revision that it shows.
    pub to_revision: u64,
    /// Relations that were withdrawn since the base, by id: PAM has no way to say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn_relations: Vec<String>,
    /// Conversations that were taken back since the base, by id: likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone_conversations: Vec<String>,
    /// What was left out.
    pub filter: Filter,
    /// Every other file of the bundle but the signature, by path.
    pub files: Vec<ManifestFile>,
}

/// What was left out of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Whether conversations are in it.
    pub conversations: bool,
    /// Whether the bytes of attachments are in it.
    pub attachments: bool,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// Its path in the bundle, `/` between folders.
    pub path: String,
    /// `sha256:…`
    pub sha256: Sha256Digest,
    /// Its length.
    pub bytes: u64,
}

impl Manifest {
    /// Reads a manifest's file.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(|error| format!("is not JSON: {error}"))?;
        // One text for one content, so that nothing can hide in how it is written.
        if jcs::to_vec(&value).ok().as_deref() != Some(bytes) {
            return Err("is not in the canonical form of RFC 8785".into());
        }
        let manifest: Self =
            serde_json::from_value(value).map_err(|error| format!("is no manifest: {error}"))?;
        if manifest.version != VERSION {
            return Err(format!("is of version {}, which a newer Satchel reads", manifest.version));
        }
        Ok(manifest)
    }

    /// The bytes that are signed.
    ///
    /// # Errors
    /// When a number is beyond what RFC 8785 can write.
    pub fn to_bytes(&self) -> Result<Vec<u8>, JcsError> {
        jcs::write(self)
    }
}
