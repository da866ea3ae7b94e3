//! Receives the records that a plugin emits: checks, counts and limits them, and passes complete conversations on.

mod check;
mod json_lines;
mod pending;
pub(crate) mod size_estimate;
mod structure;

use std::collections::BTreeMap;

use satchel_pam::{
    record::{
        AccountRecord, ConversationRecord, EmbeddingRecord, Evidence, MessageRecord, RecordKind,
        RelationRecord, Skip, Warning,
    },
    unread,
};

pub(crate) use self::check::RecordNotes;
use self::pending::PendingConversation;
use crate::{
    emitted::{Emitted, MAX_LISTED_BREACHES, RunSummary, SinkVerdict},
    imports::PathIndex,
    limits::{MIB, PluginLimits},
    stop::StopFlag,
    text,
};

/// Bytes read between two progress reports. Without it, a run at full speed would report hundreds of times a second for
/// no benefit.
const PROGRESS_STEP_BYTES: u64 = 4 * MIB as u64;

/// The receiving side of one run's sink.
pub(crate) struct RecordCollector<'a> {
    out: &'a mut dyn FnMut(Emitted) -> SinkVerdict,
    stop: &'a StopFlag,
    paths: PathIndex,
    export_bytes: u64,
    pending: Option<PendingConversation>,
    summary: RunSummary,
    conversation_bytes: usize,
    max_skips: u64,
    max_warnings: u64,
    skips: u64,
    reported_progress: Option<u64>,
    lines: u64,
    /// The counts when the current piece began.
    counts_at_piece_start: Option<PieceCounts>,
}

/// The counts that must not change within a piece that is to be remembered: skips by kind; relations, embeddings and
/// warnings.
type PieceCounts = (BTreeMap<RecordKind, u64>, [u64; 3]);

impl<'a> RecordCollector<'a> {
    /// Creates a collector that delivers to `out`. When `out` asks to stop, `stop` is set and nothing more is
    /// delivered.
    pub(crate) fn new(
        out: &'a mut dyn FnMut(Emitted) -> SinkVerdict,
        stop: &'a StopFlag,
        limits: &PluginLimits,
        paths: PathIndex,
        export_bytes: u64,
    ) -> Self {
        Self {
            out,
            stop,
            paths,
            export_bytes,
            pending: None,
            summary: RunSummary::default(),
            conversation_bytes: limits.conversation_bytes,
            max_skips: limits.skips,
            max_warnings: limits.warnings,
            skips: 0,
            reported_progress: None,
            lines: 0,
            counts_at_piece_start: None,
        }
    }

    /// Begins a conversation and completes the previous one. The messages follow by calls of `message`.
    pub(crate) fn conversation(
        &mut self,
        mut record: ConversationRecord,
        mut notes: RecordNotes,
        size: usize,
    ) {
        self.finish_conversation();
        let checked = check::conversation(&mut record, &mut notes);
        self.warn_all(notes, || record.locator.clone());
        self.pending = Some(match checked {
            Ok(()) => PendingConversation::new(record, size, self.conversation_bytes),
            Err(rejection) => PendingConversation::refused(record.locator, rejection),
        });
    }

    /// Adds a message to the conversation that was begun last.
    pub(crate) fn message(&mut self, mut record: MessageRecord, mut notes: RecordNotes, size: usize) {
        let Some(pending) = &mut self.pending else {
            let reason = "this message came before any conversation".to_owned();
            return self.reject(Skip { kind: RecordKind::Message, locator: record.id, reason });
        };
        if pending.is_refused() {
            return pending.drop_message();
        }
        let checked = check::message(&mut record, &self.paths, &mut notes);
        unread::in_message(&record).into_iter().for_each(|note| notes.add(note));
        if checked.is_ok() && notes.is_empty() {
            return pending.add(record, size);
        }
        let locator = format!("{}#{}", pending.locator(), record.id);
        if let Err(check::Rejection(reason)) = checked {
            return self.reject(Skip { kind: RecordKind::Message, locator, reason });
        }
        pending.add(record, size);
        self.warn_all(notes, || locator.clone());
    }

    /// Repairs the structure of the pending conversation and delivers it.
    fn finish_conversation(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let mut record = match pending.finish() {
            Ok(record) => record,
            Err(refused) => {
                // The messages are counted here, but reported once for the whole conversation.
                *self.summary.skipped.entry(RecordKind::Message).or_default() += refused.messages;
                return self.reject(refused.skip);
            }
        };
        let problems = structure::repair(&mut record);
        problems.skips.into_iter().for_each(|skip| self.reject(skip));
        for warning in problems.warnings {
            self.list_breach(&warning.locator, &warning.message);
            self.warn(warning);
        }
        if let Some(message) = unread::in_conversation(&record) {
            self.warn(Warning { locator: record.locator.clone(), message });
        }
        self.summary.conversations += 1;
        self.summary.messages += record.messages.len() as u64;
        self.deliver(Emitted::Conversation(Box::new(record)));
    }

    pub(crate) fn evidence(&mut self, records: impl Iterator<Item = (Evidence, RecordNotes)>) {
        let checked = self.check_all(records, check::evidence, |record| record.locator.clone());
        self.summary.evidence += checked.len() as u64;
        self.deliver_all(checked, Emitted::Evidence);
    }

    pub(crate) fn relations(&mut self, records: impl Iterator<Item = RelationRecord>) {
        let records = records.map(|record| (record, RecordNotes::default()));
        let checked =
            self.check_all(records, check::relation, |record| format!("relation of \"{}\"", record.source));
        self.summary.relations += checked.len() as u64;
        self.deliver_all(checked, Emitted::Relations);
    }

