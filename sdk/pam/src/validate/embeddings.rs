//! Checks an embeddings document.

use std::io::{self, Read};

use super::{
    header::check_version,
    ids::{IdHasher, IdSet},
};
use crate::{
    embedding::{Embedding, EmbeddingsDocument},
    issue::{Issue, Issues, quote},
    parse::{self, EmbeddingsScan, ScanOptions},
};

/// State of the check of an embeddings document.
#[derive(Debug, Default)]
pub(super) struct EmbeddingsCheck {
    pub(super) ids: IdSet,
    memories: IdSet,
}

/// Checks a document in memory.
pub(super) fn check(document: &EmbeddingsDocument, root: &str, issues: &mut Issues) {
    check_version(&document.schema_version, root, issues);
    let (mut check, hasher) = (EmbeddingsCheck::default(), IdHasher::default());
    for (index, embedding) in document.embeddings.iter().enumerate() {
        check.embedding((index, embedding), &hasher, root, issues);
    }
}

/// Reads and checks a document.
pub(super) fn read(input: impl Read) -> io::Result<Vec<Issue>> {
    let (mut check, hasher, mut found) = (EmbeddingsCheck::default(), IdHasher::default(), Issues::default());
    let options = ScanOptions { salvage: false, keep_going: &|| true };
    let scan = parse::scan_embeddings(input, options, &mut |at, entry| {
        if let Ok(embedding) = entry {
            check.embedding((at, &embedding), &hasher, "$", &mut found);
        }
    })?;
    let EmbeddingsScan { schema_version, mut issues, .. } = scan.unwrap_or_default();
    if let Some(version) = schema_version {
        check_version(&version, "$", &mut found);
        issues.extend(found.finish());
    }
    Ok(issues)
}

impl EmbeddingsCheck {
    pub(super) fn embedding(
        &mut self,
        (index, embedding): (usize, &Embedding),
        hasher: &IdHasher,
        root: &str,
        issues: &mut Issues,
    ) {
        let path = |key: &str| format!("{root}.embeddings[{index}].{key}");
        check_embedding(embedding, &path, issues);
        if !self.ids.insert(hasher.hash(&embedding.id)) {
            issues.error("R-4.6", path("id"), format!("{} stands twice", quote(&embedding.id)));
        }
        if !self.memories.insert(hasher.hash(&embedding.memory_id)) {
            let message = format!("{} has an embedding already", quote(&embedding.memory_id));
            issues.error("R-12.6", path("memory_id"), message);
        }
    }
}

fn check_embedding(embedding: &Embedding, path: &dyn Fn(&str) -> String, issues: &mut Issues) {
    for (key, text) in
        [("id", &embedding.id), ("memory_id", &embedding.memory_id), ("model", &embedding.model)]
    {
        issues.reject_empty(text, "R-12.7", || path(key));
    }
    if embedding.dimensions == 0 {
        issues.error("R-12.7", path("dimensions"), "is 0");
    }
    if let Some(vector) = &embedding.vector
        && u32::try_from(vector.len()) != Ok(embedding.dimensions)
    {
        let message = format!("has {} numbers, but dimensions is {}", vector.len(), embedding.dimensions);
        issues.error("R-12.7", path("vector"), message);
    }
    if embedding.storage.as_ref().is_some_and(|storage| storage.reference.is_empty()) {
        issues.error("R-12.7", path("storage.ref"), "is empty");
    }
}
