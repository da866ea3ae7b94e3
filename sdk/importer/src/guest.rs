//! The WebAssembly backend, the only module that uses the generated bindings.

use std::{marker::PhantomData, panic, sync::Once};

use bindings::{
    exports::satchel::importer::plugin,
    satchel::importer::{accounts, files, log, memo, sink},
};

use crate::{
    AccountRecord, Arena, Bundle, Conversation, EmbeddingRecord, Entry, ErrorKind, Evidence, ImportError,
    Importer, Message, RecordKind, RelationRecord, Sink,
};

mod lower;
mod lower_memory;

#[doc(hidden)]
#[allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    unused_qualifications,
    unreachable_pub,
    reason = "generated code"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "importer",
        ownership: Borrowing { duplicate_if_necessary: false },
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "satchel_importer::guest::bindings",
    });
}

#[doc(hidden)]
pub use bindings::export_component;

/// Implements the exported interface for an [`Importer`].
#[doc(hidden)]
pub struct Component<T>(PhantomData<T>);

impl<T: Importer + 'static> plugin::Guest for Component<T> {
    fn describe() -> plugin::PluginInfo {
        report_panics();
        let info = T::describe();
        plugin::PluginInfo {
            name: info.name.to_owned(),
            version: info.version.to_owned(),
            platform: info.platform.to_owned(),
            importer_version: info.importer_version.to_owned(),
            formats: info.formats.iter().map(|&format| format.to_owned()).collect(),
        }
    }

    fn detect() -> Result<Vec<plugin::Detection>, files::ImportError> {
        report_panics();
        let detections = T::detect(&Bundle::new(Files)).map_err(lower::error)?;
        Ok(detections.into_iter().map(lower::detection).collect())
    }

    fn run(format: String) -> Result<plugin::Summary, files::ImportError> {
        report_panics();
        let mut sink = Sink::new(Target { arena: Arena::new() });
        let summary = T::run(&format, &Bundle::new(Files), &mut sink).map_err(lower::error)?;
        Ok(plugin::Summary { bytes: summary.bytes })
    }
}

/// Sends the text of a panic to the host's log, because the trap that follows has no text.
fn report_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| panic::set_hook(Box::new(|panic| log::log(log::Level::Error, &panic.to_string()))));
}

/// The files that the host provides.
pub(crate) struct Files;

impl Files {
    /// Only [`Files::list`] asks the host which files there are.
    pub(crate) fn none() -> Self {
        Self
    }

    pub(crate) fn list(&self) -> Vec<Entry> {
        files::list_files().into_iter().map(|files::Entry { path, size }| Entry { path, size }).collect()
    }

    pub(crate) fn open(&self, path: &str) -> Result<OpenFile, ImportError> {
        files::Reader::open(path).map(OpenFile).map_err(lift_error)
    }
}

/// An open file.
pub(crate) struct OpenFile(files::Reader);

impl OpenFile {
    pub(crate) fn size(&self) -> u64 {
        self.0.size()
    }

    pub(crate) fn read(&mut self, length: u32) -> Result<Vec<u8>, ImportError> {
        self.0.read(length).map_err(lift_error)
    }

    pub(crate) fn seek(&mut self, offset: u64) -> Result<(), ImportError> {
        self.0.seek(offset).map_err(lift_error)
    }
}

type SinkResult = Result<(), ImportError>;

/// The host's sink. The arena holds the lists of one call.
pub(crate) struct Target {
    arena: Arena,
}

impl Target {
    pub(crate) fn conversation(&mut self, conversation: &Conversation, messages: &[Message]) -> SinkResult {
        self.call(|arena| {
            sink::emit_conversation(
                lower::conversation(conversation, arena),
                lower::messages(messages, arena),
            )
        })
    }

    pub(crate) fn more_messages(&mut self, messages: &[Message]) -> SinkResult {
        self.call(|arena| sink::more_messages(lower::messages(messages, arena)))
    }

    pub(crate) fn evidence(&mut self, evidence: &[Evidence]) -> SinkResult {
        self.call(|arena| sink::emit_evidence(lower_memory::evidence(evidence, arena)))
    }

    pub(crate) fn relations(&mut self, relations: &[RelationRecord]) -> SinkResult {
        self.call(|arena| sink::emit_relations(lower_memory::relations(relations, arena)))
    }

    pub(crate) fn embeddings(&mut self, embeddings: &[EmbeddingRecord]) -> SinkResult {
        self.call(|arena| sink::emit_embeddings(lower_memory::embeddings(embeddings, arena)))
    }

    pub(crate) fn account(&mut self, account: &AccountRecord) -> SinkResult {
        let AccountRecord { id, name, locator } = account;
        answer(accounts::emit_account(accounts::Account { id, name: name.as_deref(), locator }))
    }

    pub(crate) fn skip(&mut self, kind: RecordKind, locator: &str, reason: &str) -> SinkResult {
        answer(sink::skip(lower::record_kind(kind), locator, reason))
    }

    pub(crate) fn warn(&mut self, locator: &str, message: &str) {
        sink::warn(locator, message);
    }

    pub(crate) fn progress(&mut self, done: u64, total: Option<u64>) -> SinkResult {
        answer(sink::progress(done, total))
    }

    pub(crate) fn recall(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        memo::recall(piece)
    }

    pub(crate) fn again(&mut self) -> SinkResult {
        answer(memo::again())
    }

    pub(crate) fn note(&mut self, note: &[u8]) -> SinkResult {
        answer(memo::note(note))
    }

    fn call(&mut self, call: impl FnOnce(&Arena) -> sink::Verdict) -> SinkResult {
        let verdict = call(&self.arena);
        self.arena.reset();
        answer(verdict)
    }
}

fn answer(verdict: sink::Verdict) -> SinkResult {
    match verdict {
        sink::Verdict::Proceed => Ok(()),
        sink::Verdict::Stop => Err(ImportError::cancelled()),
    }
}

fn lift_error(error: files::ImportError) -> ImportError {
    let files::ImportError { kind, message, locator } = error;
    let kind = match kind {
        bindings::satchel::importer::types::ErrorKind::NotThisFormat => ErrorKind::NotThisFormat,
        bindings::satchel::importer::types::ErrorKind::UnsupportedVersion => ErrorKind::UnsupportedVersion,
        bindings::satchel::importer::types::ErrorKind::Malformed => ErrorKind::Malformed,
        bindings::satchel::importer::types::ErrorKind::Limit => ErrorKind::Limit,
        bindings::satchel::importer::types::ErrorKind::Io => ErrorKind::Io,
        bindings::satchel::importer::types::ErrorKind::Cancelled => ErrorKind::Cancelled,
        bindings::satchel::importer::types::ErrorKind::Internal => ErrorKind::Internal,
    };
    ImportError { kind, message, locator }
}
