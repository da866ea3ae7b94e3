//! Checks a whole bundle: store, conversations and embeddings, each and against each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
};

use super::{
    Counts, Report, conversation,
    embeddings::EmbeddingsCheck,
    header,
    ids::{Ids, Key, References, Shown},
    store::{self, StoreCheck},
};
use crate::{
    conversation::Conversation,
    embedding::StorageKind,
    issue::{Issue, Issues, Severity, quote},
    memory::{Memory, Provenance},
    parse::{self, ChecksumReading, EmbeddingsScan, How, StoreEntry, StoreFrame, StoreScan, Text},
    sign::{self, SignatureCheck},
    store::{ExportType, IndexEntry},
};

/// Checks a bundle that is in memory; `conversations` are file names relative to the store, and their bytes.
#[must_use]
pub fn bundle<'b>(
    store: &[u8],
    conversations: impl IntoIterator<Item = (&'b str, &'b [u8])>,
    embeddings: Option<&[u8]>,
) -> Report {
    let mut check = BundleCheck::new(store);
    for (name, bytes) in conversations {
        check.conversation(name, bytes);
    }
    if let Some(bytes) = embeddings {
        check.embeddings("embeddings.json", bytes);
    }
    check.finish()
}

/// Checks a bundle file by file, keeping of the store its root and what others may refer to, and nothing of a conversation.
#[derive(Debug)]
pub struct BundleCheck {
    store: Option<StoreFrame>,
    check: StoreCheck,
    counts: Counts,
    issues: Issues,
    checksum: ChecksumReading,
    signature: SignatureCheck,
    /// What the index says, by each file that it names.
    files: BTreeMap<String, Entry>,
    seen: BTreeSet<String>,
    ids: BTreeSet<String>,
    /// Messages that memories refer to, by conversation, each with the place of the memory.
    wanted: BTreeMap<Key, Vec<(u32, Key)>>,
    /// Vectors that memories refer to, by memory.
    vectors: References,
    embeddings: bool,
}

/// What the index says of a file.
#[derive(Debug)]
struct Entry {
    at: usize,
    id: String,
    platform: String,
    title: Option<String>,
    messages: Option<u64>,
}

