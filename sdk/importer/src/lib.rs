//! The SDK for importers: they read one export in a sandbox and emit its conversations and memories.
//!
//! An importer implements [`Importer`] and names itself in [`export_importer!`]. The same code runs as a WebAssembly
//! component and, in tests, natively. `README.md` beside this crate is the guide.

pub mod address;
pub mod array;
pub mod bytes;
pub mod json;
pub mod names;
pub mod order;
pub mod sniff;
pub mod sqlite;
pub mod text;
pub mod title;
pub mod tree;
pub mod warnings;

#[cfg(not(target_arch = "wasm32"))]
pub mod testkit;

mod bundle;
mod emit;
mod error;
mod evidence;
mod importer;
mod simd;
mod sink;

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod guest;
#[cfg(not(target_arch = "wasm32"))]
mod native;

#[cfg(not(target_arch = "wasm32"))]
pub use native::Memo;

#[cfg(target_arch = "wasm32")]
use guest as backend;
#[cfg(not(target_arch = "wasm32"))]
use native as backend;

pub use array::{Element, JsonArray, JsonLists, ListsOutcome, Surveyed, WalkOutcome};
pub use bumpalo::Bump as Arena;
pub use bundle::{Bundle, Entry, Reader};
pub use emit::{
    Attachment, AttachmentKind, Citation, Content, Conversation, Message, Part, PartKind, Participant, Role,
    Source, ToolCall, ToolInput,
};
pub use error::{ErrorKind, ImportError, unless_malformed};
pub use evidence::{natural_key, snapshot};
pub use importer::{Detection, Importer, Info, Summary};
pub use json::{Fields, JsonError, Leftover, Parser};
/// The PAM model. Evidence, relations and embeddings are emitted as its records.
pub use satchel_pam as pam;
pub use satchel_pam::record::{
    AccountRecord, Claim, Edit, EmbeddingRecord, Evidence, Item, Line, RecordKind, RelationRecord,
};
pub use simd::same_text;
pub use sink::Sink;

/// Exports `$importer` as the importer of this component. A native build only checks that it implements [`Importer`].
#[macro_export]
macro_rules! export_importer {
    ($importer:ty) => {
        #[cfg(target_arch = "wasm32")]
        type SatchelComponent = $crate::guest::Component<$importer>;
        #[cfg(target_arch = "wasm32")]
        $crate::guest::export_component!(SatchelComponent with_types_in $crate::guest::bindings);
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() -> $crate::Info = <$importer as $crate::Importer>::describe;
    };
}
