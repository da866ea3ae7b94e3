//! `satchel-manifest.json`: covers what PAM's own signature leaves out — every file, the base, the revisions, the
//! filter.

use satchel_pam::{
    hash::Sha256Digest,
    jcs::{self, JcsError},
    store::StoreHeader,
};
use serde::{Deserialize, Serialize};

pub use satchel_source::pam::{MANIFEST, SIGNATURE};

use crate::rotation::KeyRotation;

/// The longest manifest that is read, in bytes. It is held in memory, with a line of about 160 bytes for each file of a
/// bundle.
pub const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// The program name in `exported_by` of every other bundle of ours.
pub const PROGRAM_NAME: &str = "satchel";
/// The program name in `exported_by` of an export that is not a copy of a store, so that a document without its
/// manifest says so too.
pub const SELECTION_PROGRAM_NAME: &str = "satchel-selection";
/// The only version so far.
pub const VERSION: u32 = 1;

/// The manifest; its file contains the RFC 8785 form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Always [`VERSION`].
    pub version: u32,
    /// PAM `export_id`.
    pub export_id: String,
    /// `full` or `incremental`.
    pub export_type: String,
    /// The full export that an incremental one builds on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_export_id: Option<String>,
    /// PAM `since`, as in the memory store, where no PAM signature covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The first revision that may differ from the base; 0 in a full export.
    pub from_revision: u64,
    /// The revision that the export shows.
    pub to_revision: u64,
    /// Ids of relations that were withdrawn since the base. PAM cannot express this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn_relations: Vec<String>,
    /// Ids of conversations that were undone since the base. PAM cannot express this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone_conversations: Vec<String>,
    /// Vectors that were withdrawn since the base. PAM cannot express this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn_embeddings: Vec<VectorName>,
    /// What was left out.
    pub filter: BundleFilter,
    /// The chain of rotations that led to the signing key, the first rotation first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rotations: Vec<KeyRotation>,
    /// Every file of the bundle except this manifest and its signature, by path.
    pub files: Vec<ManifestFile>,
}

/// The identity of a vector: there is one for each memory and model.
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
pub struct BundleFilter {
    /// Whether the bundle contains conversations.
    pub conversations: bool,
    /// Whether the bundle contains the bytes of attachments.
    pub attachments: bool,
    /// Set if the bundle is not a copy of the store, but a part of it or without identifiers. No incremental export can
    /// build on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<BundleSelection>,
}

/// How an export was selected. The values of the selection are not recorded: a tag may be as private as the memory that
/// has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleSelection {
    /// The criteria of the selection: `type`, `status`, `platform`, `account`, `tag`, `time`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Whether accounts, addresses and the providers' own fields were removed.
    pub stripped: bool,
}

impl BundleSelection {
    /// Returns the selection of a document: from its manifest or, if that is missing, from the program name in
    /// `exported_by`.
    #[must_use]
    pub fn of(header: &StoreHeader, manifest: Option<&Manifest>) -> Option<Self> {
        let own = manifest.filter(|manifest| header.export_id.as_ref() == Some(&manifest.export_id));
        let named = header.exported_by.as_deref().and_then(|name| name.split_once('/'));
        let partial = named.is_some_and(|(name, _)| name == SELECTION_PROGRAM_NAME);
        // Never empty, because an empty selection on the wire would mean that there is none.
        let unnamed =
            || Self { by: vec!["something that only its manifest says".to_owned()], stripped: false };
        own.and_then(|manifest| manifest.filter.selection.clone()).or_else(|| partial.then(unnamed))
    }

    /// Describes for the user what is missing.
    #[must_use]
    pub fn describe(&self) -> String {
        let by = (!self.by.is_empty()).then(|| format!("a selection by {}", self.by.join(", ")));
        let stripped = self.stripped.then(|| "without identifiers".to_owned());
        by.into_iter().chain(stripped).collect::<Vec<_>>().join(", ")
    }
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// Its path in the bundle, with `/` between folders.
    pub path: String,
    /// `sha256:…`
    pub sha256: Sha256Digest,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Manifest {
    /// Parses a manifest file.
    ///
    /// # Errors
    /// A description, for the user, of what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(|error| format!("is not JSON: {error}"))?;
        // The same content has only one valid text, so that nothing can be hidden in the formatting.
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

    /// Returns the bytes that are signed.
    ///
    /// # Errors
    /// If a number is outside the range that RFC 8785 can represent.
    pub fn to_bytes(&mut self) -> Result<Vec<u8>, JcsError> {
        // Files are written one by one: a tree of all of them would take ten times the memory of their text.
        let files = std::mem::take(&mut self.files);
        let bare = jcs::write(self);
        self.files = files;
        let mut bytes = bare?;
        // Within a string a quotation mark always has a backslash before it, and nothing else in a manifest has this
        // name.
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

/// The empty file list in the text of a manifest without files.
const NO_FILES: &[u8] = b"\"files\":[]";

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_written_file_by_file_is_in_canonical_form() {
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
                filter: BundleFilter::default(),
                rotations: Vec::new(),
                files: (0..count).map(file).collect(),
            };
            let bytes = manifest.to_bytes().unwrap();
            assert_eq!(bytes, jcs::write(&manifest).unwrap());
            assert_eq!(Manifest::parse(&bytes).unwrap(), manifest);
        }
    }
}
