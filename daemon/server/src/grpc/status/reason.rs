//! The reasons by which programs distinguish errors, and their gRPC codes.

use tonic::Code;

/// `ErrorInfo.reason`: stable words for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorReason {
    FieldInvalid,
    PageTokenInvalid,
    RequestIdReused,
    RequestMalformed,
    MemoryNotFound,
    RelationNotFound,
    ChangeNotFound,
    ConversationNotFound,
    MessageNotFound,
    ImportNotFound,
    ExportNotFound,
    OperationNotFound,
    SourceNotFound,
    PathNotFound,
    ImportState,
    OutputExists,
    OutputRefused,
    SourceRefused,
    MemoryState,
    IllegalTransition,
    EtagMismatch,
    MatchCountChanged,
    BundleGone,
    BundleUnreadable,
    SigningKeyUnusable,
    ClockWrong,
    OffsetPastEnd,
    NotOwner,
    LimitExceeded,
    DiskFull,
    Deadline,
    StoreCorrupt,
    StoreStopped,
    ShuttingDown,
    Internal,
}

impl ErrorReason {
    /// All reasons, in the order of the table.
    pub const ALL: [Self; 35] = [
        Self::FieldInvalid,
        Self::PageTokenInvalid,
        Self::RequestIdReused,
        Self::RequestMalformed,
        Self::MemoryNotFound,
        Self::RelationNotFound,
        Self::ChangeNotFound,
        Self::ConversationNotFound,
        Self::MessageNotFound,
        Self::ImportNotFound,
        Self::ExportNotFound,
        Self::OperationNotFound,
        Self::SourceNotFound,
        Self::PathNotFound,
        Self::ImportState,
        Self::OutputExists,
        Self::OutputRefused,
        Self::SourceRefused,
        Self::MemoryState,
        Self::IllegalTransition,
        Self::EtagMismatch,
        Self::MatchCountChanged,
        Self::BundleGone,
        Self::BundleUnreadable,
        Self::SigningKeyUnusable,
        Self::ClockWrong,
        Self::OffsetPastEnd,
        Self::NotOwner,
        Self::LimitExceeded,
        Self::DiskFull,
        Self::Deadline,
        Self::StoreCorrupt,
        Self::StoreStopped,
        Self::ShuttingDown,
        Self::Internal,
    ];

    /// Returns the word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FieldInvalid => "FIELD_INVALID",
            Self::PageTokenInvalid => "PAGE_TOKEN_INVALID",
            Self::RequestIdReused => "REQUEST_ID_REUSED",
            Self::RequestMalformed => "REQUEST_MALFORMED",
            Self::MemoryNotFound => "MEMORY_NOT_FOUND",
            Self::RelationNotFound => "RELATION_NOT_FOUND",
            Self::ChangeNotFound => "CHANGE_NOT_FOUND",
            Self::MemoryState => "MEMORY_STATE",
            Self::IllegalTransition => "ILLEGAL_TRANSITION",
            Self::EtagMismatch => "ETAG_MISMATCH",
            Self::MatchCountChanged => "MATCH_COUNT_CHANGED",
            Self::ConversationNotFound => "CONVERSATION_NOT_FOUND",
            Self::MessageNotFound => "MESSAGE_NOT_FOUND",
            Self::ImportNotFound => "IMPORT_NOT_FOUND",
            Self::ExportNotFound => "EXPORT_NOT_FOUND",
            Self::OperationNotFound => "OPERATION_NOT_FOUND",
            Self::SourceNotFound => "SOURCE_NOT_FOUND",
            Self::SourceRefused => "SOURCE_REFUSED",
            Self::PathNotFound => "PATH_NOT_FOUND",
            Self::ImportState => "IMPORT_STATE",
            Self::OutputExists => "OUTPUT_EXISTS",
            Self::OutputRefused => "OUTPUT_REFUSED",
            Self::BundleGone => "BUNDLE_GONE",
            Self::BundleUnreadable => "BUNDLE_UNREADABLE",
            Self::SigningKeyUnusable => "SIGNING_KEY_UNUSABLE",
            Self::ClockWrong => "CLOCK_WRONG",
            Self::OffsetPastEnd => "OFFSET_PAST_END",
            Self::NotOwner => "NOT_OWNER",
            Self::LimitExceeded => "LIMIT_EXCEEDED",
            Self::DiskFull => "DISK_FULL",
            Self::Deadline => "DEADLINE",
            Self::StoreCorrupt => "STORE_CORRUPT",
            Self::StoreStopped => "STORE_STOPPED",
            Self::ShuttingDown => "SHUTTING_DOWN",
            Self::Internal => "INTERNAL",
        }
    }

    /// Returns the gRPC code of the reason.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            Self::FieldInvalid | Self::PageTokenInvalid | Self::RequestIdReused | Self::RequestMalformed => {
                Code::InvalidArgument
            }
            Self::EtagMismatch | Self::MatchCountChanged => Code::Aborted,
            Self::MemoryNotFound
            | Self::RelationNotFound
            | Self::ChangeNotFound
            | Self::ConversationNotFound
            | Self::MessageNotFound
            | Self::ImportNotFound
            | Self::ExportNotFound
            | Self::OperationNotFound
            | Self::SourceNotFound
            | Self::PathNotFound => Code::NotFound,
            Self::ImportState
            | Self::OutputExists
            | Self::OutputRefused
            | Self::SourceRefused
            | Self::MemoryState
            | Self::IllegalTransition
            | Self::BundleGone
            | Self::BundleUnreadable
            | Self::SigningKeyUnusable
            | Self::ClockWrong => Code::FailedPrecondition,
            Self::OffsetPastEnd => Code::OutOfRange,
            Self::NotOwner => Code::PermissionDenied,
            Self::LimitExceeded | Self::DiskFull => Code::ResourceExhausted,
            Self::Deadline => Code::DeadlineExceeded,
            Self::StoreCorrupt => Code::DataLoss,
            Self::StoreStopped | Self::ShuttingDown => Code::Unavailable,
            Self::Internal => Code::Internal,
        }
    }
}

/// The kind of a record that was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    Memory,
    Relation,
    Change,
    Conversation,
    Message,
    Import,
    Export,
    Operation,
    Source,
    Path,
}

impl ResourceKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Relation => "relation",
            Self::Change => "change",
            Self::Conversation => "conversation",
            Self::Message => "message",
            Self::Import => "import",
            Self::Export => "export",
            Self::Operation => "operation",
            Self::Source => "source",
            Self::Path => "path",
        }
    }

    pub(super) fn reason(self) -> ErrorReason {
        match self {
            Self::Memory => ErrorReason::MemoryNotFound,
            Self::Relation => ErrorReason::RelationNotFound,
            Self::Change => ErrorReason::ChangeNotFound,
            Self::Conversation => ErrorReason::ConversationNotFound,
            Self::Message => ErrorReason::MessageNotFound,
            Self::Import => ErrorReason::ImportNotFound,
            Self::Export => ErrorReason::ExportNotFound,
            Self::Operation => ErrorReason::OperationNotFound,
            Self::Source => ErrorReason::SourceNotFound,
            Self::Path => ErrorReason::PathNotFound,
        }
    }
}
