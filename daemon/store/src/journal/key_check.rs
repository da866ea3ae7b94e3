//! Checks that a journal is sealed with the key that was given, before anything is changed.

use satchel_seal::{DataKey, KEY_ID, Seal};

use super::{
    Acknowledged,
    frame::{FrameBinding, FrameHeader},
    reader::{RawFrame, load},
    segment,
    segments::{Segment, Segments},
};
use crate::error::StoreError;

/// Frames at the beginning of each segment that are tried with a key before it counts as the wrong one.
const MAX_FRAMES_TRIED: usize = 4;

impl Segments {
    /// Checks that the journal is sealed with the given key or, without a key, that it is plain. This happens before anything is
    /// changed. One frame that opens is enough, because the others may be damaged.
    pub(crate) fn check_key(&self) -> Result<(), StoreError> {
        let (mut checked, mut read) = (Ok(()), false);
        for segment in self.files.values() {
            let mut offset = segment::FIRST_FRAME;
            for _ in 0..MAX_FRAMES_TRIED {
                let Some(RawFrame { header, payload, .. }) = self.load_frame(*segment, offset)? else {
                    break;
                };
                read = true;
                checked = self.check_frame(&header, segment.number, offset, payload);
                if checked.is_ok() {
                    return Ok(());
                }
                offset += header.frame_length();
            }
        }
        if read { checked } else { self.check_key_of_any() }
    }

    /// Does the same as [`Segments::check_key`] if no segment has a readable beginning, using any frame that can be read, sealed
    /// or plain.
    fn check_key_of_any(&self) -> Result<(), StoreError> {
        let mut other = self.clone();
        // A scan accepts only frames of the journal's own kind, sealed or plain; it does not check that the key opens them.
        other.context.seal = match &self.context.seal {
            Some(_) => None,
            None => Some(Seal::new(&DataKey::from_bytes(&[0; 32]))),
        };
        match self.check_frames(self)? {
            Some(result) => result,
            None => self.check_frames(&other)?.unwrap_or(Ok(())),
        }
    }

    /// Returns what the frames of `segments` show about the key of `self`, or `None` if there are no frames.
    fn check_frames(&self, segments: &Self) -> Result<Option<Result<(), StoreError>>, StoreError> {
        let mut result = None;
        // This marks everything as acknowledged, so that all of it is searched.
        let all = Acknowledged { segment: u32::MAX, ..Acknowledged::default() };
        segments.scan(Self::beginning(), 0, all, &mut |visit| {
            if !matches!(result, Some(Ok(()))) {
                let (start, payload) = (visit.start, visit.payload.to_vec());
                result = Some(self.check_frame(&visit.header, start.segment, start.offset, payload));
            }
            Ok(())
        })?;
        Ok(result)
    }

    fn load_frame(&self, segment: Segment, offset: u64) -> Result<Option<RawFrame>, StoreError> {
        let path = self.context.segment_path(segment.number);
        let file = self.disk.open(&path, false).map_err(StoreError::io("open", &path))?;
        let binding = FrameBinding { store_id: self.context.store_id, segment: segment.number, offset };
        load(file.as_ref(), binding, segment.length).map_err(self.read_error(segment.number))
    }

    fn check_frame(
        &self,
        header: &FrameHeader,
        segment: u32,
        offset: u64,
        payload: Vec<u8>,
    ) -> Result<(), StoreError> {
        let folder = self.context.folder.clone();
        match (header.key, &self.context.seal) {
            (0, None) => Ok(()),
            (0, Some(_)) => Err(StoreError::NotEncrypted { folder }),
            (KEY_ID, None) => Err(StoreError::NoKey { folder }),
            (KEY_ID, Some(_)) => match self.context.open(header, segment, offset, payload) {
                Ok(_) => Ok(()),
                Err(_) => Err(StoreError::WrongKey { folder }),
            },
            (key, _) => Err(StoreError::Sealed {
                place: self.context.segment_path(segment).display().to_string(),
                key,
            }),
        }
    }
}
