//! The import `sink`: sends the emitted records to the thread that checks them.

use satchel_pam::record::Warning;

use crate::{
    bindings::satchel::importer::{sink as wit, types},
    convert,
    delivery::Delivery,
    emitted::Verdict,
    run::State,
};

impl wit::Host for State {
    fn emit_conversation(
        &mut self,
        conversation: types::Conversation,
        messages: Vec<types::Message>,
    ) -> wasmtime::Result<wit::Verdict> {
        self.answer(Delivery::Conversation(Box::new(conversation), messages))
    }

    fn more_messages(&mut self, messages: Vec<types::Message>) -> wasmtime::Result<wit::Verdict> {
        self.answer(Delivery::Messages(messages))
    }

    fn emit_evidence(&mut self, evidence: Vec<types::Evidence>) -> wasmtime::Result<wit::Verdict> {
        self.answer(Delivery::Evidence(evidence))
    }

    fn emit_relations(&mut self, relations: Vec<types::Relation>) -> wasmtime::Result<wit::Verdict> {
        self.answer(Delivery::Relations(relations))
    }

    fn emit_embeddings(&mut self, embeddings: Vec<types::Embedding>) -> wasmtime::Result<wit::Verdict> {
        self.answer(Delivery::Embeddings(embeddings))
    }

    fn emit_json(&mut self, lines: Vec<u8>) -> wasmtime::Result<wit::Verdict> {
        self.answer(Delivery::Json(lines))
    }

    fn skip(
        &mut self,
        kind: wit::RecordKind,
        locator: String,
        reason: String,
    ) -> wasmtime::Result<wit::Verdict> {
        self.answer(Delivery::Skip(convert::skip(kind, locator, reason)))
    }

    fn warn(&mut self, locator: String, message: String) -> wasmtime::Result<()> {
        self.answer(Delivery::Warning(Warning { locator, message }))?;
        Ok(())
    }

    fn progress(&mut self, done: u64, total: Option<u64>) -> wasmtime::Result<wit::Verdict> {
        tracing::trace!(done, total, "a plugin reports progress");
        // The plugin's own count cannot be trusted. Only its total is used, as a scale.
        let done = self.library.progress();
        self.answer(Delivery::Progress { done, total })
    }
}

impl State {
    pub(super) fn answer(&mut self, delivery: Delivery) -> wasmtime::Result<wit::Verdict> {
        match self.emit(delivery)? {
            Verdict::Proceed => Ok(wit::Verdict::Proceed),
            Verdict::Stop => Ok(wit::Verdict::Stop),
        }
    }
}
