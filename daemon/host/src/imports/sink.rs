//! The import `sink`: WIT records in, records of `satchel-pam` to the collector.

use satchel_pam::record::Warning;

use crate::{
    bindings::satchel::importer::{sink as wit, types},
    collect::{Collector, Notes},
    convert,
    emitted::Verdict,
    error::RunError,
    imports::Library,
    run::State,
};

impl wit::Host for State {
    fn emit_conversation(
        &mut self,
        conversation: types::Conversation,
        messages: Vec<types::Message>,
    ) -> wasmtime::Result<wit::Verdict> {
        answer(self.emit(|collector, library| {
            let mut notes = Notes::default();
            let record = convert::conversation(conversation, &mut notes);
            collector.conversation(record, notes)?;
            take_messages(collector, messages, library)
        }))
    }

    fn more_messages(&mut self, messages: Vec<types::Message>) -> wasmtime::Result<wit::Verdict> {
        answer(self.emit(|collector, library| {
            collector.called()?;
            take_messages(collector, messages, library)
        }))
    }

    fn emit_evidence(&mut self, evidence: Vec<types::Evidence>) -> wasmtime::Result<wit::Verdict> {
        let records = evidence.into_iter().map(|evidence| {
            let mut notes = Notes::default();
            (convert::evidence(evidence, &mut notes), notes)
        });
        answer(self.emit(|collector, _| collector.evidence(records)))
    }

    fn emit_relations(&mut self, relations: Vec<types::Relation>) -> wasmtime::Result<wit::Verdict> {
        answer(self.emit(|collector, _| collector.relations(relations.into_iter().map(convert::relation))))
    }

    fn emit_embeddings(&mut self, embeddings: Vec<types::Embedding>) -> wasmtime::Result<wit::Verdict> {
        answer(self.emit(|collector, _| collector.embeddings(embeddings.into_iter().map(convert::embedding))))
    }

    fn emit_json(&mut self, lines: Vec<u8>) -> wasmtime::Result<wit::Verdict> {
        answer(self.emit(|collector, library| collector.json_lines(&lines, library)))
    }

    fn skip(
        &mut self,
        kind: wit::RecordKind,
        locator: String,
        reason: String,
    ) -> wasmtime::Result<wit::Verdict> {
        answer(self.emit(|collector, _| collector.skip(convert::skip(kind, locator, reason))))
    }

    fn warn(&mut self, locator: String, message: String) -> wasmtime::Result<()> {
        self.emit(|collector, _| collector.warn(Warning { locator, message }))?;
        Ok(())
    }

    fn progress(&mut self, done: u64, total: Option<u64>) -> wasmtime::Result<wit::Verdict> {
        tracing::trace!(done, total, "a plugin reports progress");
        answer(self.emit(|collector, library| collector.progress(total, library)))
    }
}

fn take_messages(
    collector: &mut Collector,
    messages: Vec<types::Message>,
    library: &Library,
) -> Result<(), RunError> {
    messages.into_iter().try_for_each(|message| {
        let mut notes = Notes::default();
        let record = convert::message(message, &mut notes);
        collector.message(record, notes, library)
    })
}

fn answer(verdict: Result<Verdict, RunError>) -> wasmtime::Result<wit::Verdict> {
    match verdict? {
        Verdict::Proceed => Ok(wit::Verdict::Proceed),
        Verdict::Stop => Ok(wit::Verdict::Stop),
    }
}
