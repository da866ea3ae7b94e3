//! The vectors of a bundle.

use satchel_pam::embedding::{self, Embedding};
use satchel_store::EmbeddingRecord;

use crate::{
    export::{
        ExportError,
        job::{Job, PAGE},
        pages,
        target::Target,
    },
    plan::evidence::{Field, marks},
};

impl Job<'_> {
    pub(super) fn embeddings(&self, target: &mut Target) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        if !self.any_embedding()? {
            return Ok(());
        }
        target.file("embeddings.json", |out| {
            let mut writer = embedding::Writer::new(out).map_err(&failed)?;
            self.each_embedding(|record| {
                let leaves = self.leaves(&record.embedding.memory_id)? && self.fits(&record.embedding)?;
                if leaves { writer.embedding(&record.embedding).map_err(&failed) } else { Ok(()) }
            })?;
            writer.finish().map(drop).map_err(&failed)
        })?;
        Ok(())
    }

    fn any_embedding(&self) -> Result<bool, ExportError> {
        let Some(delta) = &self.delta else {
            return Ok(!self.store.embeddings(None, 1)?.items.is_empty());
        };
        for memory in &delta.embedded {
            let any = |id: &str| -> Result<bool, ExportError> {
                Ok(self.leaves(id)? && !self.store.embeddings_of(id)?.is_empty())
            };
            if memory.text(any)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn each_embedding(
        &self,
        mut see: impl FnMut(EmbeddingRecord) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let Some(delta) = &self.delta else {
            return pages(|after| Ok(self.store.embeddings(after, PAGE)?), see);
        };
        for memory in &delta.embedded {
            memory.text(|id| self.store.embeddings_of(id))?.into_iter().try_for_each(&mut see)?;
        }
        Ok(())
    }

    /// Whether a vector is of what its memory says: the person may have written something else since (PAM rule ).
    fn fits(&self, embedding: &Embedding) -> Result<bool, ExportError> {
        let record = self.store.memory(&embedding.memory_id, Some(self.revision))?;
        let written = record.and_then(|record| marks(&record.memory).get(&Field::Content).copied());
        Ok(written.is_none_or(|written| written <= embedding.created_at.micros()))
    }
}
