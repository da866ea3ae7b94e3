//! Receives the records that a plugin emits: checks, counts and limits them, and passes complete conversations on.

mod check;
mod lines;
mod pending;
mod structure;
pub(crate) mod weight;

use std::collections::BTreeMap;

use satchel_pam::{
    record::{
        AccountRecord, ConversationRecord, EmbeddingRecord, Evidence, MessageRecord, RecordKind,
        RelationRecord, Skip, Warning,
    },
    unread,
};

pub(crate) use self::check::Notes;
use self::pending::Pending;
use crate::{
    emitted::{Emitted, Summary, Verdict},
    imports::Paths,
    limits::{Limits, MIB},
    stop::StopFlag,
    text,
};

/// Bytes read between two progress reports. Without it, a run at full speed would report hundreds of times a second for
/// no benefit.
const PROGRESS_STEP: u64 = 4 * MIB as u64;

/// The receiving side of one run's sink.
pub(crate) struct Collector<'a> {
    out: &'a mut dyn FnMut(Emitted) -> Verdict,
    stop: &'a StopFlag,
    paths: Paths,
    export_bytes: u64,
    pending: Option<Pending>,
    summary: Summary,
    conversation_bytes: usize,
    max_skips: u64,
    max_warnings: u64,
    skips: u64,
    reported: Option<u64>,
    lines: u64,
    /// The counts when the current piece began.
    piece: Option<Count>,
}

/// The counts that must not change within a piece that is to be remembered: skips by kind; relations, embeddings and
/// warnings.
type Count = (BTreeMap<RecordKind, u64>, [u64; 3]);

impl<'a> Collector<'a> {
    /// Creates a collector that delivers to `out`. When `out` asks to stop, `stop` is set and nothing more is
    /// delivered.
    pub(crate) fn new(
        out: &'a mut dyn FnMut(Emitted) -> Verdict,
        stop: &'a StopFlag,
        limits: &Limits,
        paths: Paths,
        export_bytes: u64,
    ) -> Self {
        Self {
            out,
            stop,
            paths,
            export_bytes,
            pending: None,
            summary: Summary::default(),
            conversation_bytes: limits.conversation_bytes,
            max_skips: limits.skips,
            max_warnings: limits.warnings,
            skips: 0,
            reported: None,
            lines: 0,
            piece: None,
        }
    }

    /// Begins a conversation and completes the previous one. The messages follow by calls of `message`.
    pub(crate) fn conversation(&mut self, mut record: ConversationRecord, mut notes: Notes, weight: usize) {
        self.complete();
        let checked = check::conversation(&mut record, &mut notes);
        self.warn_all(notes, || record.locator.clone());
        self.pending = Some(match checked {
            Ok(()) => Pending::new(record, weight, self.conversation_bytes),
            Err(fault) => Pending::refused(record.locator, fault),
        });
    }

    /// Adds a message to the conversation that was begun last.
    pub(crate) fn message(&mut self, mut record: MessageRecord, mut notes: Notes, weight: usize) {
        let Some(pending) = &mut self.pending else {
            let reason = "this message came before any conversation".to_owned();
            return self.skip(Skip { kind: RecordKind::Message, locator: record.id, reason });
        };
        if pending.is_refused() {
            return pending.drop_message();
        }
        let checked = check::message(&mut record, &self.paths, &mut notes);
        unread::in_message(&record).into_iter().for_each(|note| notes.tell(note));
        if checked.is_ok() && notes.is_empty() {
            return pending.add(record, weight);
        }
        let locator = format!("{}#{}", pending.locator(), record.id);
        if let Err(check::Fault(reason)) = checked {
            return self.skip(Skip { kind: RecordKind::Message, locator, reason });
        }
        pending.add(record, weight);
        self.warn_all(notes, || locator.clone());
    }

    /// Repairs the structure of the pending conversation and delivers it.
    fn complete(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let mut record = match pending.finish() {
            Ok(whole) => whole,
            Err(refused) => {
                // The messages are counted here, but reported once for the whole conversation.
                *self.summary.skipped.entry(RecordKind::Message).or_default() += refused.messages;
                return self.skip(refused.skip);
            }
        };
        let faults = structure::repair(&mut record);
        faults.skips.into_iter().for_each(|skip| self.skip(skip));
        faults.warnings.into_iter().for_each(|warning| self.warn(warning));
        if let Some(message) = unread::in_conversation(&record) {
            self.warn(Warning { locator: record.locator.clone(), message });
        }
        self.summary.conversations += 1;
        self.summary.messages += record.messages.len() as u64;
        self.deliver(Emitted::Conversation(Box::new(record)));
    }

    pub(crate) fn evidence(&mut self, records: impl Iterator<Item = (Evidence, Notes)>) {
        let sound = self.sound(records, check::evidence, |record| record.locator.clone());
        self.summary.evidence += sound.len() as u64;
        self.deliver_all(sound, Emitted::Evidence);
    }

