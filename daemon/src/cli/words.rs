//! Maps the numbers of the wire to the words of PAM and INTERFACES.
//!
//! Enum values on the wire are named after these words, so the word is the name without its prefix.

use satchel_proto::{
    signed::unsigned,
    v1::{
        AttachmentKind, DifferenceKind, DocumentStanding, ExportFormat, ExportType, ExtractionMethod,
        ImportStatus, IssueKind, MemoryStatus, MemoryStatusCount, MemoryType, MemoryTypeCount,
        OperationState, PartKind, Permission, PlatformCount, RecordKind, RelationType, Role, SourceOrigin,
        SourceState, Visibility,
    },
};

/// The word for a number that this program does not know, because the daemon is newer.
const UNKNOWN: &str = "unknown";

fn strip(name: Option<&str>, prefix: &str) -> String {
    name.and_then(|name| name.strip_prefix(prefix)).unwrap_or(UNKNOWN).to_lowercase()
}

/// Creates a function from a number on the wire to its word.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $kind:ident, $prefix:literal;)*) => {
        $($(#[$doc])*
        pub(crate) fn $name(value: i32) -> String {
            strip($kind::try_from(value).ok().map(|value| value.as_str_name()), $prefix)
        })*
    };
}

/// A count of the store, with the word for what it counts.
pub(crate) trait Counted {
    fn counted(&self) -> (String, u64);
}

impl Counted for MemoryStatusCount {
    fn counted(&self) -> (String, u64) {
        (memory_status(self.status), unsigned(self.count))
    }
}

impl Counted for MemoryTypeCount {
    fn counted(&self) -> (String, u64) {
        (memory_type(self.r#type), unsigned(self.count))
    }
}

impl Counted for PlatformCount {
    fn counted(&self) -> (String, u64) {
        (self.platform.clone(), unsigned(self.count))
    }
}

words! {
    /// `fact`, `preference`, …
    memory_type: MemoryType, "MEMORY_TYPE_";
    /// `active`, `superseded`, …
    memory_status: MemoryStatus, "MEMORY_STATUS_";
    /// `llm_inference`, …; `unspecified` when the source does not say.
    extraction_method: ExtractionMethod, "EXTRACTION_METHOD_";
    /// `private`, …
    visibility: Visibility, "VISIBILITY_";
    /// `read`, …
    permission: Permission, "PERMISSION_";
    /// `supports`, …
    relation_type: RelationType, "RELATION_TYPE_";
    /// `user`, …
    role: Role, "ROLE_";
    /// `text`, `image`, …
    part_kind: PartKind, "PART_KIND_";
    /// `file`, `image`, …
    attachment_kind: AttachmentKind, "ATTACHMENT_KIND_";
    /// `completed`, `completed_with_skips`, …
    import_status: ImportStatus, "IMPORT_STATUS_";
    /// `own`, `trusted`, `stranger`, `forced`.
    document_standing: DocumentStanding, "DOCUMENT_STANDING_";
    /// `skip`, `warning`.
    issue_kind: IssueKind, "ISSUE_KIND_";
    /// `conversation`, `message`, …
    record_kind: RecordKind, "RECORD_KIND_";
    /// `queued`, `running`, …
    operation_state: OperationState, "OPERATION_STATE_";
    /// `configured`, `flag`, `added`.
    source_origin: SourceOrigin, "SOURCE_ORIGIN_";
    /// `idle`, `watching`, …
    source_state: SourceState, "SOURCE_STATE_";
    /// `full`, `incremental`.
    export_type: ExportType, "EXPORT_TYPE_";
    /// `new`, `changed`, `kept`.
    difference_kind: DifferenceKind, "DIFFERENCE_KIND_";
    /// `pam`, `memu`, `markdown`.
    export_format: ExportFormat, "EXPORT_FORMAT_";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_pam() {
        assert_eq!(memory_type(MemoryType::Preference.into()), "preference");
        assert_eq!(memory_status(MemoryStatus::Retracted.into()), "retracted");
        assert_eq!(extraction_method(ExtractionMethod::LlmInference.into()), "llm_inference");
        assert_eq!(import_status(ImportStatus::CompletedWithSkips.into()), "completed_with_skips");
        assert_eq!(role(Role::Tool.into()), "tool");
        assert_eq!(operation_state(99), "unknown");
    }
}
