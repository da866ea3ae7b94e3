//! Writes a journal again beside the old one, sealed with another key or with some of its content changed. The same commits are
//! in the same segments, with the same store id and revisions. Only places inside a segment move, and references are updated.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use satchel_seal::{NONCE, Seal};

use super::{
    Acknowledged, JournalContext,
    copy::JournalCopy,
    frame::{self, FrameFields, FrameKind, PayloadCompressor},
    scan::VisitedFrame,
    segments::Segments,
};
use crate::{
    change::Origin,
    codec::{
        Malformed, batch,
        heads::{HeadWriter, read_part},
    },
    disk::Disk,
    entry::JournalEntry,
    error::StoreError,
    record::BodyPlace,
    report::{CheckProgress, Damage},
};

/// The content of a frame that may be changed during the rewrite.
pub(crate) enum FrameContent<'a> {
    /// The bodies in one frame, with its place in the old journal. Their number of bytes must not change.
    Bodies { segment: u32, offset: u64, bytes: &'a mut [u8] },
    /// The changes of a commit. Their number and order must not change, because records refer to them by number.
    Changes { origin: &'a mut Origin, entries: &'a mut Vec<JournalEntry> },
}

/// A callback that receives all content in order.
pub(crate) type ContentEditor<'a> = &'a mut dyn FnMut(FrameContent<'_>) -> Result<(), StoreError>;

/// Writes the journal `old` into the new folder `folder`, sealed with `seal` or plain. Durable when this returns. Without `edit`
/// all content stays as it is, and bodies are not even unpacked.
///
/// # Errors
/// [`StoreError::DamagedJournal`] if a byte of the old journal is damaged, or if it does not end with a whole commit; any error
/// of the file system. The old journal stays in any case.
pub(crate) fn rewrite(
    disk: &Arc<dyn Disk>,
    old: &Segments,
    folder: PathBuf,
    seal: Option<&Seal>,
    edit: Option<ContentEditor<'_>>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<(), StoreError> {
    disk.create_folders(&folder).map_err(StoreError::io("create", &folder))?;
    let context = JournalContext::new(folder, old.context.store_id, seal.cloned());
    let compressor =
        PayloadCompressor::new().map_err(StoreError::io("prepare compression for", &context.folder))?;
    let copy = JournalCopy::new(Arc::clone(disk), context.clone(), old);
    let mut rewriter = Rewriter { copy, context, edit, compressor, moved: BTreeMap::new() };
    let total = old.bytes_from(Segments::beginning());
    let mut done = 0;
    let outcome = old.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
        done += visit.header.frame_length();
        progress(CheckProgress { done, total });
        rewriter.frame(visit)
    })?;
    StoreError::check(outcome.damage)?;
    if outcome.tail > 0 {
        let first = Damage::new(&old.context.folder, 0, outcome.tail, "an end that does not check");
        return Err(StoreError::DamagedJournal { first });
    }
    rewriter.copy.finish().map(|_| ())
}

struct Rewriter<'a, 'e> {
    copy: JournalCopy<'a>,
    context: JournalContext,
    edit: Option<ContentEditor<'e>>,
    compressor: PayloadCompressor,
    /// The new offset of each body frame, by its old place; takes about 40 bytes per 20 KiB of journal.
    moved: BTreeMap<(u32, u64), u64>,
}

impl Rewriter<'_, '_> {
    fn frame(&mut self, visit: &VisitedFrame<'_>) -> Result<(), StoreError> {
        let wrong = |error: Malformed| StoreError::DamagedJournal {
            first: visit.damage(&format!("a frame that {error}")),
        };
        match visit.header.kind {
            FrameKind::Seal => self.put(visit, Vec::new(), 0),
            FrameKind::Body if self.edit.is_none() => {
                let packed = visit.open().map_err(wrong)?;
                self.record_move(visit)?;
                self.put(visit, packed, visit.header.flags & frame::ZSTD)
            }
            FrameKind::Body => {
                let mut bodies = visit.unpack().map_err(wrong)?;
                let (segment, offset) = (visit.start.segment, visit.start.offset);
                if let Some(edit) = &mut self.edit {
                    edit(FrameContent::Bodies { segment, offset, bytes: &mut bodies })?;
                }
                self.record_move(visit)?;
                self.compress_and_put(visit, &bodies)
            }
            FrameKind::Batch | FrameKind::Note => {
                let (mut origin, mut entries) =
                    visit.unpack().and_then(|payload| batch::decode(&payload)).map_err(wrong)?;
                if let Some(edit) = &mut self.edit {
                    edit(FrameContent::Changes { origin: &mut origin, entries: &mut entries })?;
                }
                for entry in &mut entries {
                    self.update_places(entry).map_err(wrong)?;
                }
                let mut payload = Vec::new();
                batch::encode(&origin, &entries, &mut payload).map_err(wrong)?;
                self.compress_and_put(visit, &payload)
            }
        }
    }

    /// Records the new place of a body frame.
    fn record_move(&mut self, visit: &VisitedFrame<'_>) -> Result<(), StoreError> {
        let now = self.copy.offset(visit.start.segment)?;
        self.moved.insert((visit.start.segment, visit.start.offset), now);
        Ok(())
    }

    /// Updates the heads of a conversation to the new places of their bodies.
    fn update_places(&self, entry: &mut JournalEntry) -> Result<(), Malformed> {
        let JournalEntry::Conversation(conversation) = entry else { return Ok(()) };
        let (mut heads, mut places) = (Vec::new(), Vec::new());
        for part in &conversation.parts {
            read_part(part, &mut heads, &mut places)?;
        }
        let mut writer = HeadWriter::new(heads.len());
        for (head, place) in heads.iter().zip(&places) {
            let now = self.moved.get(&(place.segment, place.offset));
            let offset = *now.ok_or(Malformed("refers to a body that is not there"))?;
            writer.push(head, BodyPlace { offset, ..*place });
        }
        conversation.parts = writer.finish().0;
        Ok(())
    }

    fn compress_and_put(&mut self, visit: &VisitedFrame<'_>, payload: &[u8]) -> Result<(), StoreError> {
        let mut packed = Vec::with_capacity(payload.len());
        let path = || self.context.segment_path(visit.start.segment);
        let smaller = self.compressor.pack(payload, &mut packed);
        let smaller = smaller.map_err(|error| StoreError::io("pack a frame for", path())(error))?;
        self.put(visit, packed, if smaller { frame::ZSTD } else { 0 })
    }

    /// Seals a payload for its new place if the journal is sealed, and appends it.
    fn put(&mut self, visit: &VisitedFrame<'_>, payload: Vec<u8>, zstd: u8) -> Result<(), StoreError> {
        let (segment, header) = (visit.start.segment, visit.header);
        let flags = header.flags & !frame::ZSTD | zstd;
        let fields =
            FrameFields { kind: header.kind, flags, key: self.context.key(), revision: header.revision };
        let Some(seal) = &self.context.seal else { return self.copy.put(segment, fields, &payload) };
        let data = frame::associated_data(header.kind, segment, self.copy.offset(segment)?, header.revision);
        let mut sealed = vec![0; NONCE];
        sealed.extend_from_slice(&payload);
        let done = seal.frames().seal_tail(&data, &mut sealed, 0);
        done.map_err(StoreError::io("seal a frame for", self.context.segment_path(segment)))?;
        self.copy.put(segment, fields, &sealed)
    }
}
