//! Maps enum values of the wire to the labels that PAM and the command line use.
//!
//! Enum values on the wire are named after these labels, so the label is the name without its prefix.

use satchel_proto::{
    integers::unsigned,
    v1::{
        AttachmentKind, ContradictionReason, DeviceKind, DeviceRole, DifferenceKind, Direction,
        DocumentStanding, DuplicateReason, ExportFormat, ExportType, ExtractionMethod, ImportStatus,
        IssueKind, MemoryLinkKind, MemoryStatus, MemoryStatusCount, MemoryType, MemoryTypeCount,
        OperationState, PartKind, PeerAttachments, PeerDirection, PeerState, Permission, PlatformCount,
        PluginState, QuarantineState, RecordKind, RelationType, Role, Scope, SearchHitKind, SourceOrigin,
        SourceState, Visibility,
    },
};

/// The label for a number that this program does not know, because the daemon is newer.
const UNKNOWN: &str = "unknown";

fn strip(name: Option<&str>, prefix: &str) -> String {
    name.and_then(|name| name.strip_prefix(prefix)).unwrap_or(UNKNOWN).to_lowercase()
}

/// Creates a function from a number on the wire to its label.
macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident: $kind:ident, $prefix:literal;)*) => {
        $($(#[$doc])*
        pub(crate) fn $name(value: i32) -> String {
            strip($kind::try_from(value).ok().map(|value| value.as_str_name()), $prefix)
        })*
    };
}

/// A count of the store, with the label of what it counts.
pub(crate) trait LabelledCount {
    fn label_and_count(&self) -> (String, u64);
}

impl LabelledCount for MemoryStatusCount {
    fn label_and_count(&self) -> (String, u64) {
        (memory_status(self.status), unsigned(self.count))
    }
}

impl LabelledCount for MemoryTypeCount {
    fn label_and_count(&self) -> (String, u64) {
        (memory_type(self.r#type), unsigned(self.count))
    }
}

impl LabelledCount for PlatformCount {
    fn label_and_count(&self) -> (String, u64) {
        (self.platform.clone(), unsigned(self.count))
    }
}

labels! {
    /// State of a memory that an agent wrote.
    quarantine_state: QuarantineState, "QUARANTINE_STATE_";
    /// `fact`, `preference`, …
    memory_type: MemoryType, "MEMORY_TYPE_";
    /// `memory`, `message`, `title`.
    search_hit_kind: SearchHitKind, "SEARCH_HIT_KIND_";
    /// `active`, `superseded`, …
    memory_status: MemoryStatus, "MEMORY_STATUS_";
    /// `llm_inference`, …; `unspecified` when the source does not say.
    extraction_method: ExtractionMethod, "EXTRACTION_METHOD_";
    /// `private`, …
    visibility: Visibility, "VISIBILITY_";
    /// `read`, …
    permission: Permission, "PERMISSION_";
    /// `relation`, `superseded_by`, `conversation`.
    memory_link_kind: MemoryLinkKind, "MEMORY_LINK_KIND_";
    /// `out`, `in`.
    direction: Direction, "DIRECTION_";
    /// `same_text`, `similar_text`.
    duplicate_reason: DuplicateReason, "DUPLICATE_REASON_";
    /// `contradicts`, `superseded`.
    contradiction_reason: ContradictionReason, "CONTRADICTION_REASON_";
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
    /// `enabled`, `disabled`, …
    plugin_state: PluginState, "PLUGIN_STATE_";
    /// `full`, `incremental`.
    export_type: ExportType, "EXPORT_TYPE_";
    /// `new`, `changed`, `kept`.
    difference_kind: DifferenceKind, "DIFFERENCE_KIND_";
    /// `outgoing`, `incoming`.
    peer_direction: PeerDirection, "PEER_DIRECTION_";
    /// `waiting`, `syncing`, `ok`, `failed`, `paused`.
    peer_state: PeerState, "PEER_STATE_";
    /// `all`, `on_demand`.
    peer_attachments: PeerAttachments, "PEER_ATTACHMENTS_";
    /// `owner`, `reader`, `agent`, `peer`.
    device_role: DeviceRole, "DEVICE_ROLE_";
    /// `certificate`, `token`.
    device_kind: DeviceKind, "DEVICE_KIND_";
    /// `pam`, `memu`, `markdown`.
    export_format: ExportFormat, "EXPORT_FORMAT_";
}

/// `memories-read`, …: permissions as `--scope` takes them.
pub(crate) fn scope(value: i32) -> String {
    strip(Scope::try_from(value).ok().map(|value| value.as_str_name()), "SCOPE_").replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_pam() {
        assert_eq!(memory_type(MemoryType::Preference.into()), "preference");
        assert_eq!(memory_status(MemoryStatus::Retracted.into()), "retracted");
        assert_eq!(extraction_method(ExtractionMethod::LlmInference.into()), "llm_inference");
        assert_eq!(import_status(ImportStatus::CompletedWithSkips.into()), "completed_with_skips");
        assert_eq!(role(Role::Tool.into()), "tool");
        assert_eq!(scope(Scope::MemoriesRead.into()), "memories-read");
        assert_eq!(operation_state(99), "unknown");
    }
}
