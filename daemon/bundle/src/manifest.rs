//! `satchel-manifest.json`: what PAM's own signature leaves out — every file, the base, the revisions, the filter.

use satchel_pam::{
    hash::Sha256Digest,
    jcs::{self, JcsError},
    store::StoreHeader,
};
use serde::{Deserialize, Serialize};

pub use satchel_source::pam::{MANIFEST, SIGNATURE};

use crate::rotation::Rotation;

/// Longest manifest that is read, in bytes: it is held in memory, with a line of some 160 bytes for each file of a bundle.
pub const LONGEST_MANIFEST: u64 = 64 << 20;
/// The name in `exported_by` of every other bundle of ours.
pub const OURS: &str = "satchel";
/// The name in `exported_by` of what is no copy of a store, so that a document without its manifest says it too.
pub const SELECTION: &str = "satchel-selection";
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
    /// Vectors that were withdrawn since the base: likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn_embeddings: Vec<VectorName>,
    /// What was left out.
    pub filter: Filter,
    /// How the signing key came to follow others, the first rotation first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rotations: Vec<Rotation>,
    /// Every other file of the bundle but the signature, by path.
    pub files: Vec<ManifestFile>,
}

/// What names a vector: there is one for each memory and model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorName {
    /// The memory's id.
    pub memory_id: String,
    /// The model.
    pub model: String,
}

/// What was left out of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Whether conversations are in it.
    pub conversations: bool,
    /// Whether the bytes of attachments are in it.
    pub attachments: bool,
    /// Set if it is no copy of the store, but a part of it, or without what says who somebody is: nothing can be built on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selected>,
}

/// How an export was selected. The values that were asked for are not told: a tag may be as private as what it is on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selected {
    /// What was chosen by: `type`, `status`, `platform`, `account`, `tag`, `time`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Whether accounts, addresses and providers' fields were taken out.
    pub stripped: bool,
}

impl Selected {
    /// What a document says of itself, in its manifest or, where that is missing, by the name of its writer.
    #[must_use]
    pub fn of(header: &StoreHeader, manifest: Option<&Manifest>) -> Option<Self> {
        let own = manifest.filter(|manifest| header.export_id.as_ref() == Some(&manifest.export_id));
        let named = header.exported_by.as_deref().and_then(|name| name.split_once('/'));
        let partial = named.is_some_and(|(name, _)| name == SELECTION);
        // Never empty: on the wire that would be no selection.
        let unnamed =
            || Self { by: vec!["something that only its manifest says".to_owned()], stripped: false };
        own.and_then(|manifest| manifest.filter.selection.clone()).or_else(|| partial.then(unnamed))
    }

    /// What is missing, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let by = (!self.by.is_empty()).then(|| format!("a selection by {}", self.by.join(", ")));
        let stripped = self.stripped.then(|| "without identifiers".to_owned());
        by.into_iter().chain(stripped).collect::<Vec<_>>().join(", ")
    }
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
    pub fn to_bytes(&mut self) -> Result<Vec<u8>, JcsError> {
        // File by file: the tree of them all would take ten times the room of its text.
        let files = std::mem::take(&mut self.files);
        let bare = jcs::write(self);
        self.files = files;
        let mut bytes = bare?;
        // No string holds a quotation mark without a backslash before it, and nothing else in a manifest has this name.
        let Some(at) = bytes.windows(NO_FILES.len()).position(|window| window == NO_FILES) else {
            return jcs::write(self);
        };
        let rest = bytes.split_off(at + NO_FILES.len() - 1);
        for (index, file) in self.files.iter().enumerate() {
            if index > 0 {
                bytes.push(b',');
            }
            bytes.extend(jcs::write(file)?);
        }
        bytes.extend(rest);
        Ok(bytes)
    }
}

/// What a manifest without files says of them.
const NO_FILES: &[u8] = b"\"files\":[]";

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_is_written_file_by_file_has_its_canonical_form() {
        for count in [0, 1, 3] {
            let file = |number: u8| ManifestFile {
                path: format!("conversations/\"files\":[]\\{number}é.json"),
                sha256: Sha256Digest::from_bytes([number; 32]),
                bytes: u64::from(number),
            };
            let mut manifest = Manifest {
                version: VERSION,
                export_id: "\"files\":[]".into(),
                export_type: "full".into(),
                base_export_id: Some("files\":[]".into()),
                since: None,
                from_revision: 0,
                to_revision: 7,
                withdrawn_relations: vec!["files".into()],
                undone_conversations: Vec::new(),
                withdrawn_embeddings: vec![VectorName {
                    memory_id: "\"files\":[]".into(),
                    model: "m".into(),
                }],
                filter: Filter::default(),
                rotations: Vec::new(),
                files: (0..count).map(file).collect(),
            };
            let bytes = manifest.to_bytes().unwrap();
            assert_eq!(bytes, jcs::write(&manifest).unwrap());
            assert_eq!(Manifest::parse(&bytes).unwrap(), manifest);
        }
    }
}
