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

    /// Begins a conversation, which ends the one before. Its messages follow by `message`.
    pub(crate) fn conversation(&mut self, mut record: ConversationRecord, mut notes: Notes) -> Taken {
        self.complete()?;
        let checked = check::conversation(&mut record, &mut notes);
        self.warn_all(notes, || record.locator.clone())?;
        let weight = weight::conversation(&record);
        self.charge(weight)?;
        self.pending = Some(match checked {
            Ok(()) => Pending::new(record, weight, self.conversation_bytes),
            Err(fault) => Pending::refused(record.locator, fault),
        });
        Ok(())
    }

    /// Adds to the conversation that was begun last.
    pub(crate) fn message(
        &mut self,
        mut record: MessageRecord,
        mut notes: Notes,
        library: &Library,
    ) -> Taken {
        let weight = weight::message(&record);
        self.charge(weight)?;
        let Some(pending) = &mut self.pending else {
            let reason = "this message came before any conversation".to_owned();
            return self.skip(Skip { kind: RecordKind::Message, locator: record.id, reason });
        };
        if pending.is_refused() {
            pending.drop_message();
            return Ok(());
        }
        let checked = check::message(&mut record, library, &mut notes);
        if checked.is_ok() && notes.is_empty() {
            pending.add(record, weight);
            return Ok(());
        }
        let locator = format!("{}#{}", pending.locator(), record.id);
        if let Err(check::Fault(reason)) = checked {
            return self.skip(Skip { kind: RecordKind::Message, locator, reason });
        }
        pending.add(record, weight);
        self.warn_all(notes, || locator.clone())
    }

    /// Passes the pending conversation on, its structure made sound.
    fn complete(&mut self) -> Taken {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let (mut record, weight) = match pending.finish() {
            Ok(whole) => whole,
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
        self.deliver(Emitted::Conversation(Box::new(record)), weight)
    }

    pub(crate) fn evidence(&mut self, records: impl Iterator<Item = (Evidence, Notes)>) -> Taken {
        let place = |record: &Evidence| record.locator.clone();
        let (sound, weight) = self.sound(records, weight::evidence, check::evidence, place)?;
        self.summary.evidence += sound.len() as u64;
        self.deliver_all(sound, weight, Emitted::Evidence)
    }

    pub(crate) fn relations(&mut self, records: impl Iterator<Item = RelationRecord>) -> Taken {
        let records = records.map(|record| (record, Notes::default()));
        let place = |record: &RelationRecord| format!("relation of \"{}\"", record.source);
        let (sound, weight) = self.sound(records, weight::relation, check::relation, place)?;
        self.summary.relations += sound.len() as u64;
        self.deliver_all(sound, weight, Emitted::Relations)
    }

    pub(crate) fn embeddings(&mut self, records: impl Iterator<Item = EmbeddingRecord>) -> Taken {
        let records = records.map(|record| (record, Notes::default()));
        let place = |record: &EmbeddingRecord| format!("embedding of \"{}\"", record.memory);
        let (sound, weight) = self.sound(records, weight::embedding, check::embedding, place)?;
        self.summary.embeddings += sound.len() as u64;
        self.deliver_all(sound, weight, Emitted::Embeddings)
    }

    /// Those of `records` that pass `check`, and their weight; the others are skipped with their reason.
    fn sound<T>(
        &mut self,
        records: impl Iterator<Item = (T, Notes)>,
        weigh: fn(&T) -> usize,
        check: fn(&mut T, &mut Notes) -> Result<(), check::Fault>,
        place: fn(&T) -> String,
    ) -> Result<(Vec<T>, usize), RunError> {
        self.charge(CALL_COST)?;
        let mut sound = Vec::new();
        let mut weight = 0_usize;
        for (mut record, mut notes) in records {
            let one = weigh(&record);
            self.charge(one)?;
            match check(&mut record, &mut notes) {
                Ok(()) => {
                    self.warn_all(notes, || place(&record))?;
                    weight = weight.saturating_add(one);
                    sound.push(record);
                }
                Err(check::Fault(reason)) => {
                    self.skip(Skip { kind: RecordKind::Memory, locator: place(&record), reason })?;
                }
            }
        }
        Ok((sound, weight))
    }

    pub(crate) fn skip(&mut self, skip: Skip) -> Taken {
        let Skip { kind, locator, reason } = skip;
        let skip = Skip { kind, locator: text::cleaned(locator), reason: text::cleaned(reason) };
        let weight = weight::skip(&skip);
        self.charge(weight)?;
        *self.summary.skipped.entry(kind).or_default() += 1;
        self.skips += 1;
        if self.skips > self.max_skips { Ok(()) } else { self.deliver(Emitted::Skip(skip), weight) }
    }

    pub(crate) fn warn(&mut self, warning: Warning) -> Taken {
        let Warning { locator, message } = warning;
        let warning = Warning { locator: text::cleaned(locator), message: text::cleaned(message) };
        let weight = weight::warning(&warning);
        self.charge(weight)?;
        self.summary.warnings += 1;
        if self.summary.warnings > self.max_warnings {
            Ok(())
        } else {
            self.deliver(Emitted::Warning(warning), weight)
        }
    }

    fn warn_all(&mut self, notes: Notes, place: impl Fn() -> String) -> Taken {
        notes
            .into_messages()
            .into_iter()
            .try_for_each(|message| self.warn(Warning { locator: place(), message }))
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
        self.deliver(Emitted::Progress { done: done.min(total), total }, 0)
    }

    /// The last conversation and the count, after a run that ended well.
    pub(crate) fn finish(mut self) -> Result<Summary, RunError> {
        self.complete()?;
        Ok(self.summary)
    }

    /// Charges a call that may carry nothing.
    pub(crate) fn called(&mut self) -> Taken {
        self.charge(CALL_COST)
    }

    fn charge(&mut self, bytes: usize) -> Taken {
        self.emitted_bytes = self.emitted_bytes.saturating_add(bytes as u64);
        if self.emitted_bytes > self.budget { Err(RunError::TooMuchEmitted(self.budget)) } else { Ok(()) }
    }

    fn deliver_all<T>(&mut self, records: Vec<T>, weight: usize, wrap: fn(Vec<T>) -> Emitted) -> Taken {
        if records.is_empty() { Ok(()) } else { self.deliver(wrap(records), weight) }
    }

    fn deliver(&mut self, emitted: Emitted, weight: usize) -> Taken {
        self.out
            .send_weighed(emitted, weight.saturating_add(size_of::<Emitted>()))
            .map_err(|_| RunError::Cancelled)
    }
}

#[cfg(test)]
mod tests;
