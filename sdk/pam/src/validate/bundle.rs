//! Checks a bundle: store, conversations and embeddings, each alone and against each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
};

use super::{
    Counts, Report, conversation,
    embeddings::EmbeddingsCheck,
    header,
    ids::{IdHash, IdSet, QuotedId, References},
    store::{self, StoreCheck},
};
use crate::{
    conversation::Conversation,
    embedding::StorageKind,
    issue::{Issue, Issues, Severity, quote},
    memory::{Memory, Provenance},
    parse::{
        self, ChecksumStatus, EmbeddingsScan, ScanOptions, StoreEntry, StoreRoot, StoreScan, TextSource,
    },
    sign::{self, SignatureCheck},
    store::{ExportType, IndexEntry},
};

/// Checks a bundle that is in memory. `conversations` are file names relative to the store, and their contents.
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

/// Checks a bundle file by file.
///
/// Of the store it keeps the root and what other files may refer to; of conversations only their ids.
#[derive(Debug)]
pub struct BundleCheck {
    store: Option<StoreRoot>,
    check: StoreCheck,
    counts: Counts,
    issues: Issues,
    checksum: ChecksumStatus,
    signature: SignatureCheck,
    /// Files that the index names, by name.
    files: BTreeMap<String, IndexedFile>,
    /// Names of the conversation files checked so far.
    seen: BTreeSet<String>,
    /// `IdSet` of those conversations.
    ids: BTreeSet<String>,
    /// Messages that memories refer to, by conversation, each with the index of the memory.
    message_refs: BTreeMap<IdHash, Vec<(u32, IdHash)>>,
    /// Embeddings that memories refer to, by memory.
    embedding_refs: References,
    /// Whether an embeddings file was checked.
    has_embeddings: bool,
}

