//! Conversation documents.

use std::collections::BTreeSet;

use satchel_merge::{
    self,
    document::{self, MappedConversation, repair},
};
use satchel_pam::{
    conversation::{Attachment, Conversation as Document, Message},
    issue::Issue,
    parse::{self, SalvageReport, UnreadableEntry},
    record::{AttachmentRecord, RecordKind, Source},
};
use satchel_source::FileSet as _;

use super::{DocumentImport, MAX_CONVERSATION_BYTES, referred};
use crate::ingest::{
    IngestError,
    attachments::AttachmentStore,
    erased,
    normalise::{NormalisedConversation, weight},
    records::ImportItem,
    write::groups,
};

/// A document, its issues, and the parts of it that could not be read.
type Read = (Option<Document>, Vec<Issue>, SalvageReport);

/// Name given to a tool call that has none, which PAM does not allow.
const UNNAMED: &str = "unknown";

impl DocumentImport<'_, '_, '_> {
    /// Reads one document; its problems do not affect other documents.
    pub(super) fn conversation(&mut self, name: &str) -> Result<(), IngestError> {
        let (document, issues, remains) = match self.document(name)? {
            Ok(read) => read,
            Err(reason) => return self.skip(RecordKind::Conversation, name.to_owned(), reason),
        };
        let Some(mut document) = document else {
            let reason = super::refusal(name, &issues);
            return self.skip(RecordKind::Conversation, name.to_owned(), reason);
        };
        if let Err(reason) = self.taken.claim("conversation", &document.header.id) {
            return self.skip(RecordKind::Conversation, format!("{name}:$.id"), reason);
        }
        self.conversations.insert(document.header.id.clone());
        self.given.insert(name.to_owned());
        let erased = document.messages.iter().any(|message| self.purged.contains_row(&message.id));
        let rows = erased && of_rows(&document);
        if self.purged.contains_conversation(&document.header.id) && !rows {
            return self.skip(RecordKind::Conversation, name.to_owned(), erased::REASON.to_owned());
        }
        let left_out = remains.unreadable.iter().map(UnreadableEntry::path).collect();
        self.tell(name, &issues, &left_out, remains.broken.is_some());
        self.broken(name, remains.broken.as_ref())?;
        for note in repair::header(&mut document.header) {
            self.warn(format!("{name}:$"), note);
        }
        if erased {
            // The title may quote an erased message.
            document.header.title = None;
        }
        self.messages(name, &mut document, &remains)?;
        if erased && document.messages.is_empty() {
            return self.skip(RecordKind::Conversation, name.to_owned(), erased::REASON.to_owned());
        }
        self.attachments(name, &mut document)?;
        match document::conversation(document) {
            Ok(mapped) => {
                for note in &mapped.notes {
                    self.warn(format!("{name}:$.messages"), note.clone());
                }
                let mut conversation = reported(mapped);
                conversation.untrusted.clone_from(&self.deferred.untrusted);
                if rows {
                    // The oldest remaining message determines the id, as in every later export of the provider.
                    let NormalisedConversation { platform, report, nodes, .. } = &conversation;
                    conversation.id =
                        satchel_merge::groups::conversation_id(platform, report.account.as_deref(), nodes);
                }
                self.writer.write(ImportItem::Conversation(Box::new(conversation)), self.record)
            }
            Err(error) => {
                let reason = format!("it cannot be written as JSON: {error}");
                self.skip(RecordKind::Conversation, name.to_owned(), reason)
            }
        }
    }

    /// Reads the document; the inner error is the reason for the user.
    fn document(&mut self, name: &str) -> Result<Result<Read, String>, IngestError> {
        let bundle = self.run.bundle;
        let size = bundle.size_of(name);
        if size > MAX_CONVERSATION_BYTES {
            return Ok(Err(format!(
                "{name:?} is longer than the {MAX_CONVERSATION_BYTES} bytes of a conversation that are held in memory"
            )));
        }
        let read = self.aside(|| bundle.open(name, 0).and_then(parse::salvage_conversation_from))?;
        self.done += size;
        Ok(read.map_err(|error| format!("{name:?} cannot be read: {error}")))
    }

    /// Leaves out the messages that the store would not accept.
    fn messages(
        &mut self,
        name: &str,
        document: &mut Document,
        remains: &SalvageReport,
    ) -> Result<(), IngestError> {
        for entry in &remains.unreadable {
            self.skip(RecordKind::Message, format!("{name}:{}", entry.path()), entry.reason.clone())?;
        }
        let left_out: BTreeSet<usize> = remains.unreadable.iter().map(|entry| entry.index).collect();
        let mut places = (0..).filter(|at| !left_out.contains(at));
        let (mut seen, mut result) = (BTreeSet::new(), Ok(()));
        // The list is filtered in place, as a copy would take as much memory again.
        document.messages.retain_mut(|message| {
            let locator = format!("{name}:$.messages[{}]", places.next().unwrap_or_default());
            let erased = self.purged.contains_row(&message.id).then(|| erased::REASON.to_owned());
            if let Some(reason) = erased.or_else(|| unfit(message, &seen)) {
                if result.is_ok() {
                    result = self.skip(RecordKind::Message, locator, reason);
                }
                return false;
            }
            seen.insert(message.id.clone());
            for call in message.tool_calls.iter_mut().filter(|call| call.name.is_empty()) {
                UNNAMED.clone_into(&mut call.name);
                self.warn(locator.clone(), "a tool call has no name".to_owned());
            }
            true
        });
        result
    }

    /// Stores the files that came with the documents, and makes the messages refer to the stored bytes.
    fn attachments(&mut self, name: &str, document: &mut Document) -> Result<(), IngestError> {
        let run = self.run;
        let mut files: Vec<(&mut Attachment, &str)> = Vec::new();
        for file in document.messages.iter_mut().flat_map(|message| &mut message.attachments) {
            let found = file.reference.as_deref().and_then(|reference| referred(run, name, reference));
            files.extend(found.map(|path| (file, path)));
        }
        if files.is_empty() {
            return Ok(());
        }
        let attachments = AttachmentStore { store: run.store, bundle: run.bundle, dry_run: run.dry_run };
        let notes = self.aside(move || {
            let mut notes = Vec::new();
            for (file, path) in files {
                let source = Some(Source::Path(path.to_owned()));
                *file = attachments.store(
                    AttachmentRecord { attachment: file.clone(), source },
                    name,
                    &mut notes,
                );
            }
            notes
        })?;
        notes.into_iter().try_for_each(|note| self.writer.write(note, self.record))
    }
}

/// Returns whether a document is a conversation of rows, which are identified one by one.
fn of_rows(document: &Document) -> bool {
    document::conversation(document.clone()).is_ok_and(|mapped| groups::is_grouped(&reported(mapped)))
}

fn unfit(message: &Message, seen: &BTreeSet<String>) -> Option<String> {
    if message.id.is_empty() {
        return Some("its id is empty".to_owned());
    }
    if seen.contains(&message.id) {
        return Some("another message of the conversation has its id; the first is kept".to_owned());
    }
    satchel_store::id_too_long(&message.id).then(|| "its id is longer than the store takes".to_owned())
}

/// Converts the document to the form that the union takes.
fn reported(mapped: MappedConversation) -> NormalisedConversation {
    let MappedConversation { id, platform, import, report, mut nodes, notes: _ } = mapped;
    for node in &mut nodes {
        // A parent id that is too long for the store cannot belong to any message.
        node.parent = node.parent.take().filter(|parent| !satchel_store::id_too_long(parent));
    }
    let weight = weight(&nodes);
    NormalisedConversation { id, platform, import, foreign: true, untrusted: None, report, nodes, weight }
}