impl BundleCheck {
    /// Checks the memory store: its text, its values, its checksum, its signature.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        // What is in memory can be read.
        Self::read(&bytes).unwrap_or_else(|_| Self::empty())
    }

    /// As [`BundleCheck::new`], for a store that may be too long to hold.
    ///
    /// # Errors
    /// What reading the text gives.
    pub fn read(text: &dyn Text) -> io::Result<Self> {
        let mut bundle = Self::empty();
        let mut found = Issues::default();
        let how = How { salvage: false, wanted: &|| true };
        let scan = parse::scan_store(text, how, &mut |at, entry| bundle.entry(at, &entry, &mut found))?;
        let StoreScan { frame, issues, signed, checksum, count, broken: _ } = scan.unwrap_or_default();
        // What the text shows stands before what its values show.
        issues.into_iter().for_each(|issue| bundle.issues.push(issue));
        match frame {
            Some(frame) => {
                found.finish().into_iter().for_each(|issue| bundle.issues.push(issue));
                bundle.check.finish(&frame, &mut bundle.issues);
                check_count(&frame, count, &mut bundle.issues);
                bundle.store = Some(frame);
            }
            // What came before a mistake is no store.
            None => bundle = Self { issues: bundle.issues, ..Self::empty() },
        }
        check_checksum(&checksum, &mut bundle.issues);
        let signature = sign::verify(&signed);
        check_signature(&signature, &mut bundle.issues);
        (bundle.checksum, bundle.signature) = (checksum, signature);
        Ok(bundle)
    }

    fn empty() -> Self {
        Self {
            store: None,
            check: StoreCheck::default(),
            counts: Counts::default(),
            issues: Issues::default(),
            checksum: ChecksumReading::Absent,
            signature: SignatureCheck::Absent,
            files: BTreeMap::new(),
            seen: BTreeSet::new(),
            ids: BTreeSet::new(),
            wanted: BTreeMap::new(),
            vectors: References::default(),
            embeddings: false,
        }
    }

    fn entry(&mut self, at: usize, entry: &StoreEntry, issues: &mut Issues) {
        match entry {
            StoreEntry::Memory(memory) => {
                self.counts.memories += 1;
                self.check.memory(at, memory, issues);
                self.refer(at, memory);
            }
            StoreEntry::Relation(relation) => {
                self.counts.relations += 1;
                self.check.relation(at, relation, issues);
            }
            StoreEntry::Conversation(entry) => {
                self.counts.index += 1;
                self.check.entry(at, entry, issues);
                if let Some(storage) =
                    entry.storage.as_ref().filter(|storage| storage.kind == StorageKind::File)
                {
                    self.files.insert(storage.reference.clone(), Entry::of(at, entry));
                }
            }
            StoreEntry::LeftOut(_) => {}
        }
    }

    /// Notes what a memory refers to in other files.
    fn refer(&mut self, at: usize, memory: &Memory) {
        let Provenance { conversation_ref, message_ref, .. } = &memory.provenance;
        if let (Some(conversation), Some(message)) = (conversation_ref, message_ref) {
            let keys = &self.check.keys;
            let row = (u32::try_from(at).unwrap_or(u32::MAX), keys.of(message));
            self.wanted.entry(keys.of(conversation)).or_default().push(row);
        }
        if let Some(reference) = &memory.embedding_ref {
            self.vectors.push(at, self.check.keys.of(reference), reference);
        }
    }

    /// Checks a conversation file; `name` is relative to the store.
    pub fn conversation(&mut self, name: &str, bytes: &[u8]) {
        // What is in memory can be read.
        drop(self.conversation_from(name, bytes));
    }

    /// As [`BundleCheck::conversation`]; the text is not held beside the document.
    ///
    /// # Errors
    /// What reading the text gives.
    pub fn conversation_from(&mut self, name: &str, input: impl Read) -> io::Result<()> {
        let (document, found) = parse::conversation_from(input)?;
        self.take(name, found);
        self.seen.insert(name.to_owned());
        if let Some(document) = document {
            let mut issues = Issues::default();
            conversation::check(&document, "$", &mut issues);
            self.take(name, issues.finish());
            self.compare(name, &document);
            self.find_messages(name, &document);
        }
        Ok(())
    }

    /// Checks the embeddings file.
    pub fn embeddings(&mut self, name: &str, bytes: &[u8]) {
        // What is in memory can be read.
        drop(self.embeddings_from(name, bytes));
    }

    /// As [`BundleCheck::embeddings`], for a document that may be too long to hold.
    ///
    /// # Errors
    /// What reading the text gives.
    pub fn embeddings_from(&mut self, name: &str, input: impl Read) -> io::Result<()> {
        let (mut check, mut found) = (EmbeddingsCheck::default(), Issues::default());
        let how = How { salvage: false, wanted: &|| true };
        let complete = self.store.as_ref().map(|store| store.header.export_type == ExportType::Full);
        let scan = parse::scan_embeddings(input, how, &mut |at, entry| {
            let Ok(embedding) = entry else { return };
            let keys = &self.check.keys;
            check.embedding((at, &embedding), keys, "$", &mut found);
            if let Some(complete) = complete
                && !self.check.memories.contains(&keys.of(&embedding.memory_id))
            {
                let path = format!("$.embeddings[{at}].memory_id");
                found.push(store::dangling("R-12.6", path, Shown(Some(&embedding.memory_id)), complete));
            }
        })?;
        let EmbeddingsScan { schema_version, issues, .. } = scan.unwrap_or_default();
        self.take(name, issues);
        self.embeddings = true;
        if let Some(version) = schema_version {
            header::check_version(&version, "$", &mut found);
            self.cross_embeddings(&version, &check, &mut found);
            self.take(name, found.finish());
        }
        Ok(())
    }

    /// Checks what is missing, and reports.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.check_missing();
        if self.store.is_some() && !self.embeddings {
            for (index, _, reference) in self.vectors.iter() {
                let message = format!("{reference} leads nowhere: there is no embeddings file");
                let path = format!("$.memories[{index}].embedding_ref");
                self.issues.push(Issue::warning("R-12.2", path, message));
            }
        }
        Report {
            store: self.store,
            counts: self.counts,
            issues: self.issues.finish(),
            checksum: self.checksum,
            signature: self.signature,
        }
    }

    fn take(&mut self, name: &str, found: Vec<Issue>) {
        for issue in found {
            self.issues.push(Issue { path: format!("{name}:{}", issue.path), ..issue });
        }
    }

    /// The file against its entry in the index.
    fn compare(&mut self, name: &str, document: &Conversation) {
        let Some(store) = &self.store else { return };
        let mut found = Vec::new();
        if document.schema_version != store.schema_version {
            let message = format!("{} is not the store's", quote(&document.schema_version));
            found.push(Issue::error("R-25.1", "$.schema_version", message));
        }
        if !self.ids.insert(document.header.id.clone()) {
            let message = format!("{} is the id of another file too", quote(&document.header.id));
            found.push(Issue::error("R-4.6", "$.id", message));
        }
        match self.files.get(name) {
            Some(entry) => differences(entry, document, &mut found),
            None => found.push(Issue::warning("R-14.4", "$", "no entry of the index names this file")),
        }
        self.take(name, found);
    }

    /// Messages that memories refer to.
    fn find_messages(&mut self, name: &str, document: &Conversation) {
        let keys = &self.check.keys;
        let Some(wanted) = self.wanted.remove(&keys.of(&document.header.id)) else { return };
        let messages: Ids = document.messages.iter().map(|message| keys.of(&message.id)).collect();
        for (index, _) in wanted.into_iter().filter(|(_, key)| !messages.contains(key)) {
            let path = format!("$.memories[{index}].provenance.message_ref");
            self.issues.push(Issue::warning("R-14.4", path, format!("names no message of {name}")));
        }
    }

    fn cross_embeddings(&self, version: &str, check: &EmbeddingsCheck, issues: &mut Issues) {
        let Some(store) = &self.store else { return };
        if version != store.schema_version {
            let message = format!("{} is not the store's", quote(version));
            issues.push(Issue::error("R-25.1", "$.schema_version", message));
        }
        for (index, _, reference) in self.vectors.iter().filter(|(_, key, _)| !check.ids.contains(key)) {
            let message = format!("memory {index} refers to {reference}, which is not here");
            issues.push(Issue::warning("R-12.3", "$.embeddings", message));
        }
    }

    fn check_missing(&mut self) {
        // A store may stand alone; files are missed only where some are there.
        if self.seen.is_empty() {
            return;
        }
        let mut missing: Vec<(usize, &String)> =
            self.files.iter().map(|(name, entry)| (entry.at, name)).collect();
        missing.retain(|(_, name)| !self.seen.contains(*name));
        missing.sort_unstable();
        for (index, name) in missing {
            let path = format!("$.conversations_index[{index}].storage.ref");
            self.issues.push(Issue::warning("R-2.1", path, format!("{} is not in the bundle", quote(name))));
        }
    }
}