    pub(crate) fn relations(&mut self, records: impl Iterator<Item = RelationRecord>) {
        let records = records.map(|record| (record, Notes::default()));
        let sound =
            self.sound(records, check::relation, |record| format!("relation of \"{}\"", record.source));
        self.summary.relations += sound.len() as u64;
        self.deliver_all(sound, Emitted::Relations);
    }

    pub(crate) fn embeddings(&mut self, records: impl Iterator<Item = EmbeddingRecord>) {
        let records = records.map(|record| (record, Notes::default()));
        let sound =
            self.sound(records, check::embedding, |record| format!("embedding of \"{}\"", record.memory));
        self.summary.embeddings += sound.len() as u64;
        self.deliver_all(sound, Emitted::Embeddings);
    }

    /// Takes the account that the export belongs to. An account does not count as a record, and a piece that emits one
    /// is not remembered.
    pub(crate) fn account(&mut self, mut account: AccountRecord) {
        self.piece = None;
        let mut notes = Notes::default();
        let checked = check::account(&mut account, &mut notes);
        self.warn_all(notes, || account.locator.clone());
        match checked {
            Ok(()) => self.deliver(Emitted::Account(account)),
            Err(check::Fault(reason)) => {
                self.skip(Skip { kind: RecordKind::File, locator: account.locator, reason });
            }
        }
    }

    /// Returns those `records` that pass `check`; the others are skipped with a reason.
    fn sound<T>(
        &mut self,
        records: impl Iterator<Item = (T, Notes)>,
        check: fn(&mut T, &mut Notes) -> Result<(), check::Fault>,
        place: fn(&T) -> String,
    ) -> Vec<T> {
        let mut sound = Vec::new();
        for (mut record, mut notes) in records {
            match check(&mut record, &mut notes) {
                Ok(()) => {
                    self.warn_all(notes, || place(&record));
                    sound.push(record);
                }
                Err(check::Fault(reason)) => {
                    self.skip(Skip { kind: RecordKind::Memory, locator: place(&record), reason });
                }
            }
        }
        sound
    }

    pub(crate) fn skip(&mut self, skip: Skip) {
        let Skip { kind, locator, reason } = skip;
        *self.summary.skipped.entry(kind).or_default() += 1;
        self.skips += 1;
        if self.skips <= self.max_skips {
            let skip = Skip { kind, locator: text::cleaned(locator), reason: text::cleaned(reason) };
            self.deliver(Emitted::Skip(skip));
        }
    }

    pub(crate) fn warn(&mut self, warning: Warning) {
        let Warning { locator, message } = warning;
        self.summary.warnings += 1;
        if self.summary.warnings <= self.max_warnings {
            let warning = Warning { locator: text::cleaned(locator), message: text::cleaned(message) };
            self.deliver(Emitted::Warning(warning));
        }
    }

    fn warn_all(&mut self, notes: Notes, place: impl Fn() -> String) {
        for message in notes.into_messages() {
            self.warn(Warning { locator: place(), message });
        }
    }

    /// Begins a piece of the source.
    pub(crate) fn piece(&mut self) {
        self.complete();
        self.piece = Some(self.count());
        self.deliver(Emitted::Piece);
    }

    /// Ends a piece that was not read again.
    pub(crate) fn again(&mut self, account: Vec<u8>) {
        self.complete();
        self.piece = None;
        self.deliver(Emitted::Again(account));
    }

    /// Ends a piece. It may be remembered only if nothing in it was skipped or warned about: problems must be reported
    /// on every run.
    pub(crate) fn noted(&mut self, digest: [u8; 32], note: Vec<u8>) {
        self.complete();
        if self.piece.take() == Some(self.count()) {
            self.deliver(Emitted::Noted { digest, note });
        }
    }

    fn count(&self) -> Count {
        let Summary { relations, embeddings, warnings, skipped, .. } = &self.summary;
        (skipped.clone(), [*relations, *embeddings, *warnings])
    }

    /// Reports progress by the host's own count. `total` is used as the scale if it is plausible.
    pub(crate) fn progress(&mut self, done: u64, total: Option<u64>) {
        if self.reported.is_some_and(|reported| done < reported.saturating_add(PROGRESS_STEP)) {
            return;
        }
        self.reported = Some(done);
        let size = self.export_bytes;
        let total = total.filter(|total| (done..=size).contains(total)).unwrap_or(size);
        self.deliver(Emitted::Progress { done: done.min(total), total });
    }

    /// Delivers the last conversation and returns the counts, after a run that succeeded.
    pub(crate) fn finish(mut self) -> Summary {
        self.complete();
        self.summary
    }

    fn deliver_all<T>(&mut self, records: Vec<T>, wrap: fn(Vec<T>) -> Emitted) {
        if !records.is_empty() {
            self.deliver(wrap(records));
        }
    }

    fn deliver(&mut self, emitted: Emitted) {
        if !self.stop.asked() && (self.out)(emitted) == Verdict::Stop {
            self.stop.ask();
        }
    }
}

#[cfg(test)]
mod tests;
