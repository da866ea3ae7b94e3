//! Which parts of a bundle a signature covers: PAM's own signature covers the memories, Satchel's manifest covers every
//! file.

use satchel_pam::{issue::Severity, parse::ChecksumStatus, sign::SignatureCheck, validate::Report};
use satchel_source::pam::PamFiles;

use super::{BundleReport, VerifyFinding};

/// Whether a signature covers a part of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// The bundle has no such part.
    #[default]
    Absent,
    /// A valid signature covers it.
    Signed,
    /// No valid signature covers it: anybody may have changed it.
    Unsigned,
}

impl Coverage {
    /// Returns the coverage of a part that exists if `there` is true.
    #[must_use]
    pub fn of(present: bool, signed: bool) -> Self {
        match (present, signed) {
            (false, _) => Self::Absent,
            (true, true) => Self::Signed,
            (true, false) => Self::Unsigned,
        }
    }
}

/// The coverage of each part of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureCoverage {
    pub memories: Coverage,
    pub relations: Coverage,
    pub conversations: Coverage,
    pub attachments: Coverage,
    /// Vectors can be recomputed from the memories, so the verdict does not list them; `--strict` checks them.
    pub embeddings: Coverage,
}

impl SignatureCoverage {
    /// Returns the coverage of documents with the checksum and PAM signature in `report`. `manifest`: Satchel's
    /// manifest covers all files.
    #[must_use]
    pub fn of(files: &PamFiles, report: &Report, manifest: bool) -> Self {
        let fits = matches!(report.checksum, ChecksumStatus::Spec | ChecksumStatus::SdkNormalForm);
        let signed = fits && matches!(report.signature, SignatureCheck::Valid { .. });
        let counts = report.counts;
        let memories = report.store.is_some() && (counts.memories > 0 || signed);
        let relations = counts.relations > 0;
        let index = counts.index > 0;
        let attached =
            files.companions.iter().any(|name| name[files.root.len()..].starts_with("attachments/"));
        Self {
            memories: Coverage::of(memories, signed),
            relations: Coverage::of(relations, manifest),
            conversations: Coverage::of(index || !files.conversations.is_empty(), manifest),
            attachments: Coverage::of(attached, manifest),
            embeddings: Coverage::of(!files.embeddings.is_empty(), manifest),
        }
    }

    /// Returns the combined coverage of several bundles: a part that is unsigned in one of them is unsigned.
    pub(super) fn worst(parts: &[BundleReport]) -> Self {
        let worst =
            |of: fn(&Self) -> Coverage| parts.iter().map(|part| of(&part.coverage)).max().unwrap_or_default();
        Self {
            memories: worst(|one| one.memories),
            relations: worst(|one| one.relations),
            conversations: worst(|one| one.conversations),
            attachments: worst(|one| one.attachments),
            embeddings: worst(|one| one.embeddings),
        }
    }

    /// Returns the parts as the verdict lists them.
    #[must_use]
    pub fn by_part(&self) -> [(&'static str, Coverage); 4] {
        let Self { memories, relations, conversations, attachments, embeddings: _ } = *self;
        [
            ("memories", memories),
            ("relations", relations),
            ("conversations", conversations),
            ("attachments", attachments),
        ]
    }

    /// Returns whether signatures cover every part of the bundle.
    #[must_use]
    pub fn whole(&self) -> bool {
        let all = self.by_part().into_iter().chain([("embeddings", self.embeddings)]);
        all.into_iter().all(|(_, coverage)| coverage != Coverage::Unsigned)
    }

    /// Returns the parts that no signature covers, as findings of a strict check. Unsigned memories are left out,
    /// because the check of the signature reports them.
    pub(super) fn uncovered_findings(self) -> Vec<VerifyFinding> {
        let all = self.by_part().into_iter().chain([("embeddings", self.embeddings)]);
        let open = all.filter(|(name, coverage)| *coverage == Coverage::Unsigned && *name != "memories");
        let finding = |(name, _): (&str, Coverage)| VerifyFinding {
            severity: Severity::Error,
            check: "coverage".to_owned(),
            path: name.to_owned(),
            message: "are not covered by any signature".to_owned(),
        };
        open.map(finding).collect()
    }
}
