//! Checks an embeddings document.

use std::collections::BTreeSet;

use super::header::check_version;
use crate::{
    embedding::{Embedding, EmbeddingsDocument},
    issue::{Issue, Issues, quote},
};

pub(super) fn check(document: &EmbeddingsDocument, root: &str, issues: &mut Issues) {
    check_version(&document.schema_version, root, issues);
    let (mut ids, mut memories) = (BTreeSet::new(), BTreeSet::new());
    for (index, embedding) in document.embeddings.iter().enumerate() {
        let path = |key: &str| format!("{root}.embeddings[{index}].{key}");
        check_embedding(embedding, &path, issues);
        if !ids.insert(embedding.id.as_str()) {
            let message = format!("{} stands twice", quote(&embedding.id));
            issues.push(Issue::error("R-4.6", path("id"), message));
        }
        if !memories.insert(embedding.memory_id.as_str()) {
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