impl Entry {
    fn of(at: usize, entry: &IndexEntry) -> Self {
        let IndexEntry { id, platform, title, message_count, .. } = entry;
        let (id, platform, title) = (id.clone(), platform.clone(), title.clone());
        Self { at, id, platform, title, messages: *message_count }
    }
}

fn differences(entry: &Entry, document: &Conversation, found: &mut Vec<Issue>) {
    let header = &document.header;
    let mut differ = |path: &str, same: bool| {
        if !same {
            found.push(Issue::error("R-14.5", path, "is not what the store's index says"));
        }
    };
    differ("$.id", entry.id == header.id);
    differ("$.provider.name", entry.platform == header.provider.name);
    differ("$.title", entry.title == header.title);
    let count = document.messages.len() as u64;
    differ("$.messages", entry.messages.is_none_or(|stated| stated == count));
}

fn check_count(store: &StoreFrame, count: u64, issues: &mut Issues) {
    if let Some(integrity) = &store.integrity
        && integrity.total_memories != count
    {
        let message = format!("is {}, but there are {count} memories", integrity.total_memories);
        issues.push(Issue::error("R-15.3", "$.integrity.total_memories", message));
    }
}

fn check_checksum(checksum: &ChecksumReading, issues: &mut Issues) {
    let path = "$.integrity.checksum";
    issues.push(match checksum {
        ChecksumReading::Spec => return,
        ChecksumReading::Absent => Issue::warning("R-15.4", "$.integrity", "there is no checksum"),
        ChecksumReading::SdkNormalForm => Issue::warning(
            "A-1",
            path,
            "fits the memories as the official SDK rewrites them, not as they stand",
        ),
        ChecksumReading::Mismatch { computed } => {
            Issue::error("R-15.2", path, format!("is not that of the memories, which is {computed}"))
        }
        ChecksumReading::NotCanonical(problem) => Issue::error("A-12", "$.memories", problem.clone()),
    });
}

fn check_signature(signature: &SignatureCheck, issues: &mut Issues) {
    let (severity, rule, message) = match signature {
        SignatureCheck::Valid { .. } => return,
        SignatureCheck::Absent => (Severity::Warning, "R-18.1", "the export is not signed".to_owned()),
        SignatureCheck::Invalid(reason) => (Severity::Error, "R-18.7", reason.clone()),
        SignatureCheck::Unsupported(reason) => {
            (Severity::Warning, "R-18.2", format!("cannot be checked: {reason}"))
        }
    };
    issues.push(Issue { severity, rule, path: "$.signature".to_owned(), message });
}
