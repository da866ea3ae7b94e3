//! The imports `sink` and `accounts`: send the emitted records to the thread that checks them.

use satchel_pam::record::Warning;

use crate::{
    bindings::satchel::importer::{accounts, sink as wit, types},
    convert,
    emitted::SinkVerdict,
    run::CallState,
    sink_call::SinkCall,
};

impl wit::Host for CallState {
    fn emit_conversation(
        &mut self,
        conversation: types::Conversation,
        messages: Vec<types::Message>,
    ) -> wasmtime::Result<wit::Verdict> {
        self.emit_to_sink(SinkCall::Conversation(Box::new(conversation), messages))
    }

    fn more_messages(&mut self, messages: Vec<types::Message>) -> wasmtime::Result<wit::Verdict> {
        self.emit_to_sink(SinkCall::Messages(messages))
    }

    fn emit_evidence(&mut self, evidence: Vec<types::Evidence>) -> wasmtime::Result<wit::Verdict> {
        self.emit_to_sink(SinkCall::Evidence(evidence))
    }

    fn emit_relations(&mut self, relations: Vec<types::Relation>) -> wasmtime::Result<wit::Verdict> {
        self.emit_to_sink(SinkCall::Relations(relations))
    }

    fn emit_embeddings(&mut self, embeddings: Vec<types::Embedding>) -> wasmtime::Result<wit::Verdict> {
        self.emit_to_sink(SinkCall::Embeddings(embeddings))
    }

    fn emit_json(&mut self, lines: Vec<u8>) -> wasmtime::Result<wit::Verdict> {
        self.emit_to_sink(SinkCall::Json(lines))
    }

    fn skip(
        &mut self,
        kind: wit::RecordKind,
        locator: String,
        reason: String,
    ) -> wasmtime::Result<wit::Verdict> {
        self.emit_to_sink(SinkCall::Skip(convert::skip(kind, locator, reason)))
    }

    fn warn(&mut self, locator: String, message: String) -> wasmtime::Result<()> {
        self.emit_to_sink(SinkCall::Warning(Warning { locator, message }))?;
        Ok(())
    }

    fn progress(&mut self, done: u64, total: Option<u64>) -> wasmtime::Result<wit::Verdict> {
        tracing::trace!(done, total, "a plugin reports progress");
        // The plugin's own count cannot be trusted. Only its total is used, as a scale.
        let done = self.files.new_bytes_read();
        self.emit_to_sink(SinkCall::Progress { done, total })
    }
}

impl accounts::Host for CallState {
    fn emit_account(&mut self, account: accounts::Account) -> wasmtime::Result<wit::Verdict> {
        self.emit_to_sink(SinkCall::Account(convert::account(account)))
    }
}

impl CallState {
    pub(super) fn emit_to_sink(&mut self, call: SinkCall) -> wasmtime::Result<wit::Verdict> {
        match self.emit(call)? {
            SinkVerdict::Proceed => Ok(wit::Verdict::Proceed),
            SinkVerdict::Stop => Ok(wit::Verdict::Stop),
        }
    }
}