    pub(crate) fn embeddings(&mut self, records: impl Iterator<Item = EmbeddingRecord>) {
        let records = records.map(|record| (record, RecordNotes::default()));
        let checked =
            self.check_all(records, check::embedding, |record| format!("embedding of \"{}\"", record.memory));
        self.summary.embeddings += checked.len() as u64;
        self.deliver_all(checked, Emitted::Embeddings);
    }

    /// Takes the account that the export belongs to. An account does not count as a record, and a piece that emits one
    /// is not remembered.
    pub(crate) fn account(&mut self, mut account: AccountRecord) {
        self.counts_at_piece_start = None;
        let mut notes = RecordNotes::default();
        let checked = check::account(&mut account, &mut notes);
        self.warn_all(notes, || account.locator.clone());
        match checked {
            Ok(()) => self.deliver(Emitted::Account(account)),
            Err(check::Rejection(reason)) => {
                self.reject(Skip { kind: RecordKind::File, locator: account.locator, reason });
            }
        }
    }

    /// Returns those `records` that pass `check`; the others are skipped with a reason.
    fn check_all<T>(
        &mut self,
        records: impl Iterator<Item = (T, RecordNotes)>,
        check: fn(&mut T, &mut RecordNotes) -> Result<(), check::Rejection>,
        locator_of: fn(&T) -> String,
    ) -> Vec<T> {
        let mut checked = Vec::new();
        for (mut record, mut notes) in records {
            match check(&mut record, &mut notes) {
                Ok(()) => {
                    self.warn_all(notes, || locator_of(&record));
                    checked.push(record);
                }
                Err(check::Rejection(reason)) => {
                    self.reject(Skip { kind: RecordKind::Memory, locator: locator_of(&record), reason });
                }
            }
        }
        checked
    }

    pub(crate) fn skip(&mut self, skip: Skip) {
        let Skip { kind, locator, reason } = skip;
        *self.summary.skipped.entry(kind).or_default() += 1;
        self.skips += 1;
        if self.skips <= self.max_skips {
            let skip = Skip { kind, locator: text::clean_owned(locator), reason: text::clean_owned(reason) };
            self.deliver(Emitted::Skip(skip));
        }
    }

    pub(crate) fn warn(&mut self, warning: Warning) {
        let Warning { locator, message } = warning;
        self.summary.warnings += 1;
        if self.summary.warnings <= self.max_warnings {
            let warning =
                Warning { locator: text::clean_owned(locator), message: text::clean_owned(message) };
            self.deliver(Emitted::Warning(warning));
        }
    }

    /// Skips a record that breaks a rule of the interface.
    fn reject(&mut self, skip: Skip) {
        self.list_breach(&skip.locator, &skip.reason);
        self.skip(skip);
    }

    fn list_breach(&mut self, locator: &str, message: &str) {
        if self.summary.breaches.len() < MAX_LISTED_BREACHES {
            let (locator, message) = (text::clean(locator), text::clean(message));
            self.summary.breaches.push(Warning { locator, message });
        }
    }

    fn warn_all(&mut self, notes: RecordNotes, locator: impl Fn() -> String) {
        if let Some(breach) = notes.breach() {
            self.list_breach(&locator(), breach);
        }
        for message in notes.into_messages() {
            self.warn(Warning { locator: locator(), message });
        }
    }

    /// Begins a piece of the source.
    pub(crate) fn begin_piece(&mut self) {
        self.finish_conversation();
        self.counts_at_piece_start = Some(self.piece_counts());
        self.deliver(Emitted::PieceStarted);
    }

    /// Ends a piece that was not read again.
    pub(crate) fn piece_unchanged(&mut self, result: Vec<u8>) {
        self.finish_conversation();
        self.counts_at_piece_start = None;
        self.deliver(Emitted::PieceUnchanged(result));
    }

    /// Ends a piece. It may be remembered only if nothing in it was skipped or warned about: problems must be reported
    /// on every run.
    pub(crate) fn piece_noted(&mut self, digest: [u8; 32], note: Vec<u8>) {
        self.finish_conversation();
        if self.counts_at_piece_start.take() == Some(self.piece_counts()) {
            self.deliver(Emitted::PieceNoted { digest, note });
        }
    }

    fn piece_counts(&self) -> PieceCounts {
        let RunSummary { relations, embeddings, warnings, skipped, .. } = &self.summary;
        (skipped.clone(), [*relations, *embeddings, *warnings])
    }

    /// Reports progress by the host's own count. `total` is used as the scale if it is plausible.
    pub(crate) fn progress(&mut self, done: u64, total: Option<u64>) {
        if self.reported_progress.is_some_and(|reported| done < reported.saturating_add(PROGRESS_STEP_BYTES))
        {
            return;
        }
        self.reported_progress = Some(done);
        let size = self.export_bytes;
        let total = total.filter(|total| (done..=size).contains(total)).unwrap_or(size);
        self.deliver(Emitted::Progress { done: done.min(total), total });
    }

    /// Delivers the last conversation and returns the counts, after a run that succeeded.
    pub(crate) fn finish(mut self) -> RunSummary {
        self.finish_conversation();
        self.summary
    }

    fn deliver_all<T>(&mut self, records: Vec<T>, wrap: fn(Vec<T>) -> Emitted) {
        if !records.is_empty() {
            self.deliver(wrap(records));
        }
    }

    fn deliver(&mut self, emitted: Emitted) {
        if !self.stop.requested() && (self.out)(emitted) == SinkVerdict::Stop {
            self.stop.request();
        }
    }
}

#[cfg(test)]
mod tests;
