//! Counts the lines that an importer emits.

use std::collections::BTreeMap;

use satchel_host::RunSummary;
use satchel_pam::record::{Line, RecordKind};

/// Numbers of emitted records, skips and warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Conversations.
    pub conversations: u64,
    /// Messages in those conversations.
    pub messages: u64,
    /// Pieces of evidence about memories.
    pub evidence: u64,
    /// Relations between memories.
    pub relations: u64,
    /// Embeddings of memories.
    pub embeddings: u64,
    /// Accounts.
    pub accounts: u64,
    /// Skips, by the kind of the record.
    pub skipped: BTreeMap<RecordKind, u64>,
    /// Warnings.
    pub warnings: u64,
}

impl LineCounts {
    /// Counts a line.
    pub fn add(&mut self, line: &Line) {
        match line {
            Line::Conversation(record) => {
                self.conversations += 1;
                self.messages += record.messages.len() as u64;
            }
            Line::Evidence(_) => self.evidence += 1,
            Line::Relation(_) => self.relations += 1,
            Line::Embedding(_) => self.embeddings += 1,
            Line::Account(_) => self.accounts += 1,
            Line::Skip(skip) => *self.skipped.entry(skip.kind).or_default() += 1,
            Line::Warning(_) => self.warnings += 1,
        }
    }

    /// Counts all these lines.
    pub fn of(lines: &[Line]) -> Self {
        let mut counts = Self::default();
        lines.iter().for_each(|line| counts.add(line));
        counts
    }

    /// Adds the counts of other lines.
    pub fn add_all(&mut self, other: &Self) {
        let Self { conversations, messages, evidence, relations, embeddings, accounts, skipped, warnings } =
            other;
        self.conversations += conversations;
        self.messages += messages;
        self.evidence += evidence;
        self.relations += relations;
        self.embeddings += embeddings;
        self.accounts += accounts;
        self.warnings += warnings;
        for (kind, count) in skipped {
            *self.skipped.entry(*kind).or_default() += count;
        }
    }

    /// Returns how many records of a kind were found: those emitted, and those skipped.
    pub fn found(&self, kind: RecordKind) -> u64 {
        let emitted = match kind {
            RecordKind::Conversation => self.conversations,
            RecordKind::Message => self.messages,
            RecordKind::Memory => self.evidence + self.relations + self.embeddings,
            RecordKind::File => 0,
        };
        emitted + self.skipped.get(&kind).copied().unwrap_or_default()
    }

    /// Returns where these counts differ from the host's own for the same run; one text for each kind.
    pub(crate) fn differences(&self, summary: &RunSummary) -> Vec<String> {
        let skipped = |kind: RecordKind| {
            let listed = self.skipped.get(&kind).copied().unwrap_or_default();
            (listed, summary.skipped.get(&kind).copied().unwrap_or_default())
        };
        let pairs = [
            ("conversations", (self.conversations, summary.conversations)),
            ("messages", (self.messages, summary.messages)),
            ("pieces of evidence", (self.evidence, summary.evidence)),
            ("relations", (self.relations, summary.relations)),
            ("embeddings", (self.embeddings, summary.embeddings)),
            ("warnings", (self.warnings, summary.warnings)),
            ("skipped conversations", skipped(RecordKind::Conversation)),
            ("skipped messages", skipped(RecordKind::Message)),
            ("skipped memories", skipped(RecordKind::Memory)),
            ("skipped files", skipped(RecordKind::File)),
        ];
        let different = pairs.into_iter().filter(|(_, (lines, host))| lines != host);
        different.map(|(what, (lines, host))| format!("{lines} {what} arrived, {host} were found")).collect()
    }
}
