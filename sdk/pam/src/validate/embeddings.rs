//! Checks an embeddings document.

use std::io::{self, Read};

use super::{
    header::check_version,
    ids::{Ids, Keys},
};
use crate::{
    embedding::{Embedding, EmbeddingsDocument},
    issue::{Issue, Issues, quote},
    parse::{self, EmbeddingsScan, How},
};

/// A check under way.
#[derive(Debug, Default)]
pub(super) struct EmbeddingsCheck {
    pub(super) ids: Ids,
    memories: Ids,
}

/// Checks a document that is in memory.
pub(super) fn check(document: &EmbeddingsDocument, root: &str, issues: &mut Issues) {
    check_version(&document.schema_version, root, issues);
    let (mut check, keys) = (EmbeddingsCheck::default(), Keys::default());
    for (index, embedding) in document.embeddings.iter().enumerate() {
        check.embedding((index, embedding), &keys, root, issues);
    }
}

/// Reads and checks a document.
pub(super) fn read(input: impl Read) -> io::Result<Vec<Issue>> {
    let (mut check, keys, mut found) = (EmbeddingsCheck::default(), Keys::default(), Issues::default());
    let how = How { salvage: false, wanted: &|| true };
    let scan = parse::scan_embeddings(input, how, &mut |at, entry| {
        if let Ok(embedding) = entry {
            check.embedding((at, &embedding), &keys, "$", &mut found);
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
        keys: &Keys,
        root: &str,
        issues: &mut Issues,
    ) {
        let path = |key: &str| format!("{root}.embeddings[{index}].{key}");
        check_embedding(embedding, &path, issues);
        if !self.ids.insert(keys.of(&embedding.id)) {
            let message = format!("{} stands twice", quote(&embedding.id));
            issues.push(Issue::error("R-4.6", path("id"), message));
        }
        if !self.memories.insert(keys.of(&embedding.memory_id)) {
            let message = format!("{} has an embedding already", quote(&embedding.memory_id));
            issues.push(Issue::error("R-12.6", path("memory_id"), message));
        }
    }
}

fn check_embedding(embedding: &Embedding, path: &dyn Fn(&str) -> String, issues: &mut Issues) {
    for (key, text) in
        [("id", &embedding.id), ("memory_id", &embedding.memory_id), ("model", &embedding.model)]
    {
        if text.is_empty() {
            issues.push(Issue::error("R-12.7", path(key), "is empty"));
        }
    }
    if embedding.dimensions == 0 {
        issues.push(Issue::error("R-12.7", path("dimensions"), "is 0"));
    }
    if let Some(vector) = &embedding.vector
        && u32::try_from(vector.len()) != Ok(embedding.dimensions)
    {
        let message = format!("has {} numbers, but dimensions is {}", vector.len(), embedding.dimensions);
        issues.push(Issue::error("R-12.7", path("vector"), message));
    }
    if embedding.storage.as_ref().is_some_and(|storage| storage.reference.is_empty()) {
        issues.push(Issue::error("R-12.7", path("storage.ref"), "is empty"));
    }
}
