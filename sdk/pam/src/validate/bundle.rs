//! Checks a whole bundle: store, conversations and embeddings, each and against each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{Report, conversation, embeddings, store};
use crate::{
    conversation::Conversation,
    embedding::{EmbeddingsDocument, StorageKind},
    issue::{Issue, Issues, Severity, quote},
    parse::{self, ChecksumReading, StoreReading},
    sign::{self, SignatureCheck},
    store::{ExportType, IndexEntry, MemoryStore},
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

/// Checks a bundle file by file, keeping the store and no conversation.
#[derive(Debug)]
pub struct BundleCheck {
    store: Option<MemoryStore>,
    issues: Issues,
    checksum: ChecksumReading,
    signature: SignatureCheck,
    /// Place in the index of each file that it names.
    files: BTreeMap<String, usize>,
    seen: BTreeSet<String>,
    ids: BTreeSet<String>,
    /// Messages that memories refer to, by conversation: `(memory, message)`.
    wanted: BTreeMap<String, Vec<(usize, String)>>,
    embeddings: bool,
}

impl BundleCheck {
    /// Checks the memory store: its text, its values, its checksum, its signature.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let StoreReading { document, issues: found, signed, checksum, count } = parse::store_reading(bytes);
        let mut issues = Issues::default();
        for issue in found {
            issues.push(issue);
        }
        if let Some(store) = &document {
            store::check(store, &mut issues);
            check_count(store, count, &mut issues);
        }
        check_checksum(&checksum, &mut issues);
        let signature = sign::verify(&signed);
        check_signature(&signature, &mut issues);
        let (files, wanted) = document.as_ref().map(references).unwrap_or_default();
        Self {
            store: document,
            issues,
            checksum,
            signature,
            files,
            wanted,
            seen: BTreeSet::new(),
            ids: BTreeSet::new(),
            embeddings: false,
        }
    }

    /// Checks a conversation file; `name` is relative to the store.
    pub fn conversation(&mut self, name: &str, bytes: &[u8]) -> Option<Conversation> {
        let (document, found) = parse::conversation(bytes);
        self.take(name, found);
        self.seen.insert(name.to_owned());
        let document = document?;
        let mut issues = Issues::default();
        conversation::check(&document, "$", &mut issues);
        self.take(name, issues.finish());
        self.compare(name, &document);
        self.find_messages(name, &document);
        Some(document)
    }

    /// Checks the embeddings file.
    pub fn embeddings(&mut self, name: &str, bytes: &[u8]) -> Option<EmbeddingsDocument> {
        let (document, found) = parse::embeddings(bytes);
        self.take(name, found);
        self.embeddings = true;
        let document = document?;
        let mut issues = Issues::default();
        embeddings::check(&document, "$", &mut issues);
        self.cross_embeddings(&document, &mut issues);
        self.take(name, issues.finish());
        Some(document)
    }

    /// Checks what is missing, and reports.
    #[must_use]
    pub fn finish(mut self) -> Report {
        if let Some(store) = &self.store {
            check_missing(store, &self.seen, &mut self.issues);
            if !self.embeddings {
                for (index, memory) in
                    store.memories.iter().enumerate().filter(|(_, one)| one.embedding_ref.is_some())
                {
                    let reference = memory.embedding_ref.as_deref().unwrap_or_default();
                    let message = format!("{} leads nowhere: there is no embeddings file", quote(reference));
                    self.issues.push(Issue::warning(
                        "R-12.2",
                        format!("$.memories[{index}].embedding_ref"),
                        message,
                    ));
                }
            }
        }
        Report {
            store: self.store,
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
        match self.files.get(name).and_then(|index| store.conversations_index.get(*index)) {
            Some(entry) => differences(entry, document, &mut found),
            None => found.push(Issue::warning("R-14.4", "$", "no entry of the index names this file")),
        }
        self.take(name, found);
    }

    /// Messages that memories refer to.
    fn find_messages(&mut self, name: &str, document: &Conversation) {
        let Some(wanted) = self.wanted.remove(&document.header.id) else { return };
        let messages: BTreeSet<&str> = document.messages.iter().map(|message| message.id.as_str()).collect();
        for (index, id) in wanted.into_iter().filter(|(_, id)| !messages.contains(id.as_str())) {
            let message = format!("{} is not in {name}", quote(&id));
            let path = format!("$.memories[{index}].provenance.message_ref");
            self.issues.push(Issue::warning("R-14.4", path, message));
        }
    }

    fn cross_embeddings(&self, document: &EmbeddingsDocument, issues: &mut Issues) {
        let Some(store) = &self.store else { return };
        if document.schema_version != store.schema_version {
            let message = format!("{} is not the store's", quote(&document.schema_version));
            issues.push(Issue::error("R-25.1", "$.schema_version", message));
        }
        let complete = store.header.export_type == ExportType::Full;
        let memories: BTreeSet<&str> = store.memories.iter().map(|memory| memory.id.as_str()).collect();
        for (index, embedding) in document.embeddings.iter().enumerate() {
            if !memories.contains(embedding.memory_id.as_str()) {
                let path = format!("$.embeddings[{index}].memory_id");
                issues.push(store::dangling("R-12.6", path, &embedding.memory_id, complete));
            }
        }
        let vectors: BTreeSet<&str> =
            document.embeddings.iter().map(|embedding| embedding.id.as_str()).collect();
        for memory in &store.memories {
            if let Some(reference) = memory.embedding_ref.as_deref().filter(|id| !vectors.contains(id)) {
                let message =
                    format!("memory {} refers to {}, which is not here", quote(&memory.id), quote(reference));
                issues.push(Issue::warning("R-12.3", "$.embeddings", message));
            }
        }
    }
}

type References = (BTreeMap<String, usize>, BTreeMap<String, Vec<(usize, String)>>);

fn references(store: &MemoryStore) -> References {
    let files = store.conversations_index.iter().enumerate().filter_map(|(index, entry)| {
        let storage = entry.storage.as_ref().filter(|storage| storage.kind == StorageKind::File)?;
        Some((storage.reference.clone(), index))
    });
    let mut wanted: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    for (index, memory) in store.memories.iter().enumerate() {
        if let (Some(conversation), Some(message)) =
            (&memory.provenance.conversation_ref, &memory.provenance.message_ref)
        {
            wanted.entry(conversation.clone()).or_default().push((index, message.clone()));
        }
    }
    (files.collect(), wanted)
}

fn differences(entry: &IndexEntry, document: &Conversation, found: &mut Vec<Issue>) {
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
    differ("$.messages", entry.message_count.is_none_or(|stated| stated == count));
}

fn check_missing(store: &MemoryStore, seen: &BTreeSet<String>, issues: &mut Issues) {
    // A store may stand alone; files are missed only where some are there.
    if seen.is_empty() {
        return;
    }
    for (index, entry) in store.conversations_index.iter().enumerate() {
        let file = entry.storage.as_ref().filter(|storage| storage.kind == StorageKind::File);
        if let Some(storage) = file.filter(|storage| !seen.contains(&storage.reference)) {
            let path = format!("$.conversations_index[{index}].storage.ref");
            issues.push(Issue::warning(
                "R-2.1",
                path,
                format!("{} is not in the bundle", quote(&storage.reference)),
            ));
        }
    }
}

fn check_count(store: &MemoryStore, count: u64, issues: &mut Issues) {
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