/// The entry of the index that names a file.
#[derive(Debug)]
struct IndexedFile {
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
        // Reading from memory does not fail.
        Self::read(&bytes).unwrap_or_else(|_| Self::empty())
    }

    /// Checks a memory store of any size, like [`BundleCheck::new`].
    ///
    /// # Errors
    /// If the text cannot be read.
    pub fn read(text: &dyn TextSource) -> io::Result<Self> {
        let mut bundle = Self::empty();
        let mut found = Issues::default();
        let options = ScanOptions { salvage: false, keep_going: &|| true };
        let scan = parse::scan_store(text, options, &mut |at, entry| bundle.entry(at, &entry, &mut found))?;
        let StoreScan { root, issues, signed, checksum, count, broken: _ } = scan.unwrap_or_default();
        // Issues of the text come before issues of the values.
        bundle.issues.extend(issues);
        match root {
            Some(root) => {
                bundle.issues.extend(found.finish());
                bundle.check.finish(&root, &mut bundle.issues);
                check_count(&root, count, &mut bundle.issues);
                bundle.store = Some(root);
            }
            // Without a readable root, the entries are not a store.
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
            checksum: ChecksumStatus::Absent,
            signature: SignatureCheck::Absent,
            files: BTreeMap::new(),
            seen: BTreeSet::new(),
            ids: BTreeSet::new(),
            message_refs: BTreeMap::new(),
            embedding_refs: References::default(),
            has_embeddings: false,
        }
    }

    fn entry(&mut self, at: usize, entry: &StoreEntry, issues: &mut Issues) {
        match entry {
            StoreEntry::Memory(memory) => {
                self.counts.memories += 1;
                self.check.memory(at, memory, issues);
                self.add_references(at, memory);
            }
            StoreEntry::Relation(relation) => {
                self.counts.relations += 1;
                self.check.relation(at, relation, issues);
            }
            StoreEntry::Conversation(entry) => {
                self.counts.index += 1;
                self.check.entry(at, entry, issues);
                if let Some(storage) = &entry.storage
                    && storage.kind == StorageKind::File
                {
                    self.files.insert(storage.reference.clone(), IndexedFile::of(at, entry));
                }
            }
            StoreEntry::Unreadable(_) => {}
        }
    }

    /// Collects the references of a memory to other files.
    fn add_references(&mut self, at: usize, memory: &Memory) {
        let Provenance { conversation_ref, message_ref, .. } = &memory.provenance;
        if let (Some(conversation), Some(message)) = (conversation_ref, message_ref) {
            let hasher = &self.check.hasher;
            let row = (u32::try_from(at).unwrap_or(u32::MAX), hasher.hash(message));
            self.message_refs.entry(hasher.hash(conversation)).or_default().push(row);
        }
        if let Some(reference) = &memory.embedding_ref {
            self.embedding_refs.push(at, self.check.hasher.hash(reference), reference);
        }
    }

    /// Checks a conversation file; `name` is relative to the store.
    pub fn conversation(&mut self, name: &str, bytes: &[u8]) {
        // Reading from memory fails only for a conversation that is too large to hold.
        drop(self.conversation_from(name, bytes));
    }

    /// Checks a conversation file, like [`BundleCheck::conversation`]; the text is not held besides the document.
    ///
    /// # Errors
    /// If the text cannot be read; [`io::ErrorKind::FileTooLarge`] beyond [`parse::LARGEST_CONVERSATION`].
    pub fn conversation_from(&mut self, name: &str, input: impl Read) -> io::Result<()> {
        let (document, found) = parse::conversation_from(input)?;
        self.take(name, found);
        self.seen.insert(name.to_owned());
        if let Some(document) = document {
            let mut issues = Issues::default();
            conversation::check(&document, "$", &mut issues);
            self.take(name, issues.finish());
            self.compare(name, &document);
            self.check_message_refs(name, &document);
        }
        Ok(())
    }

    /// Checks the embeddings file.
    pub fn embeddings(&mut self, name: &str, bytes: &[u8]) {
        // Reading from memory does not fail.
        drop(self.embeddings_from(name, bytes));
    }

    /// Checks an embeddings file of any size, like [`BundleCheck::embeddings`].
    ///
    /// # Errors
    /// If the text cannot be read.
    pub fn embeddings_from(&mut self, name: &str, input: impl Read) -> io::Result<()> {
        let (mut check, mut found) = (EmbeddingsCheck::default(), Issues::default());
        let options = ScanOptions { salvage: false, keep_going: &|| true };
        let complete = self.store.as_ref().map(|store| store.header.export_type == ExportType::Full);
        let scan = parse::scan_embeddings(input, options, &mut |at, entry| {
            let Ok(embedding) = entry else { return };
            let hasher = &self.check.hasher;
            check.embedding((at, &embedding), hasher, "$", &mut found);
            if let Some(complete) = complete
                && !self.check.memories.contains(&hasher.hash(&embedding.memory_id))
            {
                let path = format!("$.embeddings[{at}].memory_id");
                found.push(store::dangling("R-12.6", path, QuotedId(Some(&embedding.memory_id)), complete));
            }
        })?;
        let EmbeddingsScan { schema_version, issues, .. } = scan.unwrap_or_default();
        self.take(name, issues);
        self.has_embeddings = true;
        if let Some(version) = schema_version {
            header::check_version(&version, "$", &mut found);
            self.compare_embeddings(&version, &check, &mut found);
            self.take(name, found.finish());
        }
        Ok(())
    }

    /// Reports missing files and returns all results.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.check_missing();
        if self.store.is_some() && !self.has_embeddings {
            for (index, _, reference) in self.embedding_refs.iter() {
                let message = format!("{reference} leads nowhere: there is no embeddings file");
                self.issues.warning("R-12.2", format!("$.memories[{index}].embedding_ref"), message);
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

    /// Adds issues of the file `name`.
    fn take(&mut self, name: &str, found: Vec<Issue>) {
        for issue in found {
            self.issues.push(Issue { path: format!("{name}:{}", issue.path), ..issue });
        }
    }

    /// Compares a conversation with the store and its entry in the index.
    fn compare(&mut self, name: &str, document: &Conversation) {
        let Some(store) = &self.store else { return };
        let mut found = Issues::default();
        if document.schema_version != store.schema_version {
            let message = format!("{} is not the store's", quote(&document.schema_version));
            found.error("R-25.1", "$.schema_version", message);
        }
        if !self.ids.insert(document.header.id.clone()) {
            let message = format!("{} is the id of another file too", quote(&document.header.id));
            found.error("R-4.6", "$.id", message);
        }
        match self.files.get(name) {
            Some(entry) => compare_header(entry, document, &mut found),
            None => found.warning("R-14.4", "$", "no entry of the index names this file"),
        }
        self.take(name, found.finish());
    }

    /// Checks that the messages to which memories refer exist.
    fn check_message_refs(&mut self, name: &str, document: &Conversation) {
        let hasher = &self.check.hasher;
        let Some(refs) = self.message_refs.remove(&hasher.hash(&document.header.id)) else { return };
        let messages: IdSet = document.messages.iter().map(|message| hasher.hash(&message.id)).collect();
        for (index, _) in refs.into_iter().filter(|(_, key)| !messages.contains(key)) {
            let path = format!("$.memories[{index}].provenance.message_ref");
            self.issues.warning("R-14.4", path, format!("names no message of {name}"));
        }
    }

    /// Compares the embeddings with the store.
    fn compare_embeddings(&self, version: &str, check: &EmbeddingsCheck, issues: &mut Issues) {
        let Some(store) = &self.store else { return };
        if version != store.schema_version {
            issues.error("R-25.1", "$.schema_version", format!("{} is not the store's", quote(version)));
        }
        for (index, _, reference) in self.embedding_refs.iter().filter(|(_, key, _)| !check.ids.contains(key))
        {
            let message = format!("memory {index} refers to {reference}, which is not here");
            issues.warning("R-12.3", "$.embeddings", message);
        }
    }

    fn check_missing(&mut self) {
        // A store may be checked alone: files are missing only if there are others.
        if self.seen.is_empty() {
            return;
        }
        let mut missing: Vec<(usize, &String)> =
            self.files.iter().map(|(name, entry)| (entry.at, name)).collect();
        missing.retain(|(_, name)| !self.seen.contains(*name));
        missing.sort_unstable();
        for (index, name) in missing {
            let path = format!("$.conversations_index[{index}].storage.ref");
            self.issues.warning("R-2.1", path, format!("{} is not in the bundle", quote(name)));
        }
    }
}

impl IndexedFile {
    fn of(at: usize, entry: &IndexEntry) -> Self {
        let IndexEntry { id, platform, title, message_count, .. } = entry;
        let (id, platform, title) = (id.clone(), platform.clone(), title.clone());
        Self { at, id, platform, title, messages: *message_count }
    }
}

fn compare_header(entry: &IndexedFile, document: &Conversation, found: &mut Issues) {
    let header = &document.header;
    let mut differ = |path: &str, same: bool| {
        if !same {
            found.error("R-14.5", path, "is not what the store's index says");
        }
    };
    differ("$.id", entry.id == header.id);
    differ("$.provider.name", entry.platform == header.provider.name);
    differ("$.title", entry.title == header.title);
    let count = document.messages.len() as u64;
    differ("$.messages", entry.messages.is_none_or(|stated| stated == count));
}

fn check_count(store: &StoreRoot, count: u64, issues: &mut Issues) {
    if let Some(integrity) = &store.integrity
        && integrity.total_memories != count
    {
        let message = format!("is {}, but there are {count} memories", integrity.total_memories);
        issues.error("R-15.3", "$.integrity.total_memories", message);
    }
}

fn check_checksum(checksum: &ChecksumStatus, issues: &mut Issues) {
    let path = "$.integrity.checksum";
    issues.push(match checksum {
        ChecksumStatus::Spec => return,
        ChecksumStatus::Absent => Issue::warning("R-15.4", "$.integrity", "there is no checksum"),
        ChecksumStatus::SdkNormalForm => Issue::warning(
            "A-1",
            path,
            "fits the memories as the official SDK rewrites them, not as they stand",
        ),
        ChecksumStatus::Mismatch { computed } => {
            Issue::error("R-15.2", path, format!("is not that of the memories, which is {computed}"))
        }
        ChecksumStatus::NotCanonical(problem) => Issue::error("A-12", "$.memories", problem.clone()),
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
