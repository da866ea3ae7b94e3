//! Takes what a plugin emits: checks it, counts it, bounds it, and passes whole conversations on.

mod check;
mod lines;
mod pending;
mod structure;
pub(crate) mod weight;

use satchel_pam::record::{
    ConversationRecord, EmbeddingRecord, Evidence, MessageRecord, RecordKind, RelationRecord, Skip, Warning,
};

pub(crate) use self::check::Notes;
use self::pending::Pending;
use crate::{
    channel::Sender,
    emitted::{Emitted, Summary},
    error::RunError,
    imports::Library,
    limits::{Limits, MIB},
    text,
};

/// Bytes read between two reports of progress: some hundred reports a second at full speed would only cost time.
const PROGRESS_STEP: u64 = 4 * MIB as u64;
/// What a call that emits nothing of weight is charged, in bytes: a flood of empty calls must end too.
const CALL_COST: usize = 64;

/// The receiving side of one run's sink.
pub(crate) struct Collector {
    out: Sender<Emitted>,
    pending: Option<Pending>,
    summary: Summary,
    emitted_bytes: u64,
    budget: u64,
    conversation_bytes: usize,
    max_skips: u64,
    max_warnings: u64,
    skips: u64,
    reported: Option<u64>,
    lines: u64,
}

/// A step of taking something in. Failing ends the run.
type Taken = Result<(), RunError>;

impl Collector {
    pub(crate) fn new(out: Sender<Emitted>, limits: &Limits, export_bytes: u64) -> Self {
        Self {
            out,
            pending: None,
            summary: Summary::default(),
            emitted_bytes: 0,
            budget: limits.emitted_budget(export_bytes),
            conversation_bytes: limits.conversation_bytes,
            max_skips: limits.skips,
            max_warnings: limits.warnings,
            skips: 0,
            reported: None,
            lines: 0,
        }
    }

    /// Begins a conversation, which ends the one before. Its messages may follow.
    pub(crate) fn conversation(&mut self, mut record: ConversationRecord, library: &Library) -> Taken {
        self.complete()?;
        let messages = std::mem::take(&mut record.messages);
        let mut notes = Notes::new(&record.locator);
        let checked = check::conversation(&mut record, &mut notes);
        self.warn_all(notes)?;
        let pending = match checked {
            Ok(()) => Pending::new(record, self.conversation_bytes),
            Err(fault) => Pending::refused(record, fault),
        };
        self.charge(pending.weight())?;
        self.pending = Some(pending);
        self.messages(messages, library)
    }

    /// Adds to the conversation that was begun last.
    pub(crate) fn messages(&mut self, messages: Vec<MessageRecord>, library: &Library) -> Taken {
        self.charge(CALL_COST)?;
        let Some(mut pending) = self.pending.take() else {
            let reason = "these messages came before any conversation".to_owned();
            for message in messages {
                let skip = Skip { kind: RecordKind::Message, locator: message.id, reason: reason.clone() };
                self.skip(skip)?;
            }
            return Ok(());
        };
        for message in messages {
            self.message(&mut pending, message, library)?;
        }
        self.pending = Some(pending);
        Ok(())
    }

    fn message(&mut self, pending: &mut Pending, mut message: MessageRecord, library: &Library) -> Taken {
        let weight = weight::message(&message);
        self.charge(weight)?;
        if pending.is_refused() {
            pending.drop_message();
            return Ok(());
        }
        let locator = format!("{}#{}", pending.locator(), message.id);
        let mut notes = Notes::new(&locator);
        let checked = check::message(&mut message, library, &mut notes);
        self.warn_all(notes)?;
        match checked {
            Ok(()) => {
                pending.add(message, weight);
                Ok(())
            }
            Err(check::Fault { locator, reason }) => {
                self.skip(Skip { kind: RecordKind::Message, locator, reason })
            }
        }
    }

    /// Passes the pending conversation on, its structure made sound.
    fn complete(&mut self) -> Taken {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let mut record = match pending.finish() {
            Ok(record) => record,
            Err(refused) => {
                // Counted here, named once for the whole conversation.
                *self.summary.skipped.entry(RecordKind::Message).or_default() += refused.messages;
                return self.skip(refused.skip);
            }
        };
        let faults = structure::repair(&mut record);
        for skip in faults.skips {
            self.skip(skip)?;
        }
        for warning in faults.warnings {
            self.warn(warning)?;
        }
        self.summary.conversations += 1;
        self.summary.messages += record.messages.len() as u64;
        self.deliver(Emitted::Conversation(Box::new(record)))
    }

