//! The reasons by which programs distinguish errors, and their gRPC codes.

use tonic::Code;

/// Defines [`ErrorReason`] from rows of a variant, its word on the wire, and its gRPC code.
macro_rules! reasons {
    ($($reason:ident, $word:literal, $code:ident;)+) => {
        /// `ErrorInfo.reason`: stable words for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorReason {
            $($reason,)+
        }

        impl ErrorReason {
            /// All reasons, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$reason,)+];

            /// Returns the word on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$reason => $word,)+
                }
            }

            /// Returns the gRPC code of the reason.
            #[must_use]
            pub fn code(self) -> Code {
                match self {
                    $(Self::$reason => Code::$code,)+
                }
            }
        }
    };
}

reasons! {
    FieldInvalid, "FIELD_INVALID", InvalidArgument;
    PageTokenInvalid, "PAGE_TOKEN_INVALID", InvalidArgument;
    QueryInvalid, "QUERY_INVALID", InvalidArgument;
    RequestIdReused, "REQUEST_ID_REUSED", InvalidArgument;
    RequestMalformed, "REQUEST_MALFORMED", InvalidArgument;
    MemoryNotFound, "MEMORY_NOT_FOUND", NotFound;
    RelationNotFound, "RELATION_NOT_FOUND", NotFound;
    ChangeNotFound, "CHANGE_NOT_FOUND", NotFound;
    ConversationNotFound, "CONVERSATION_NOT_FOUND", NotFound;
    MessageNotFound, "MESSAGE_NOT_FOUND", NotFound;
    ImportNotFound, "IMPORT_NOT_FOUND", NotFound;
    ExportNotFound, "EXPORT_NOT_FOUND", NotFound;
    OperationNotFound, "OPERATION_NOT_FOUND", NotFound;
    PluginNotFound, "PLUGIN_NOT_FOUND", NotFound;
    SourceNotFound, "SOURCE_NOT_FOUND", NotFound;
    PathNotFound, "PATH_NOT_FOUND", NotFound;
    DeviceNotFound, "DEVICE_NOT_FOUND", NotFound;
    PairingNotFound, "PAIRING_NOT_FOUND", NotFound;
    PeerNotFound, "PEER_NOT_FOUND", NotFound;
    UploadNotFound, "UPLOAD_NOT_FOUND", NotFound;
    AttachmentNotFound, "ATTACHMENT_NOT_FOUND", NotFound;
    ImportState, "IMPORT_STATE", FailedPrecondition;
    OutputExists, "OUTPUT_EXISTS", FailedPrecondition;
    OutputRefused, "OUTPUT_REFUSED", FailedPrecondition;
    SourceRefused, "SOURCE_REFUSED", FailedPrecondition;
    PluginRefused, "PLUGIN_REFUSED", FailedPrecondition;
    PluginConsentNeeded, "PLUGIN_CONSENT_NEEDED", FailedPrecondition;
    PluginState, "PLUGIN_STATE", FailedPrecondition;
    MemoryState, "MEMORY_STATE", FailedPrecondition;
    ConversationState, "CONVERSATION_STATE", FailedPrecondition;
    IllegalTransition, "ILLEGAL_TRANSITION", FailedPrecondition;
    EtagMismatch, "ETAG_MISMATCH", Aborted;
    MatchCountChanged, "MATCH_COUNT_CHANGED", Aborted;
    BundleGone, "BUNDLE_GONE", FailedPrecondition;
    BundleUnreadable, "BUNDLE_UNREADABLE", FailedPrecondition;
    SigningKeyUnusable, "SIGNING_KEY_UNUSABLE", FailedPrecondition;
    ClockWrong, "CLOCK_WRONG", FailedPrecondition;
    OffsetPastEnd, "OFFSET_PAST_END", OutOfRange;
    UploadOffset, "UPLOAD_OFFSET", OutOfRange;
    UploadIncomplete, "UPLOAD_INCOMPLETE", FailedPrecondition;
    ChecksumMismatch, "CHECKSUM_MISMATCH", DataLoss;
    RevisionCompacted, "REVISION_COMPACTED", OutOfRange;
    RevisionInFuture, "REVISION_IN_FUTURE", OutOfRange;
    StoreChanged, "STORE_CHANGED", FailedPrecondition;
    WatchTooSlow, "WATCH_TOO_SLOW", ResourceExhausted;
    NotOwner, "NOT_OWNER", PermissionDenied;
    NoCredentials, "NO_CREDENTIALS", Unauthenticated;
    CertificateExpired, "CERTIFICATE_EXPIRED", Unauthenticated;
    DeviceRevoked, "DEVICE_REVOKED", PermissionDenied;
    PolicyChanged, "POLICY_CHANGED", Aborted;
    ScopeMissing, "SCOPE_MISSING", PermissionDenied;
    AccessDenied, "ACCESS_DENIED", PermissionDenied;
    PairingRefused, "PAIRING_REFUSED", PermissionDenied;
    NotListening, "NOT_LISTENING", FailedPrecondition;
    PeerPaused, "PEER_PAUSED", FailedPrecondition;
    AttachmentElsewhere, "ATTACHMENT_ELSEWHERE", Unavailable;
    PeerRefused, "PEER_REFUSED", FailedPrecondition;
    PeerUnreachable, "PEER_UNREACHABLE", Unavailable;
    PeerKeyUnknown, "PEER_KEY_UNKNOWN", FailedPrecondition;
    ChangeFileUnusable, "CHANGE_FILE_UNUSABLE", FailedPrecondition;
    NoCertificate, "NO_CERTIFICATE", FailedPrecondition;
    LimitExceeded, "LIMIT_EXCEEDED", ResourceExhausted;
    DiskFull, "DISK_FULL", ResourceExhausted;
    Deadline, "DEADLINE", DeadlineExceeded;
    StoreCorrupt, "STORE_CORRUPT", DataLoss;
    StoreStopped, "STORE_STOPPED", Unavailable;
    EmbeddingsOff, "EMBEDDINGS_OFF", FailedPrecondition;
    EmbeddingsUnavailable, "EMBEDDINGS_UNAVAILABLE", Unavailable;
    IndexBehind, "INDEX_BEHIND", Unavailable;
    IndexUnusable, "INDEX_UNUSABLE", Unavailable;
    ShuttingDown, "SHUTTING_DOWN", Unavailable;
    Internal, "INTERNAL", Internal;
}

/// Defines [`ResourceKind`] from rows of a variant, its name, and the reason for a missing record.
macro_rules! resource_kinds {
    ($($kind:ident, $name:literal, $reason:ident;)+) => {
        /// The kind of a record that was not found.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ResourceKind {
            $($kind,)+
        }

        impl ResourceKind {
            pub(super) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            pub(super) fn reason(self) -> ErrorReason {
                match self {
                    $(Self::$kind => ErrorReason::$reason,)+
                }
            }
        }
    };
}

resource_kinds! {
    Memory, "memory", MemoryNotFound;
    Relation, "relation", RelationNotFound;
    Change, "change", ChangeNotFound;
    Conversation, "conversation", ConversationNotFound;
    Message, "message", MessageNotFound;
    Import, "import", ImportNotFound;
    Export, "export", ExportNotFound;
    Operation, "operation", OperationNotFound;
    Plugin, "plugin", PluginNotFound;
    Source, "source", SourceNotFound;
    Path, "path", PathNotFound;
    Device, "device", DeviceNotFound;
    Pairing, "pairing", PairingNotFound;
    Peer, "peer", PeerNotFound;
    Upload, "upload", UploadNotFound;
    Attachment, "attachment", AttachmentNotFound;
}
