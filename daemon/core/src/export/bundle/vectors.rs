//! The vectors of a bundle: at most one per memory, because PAM has no room for more (PAM rule ).

use satchel_pam::embedding::{self, Embedding};
use satchel_store::EmbeddingRecord;

use crate::{
    embeddings::is_current,
    export::{ExportError, PAGE, job::ExportJob, pages, target::ExportTarget},
};

impl ExportJob<'_> {
    pub(super) fn embeddings(&self, target: &mut ExportTarget) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        if !self.any_embedding()? {
            return Ok(());
        }
        target.file("embeddings.json", |out| {
            let mut writer = embedding::Writer::new(out).map_err(&failed)?;
            self.each_embedding(|embedding| writer.embedding(&embedding).map_err(&failed))?;
            writer.finish().map(drop).map_err(&failed)
        })?;
        Ok(())
    }

    fn any_embedding(&self) -> Result<bool, ExportError> {
        let Some(delta) = &self.delta else {
            return Ok(!self.store.embeddings(None, 1)?.items.is_empty());
        };
        for memory in &delta.embedded {
            if memory.with_text(|id| self.embedding_of(id))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Passes each exported vector to `visit`.
    fn each_embedding(
        &self,
        mut visit: impl FnMut(Embedding) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        if let Some(delta) = &self.delta {
            for memory in &delta.embedded {
                memory.with_text(|id| self.embedding_of(id))?.map_or(Ok(()), &mut visit)?;
            }
            return Ok(());
        }
        // The vectors of one memory are adjacent.
        let mut best: Option<Embedding> = None;
        let one = |stored: EmbeddingRecord| {
            if !self.is_current_vector(&stored)? {
                return Ok(());
            }
            let embedding = stored.embedding;
            match &mut best {
                Some(known) if known.memory_id == embedding.memory_id => {
                    if newer(&embedding, known) {
                        *known = embedding;
                    }
                    Ok(())
                }
                known => known.replace(embedding).map_or(Ok(()), &mut visit),
            }
        };
        pages(|after| Ok(self.store.embeddings(after, PAGE)?), one)?;
        best.map_or(Ok(()), visit)
    }

    /// Returns the vector that is exported with a memory.
    pub(in crate::export) fn embedding_of(&self, memory: &str) -> Result<Option<Embedding>, ExportError> {
        let mut best: Option<Embedding> = None;
        for stored in self.store.embeddings_of(memory)? {
            if self.is_current_vector(&stored)?
                && best.as_ref().is_none_or(|best| newer(&stored.embedding, best))
            {
                best = Some(stored.embedding);
            }
        }
        Ok(best)
    }

    /// Returns whether a vector may be exported and is of the current text of its memory.
    fn is_current_vector(&self, stored: &EmbeddingRecord) -> Result<bool, ExportError> {
        Ok(self.is_exported(&stored.embedding.memory_id)? && is_current(self.store, stored, self.revision)?)
    }
}

/// Returns whether `one` is exported instead of `other`, a vector of the same memory. If both have the same time, the
/// model decides.
fn newer(one: &Embedding, other: &Embedding) -> bool {
    (one.created_at.micros(), &one.model) > (other.created_at.micros(), &other.model)
}