    pub(crate) fn evidence(&mut self, evidence: Vec<Evidence>) -> Taken {
        let sound = self.sound(evidence, weight::evidence, check::evidence)?;
        self.summary.evidence += sound.len() as u64;
        self.deliver_all(sound, Emitted::Evidence)
    }

    pub(crate) fn relations(&mut self, relations: Vec<RelationRecord>) -> Taken {
        let sound = self.sound(relations, weight::relation, check::relation)?;
        self.summary.relations += sound.len() as u64;
        self.deliver_all(sound, Emitted::Relations)
    }

    pub(crate) fn embeddings(&mut self, embeddings: Vec<EmbeddingRecord>) -> Taken {
        let sound = self.sound(embeddings, weight::embedding, check::embedding)?;
        self.summary.embeddings += sound.len() as u64;
        self.deliver_all(sound, Emitted::Embeddings)
    }

    /// Those of `records` that pass `check`; the others are skipped with their reason.
    fn sound<T>(
        &mut self,
        records: Vec<T>,
        weigh: fn(&T) -> usize,
        check: fn(&mut T, &mut Notes) -> Result<(), check::Fault>,
    ) -> Result<Vec<T>, RunError> {
        self.charge(CALL_COST)?;
        let mut sound = Vec::with_capacity(records.len());
        for mut record in records {
            self.charge(weigh(&record))?;
            let mut notes = Notes::new("");
            let checked = check(&mut record, &mut notes);
            self.warn_all(notes)?;
            match checked {
                Ok(()) => sound.push(record),
                Err(check::Fault { locator, reason }) => {
                    self.skip(Skip { kind: RecordKind::Memory, locator, reason })?;
                }
            }
        }
        Ok(sound)
    }

    pub(crate) fn skip(&mut self, skip: Skip) -> Taken {
        let Skip { kind, locator, reason } = skip;
        let skip = Skip { kind, locator: text::cleaned(locator), reason: text::cleaned(reason) };
        self.charge(weight::skip(&skip))?;
        *self.summary.skipped.entry(kind).or_default() += 1;
        self.skips += 1;
        if self.skips > self.max_skips { Ok(()) } else { self.deliver(Emitted::Skip(skip)) }
    }

    pub(crate) fn warn(&mut self, warning: Warning) -> Taken {
        let Warning { locator, message } = warning;
        let warning = Warning { locator: text::cleaned(locator), message: text::cleaned(message) };
        self.charge(weight::warning(&warning))?;
        self.summary.warnings += 1;
        if self.summary.warnings > self.max_warnings {
            Ok(())
        } else {
            self.deliver(Emitted::Warning(warning))
        }
    }

    pub(crate) fn warn_all(&mut self, notes: Notes) -> Taken {
        notes.into_warnings().into_iter().try_for_each(|warning| self.warn(warning))
    }

    /// Reports the host's own count. Of the plugin's figures only the total is used, as the scale, if it can be true.
    pub(crate) fn progress(&mut self, total: Option<u64>, library: &Library) -> Taken {
        self.charge(CALL_COST)?;
        let done = library.progress();
        if self.reported.is_some_and(|reported| done < reported.saturating_add(PROGRESS_STEP)) {
            return Ok(());
        }
        self.reported = Some(done);
        let size = library.size();
        let total = total.filter(|total| (done..=size).contains(total)).unwrap_or(size);
        self.deliver(Emitted::Progress { done: done.min(total), total })
    }

    /// The last conversation and the count, after a run that ended well.
    pub(crate) fn finish(mut self) -> Result<Summary, RunError> {
        self.complete()?;
        Ok(self.summary)
    }

    fn charge(&mut self, bytes: usize) -> Taken {
        self.emitted_bytes = self.emitted_bytes.saturating_add(bytes as u64);
        if self.emitted_bytes > self.budget { Err(RunError::TooMuchEmitted(self.budget)) } else { Ok(()) }
    }

    fn deliver_all<T>(&mut self, records: Vec<T>, wrap: fn(Vec<T>) -> Emitted) -> Taken {
        if records.is_empty() { Ok(()) } else { self.deliver(wrap(records)) }
    }

    fn deliver(&mut self, emitted: Emitted) -> Taken {
        self.out.send(emitted).map_err(|_| RunError::Cancelled)
    }
}

#[cfg(test)]
mod tests;
