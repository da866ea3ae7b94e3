//! Reads the journal in order and tells an unfinished tail from damage.

use std::{ops::RangeInclusive, sync::Arc};

use satchel_seal::KEY_ID;

use super::{
    Acknowledged, JournalContext, Position,
    frame::{self, FrameBinding, FrameHeader, FrameKind},
    reader::{RawFrame, load},
    segment,
    segments::{Segment, Segments},
};
use crate::{
    codec::{Malformed, batch},
    disk::DiskFile,
    error::StoreError,
    record::BodyPlace,
    report::Damage,
};

/// Bytes that are searched at once for the next valid frame.
const WINDOW: usize = 256 << 10;
/// No store reaches this revision, so a header with this or a greater one is not valid.
const MAX_REVISION: u64 = 1 << 48;

/// A frame that belongs at its position.
pub(crate) struct VisitedFrame<'a> {
    /// The position at which it begins.
    pub(crate) start: Position,
    /// The position at which the next frame begins.
    pub(crate) end: Position,
    pub(crate) header: FrameHeader,
    /// The payload as it is on disk.
    pub(crate) payload: &'a [u8],
    /// Whether bytes before it are damaged.
    pub(crate) after_damage: bool,
    context: &'a JournalContext,
}

impl VisitedFrame<'_> {
    /// Opens and unpacks the payload.
    pub(crate) fn unpack(&self) -> Result<Vec<u8>, Malformed> {
        self.context.unpack(&self.header, self.start.segment, self.start.offset, self.payload.to_vec())
    }

    /// Opens the payload. The result may still be compressed.
    pub(crate) fn open(&self) -> Result<Vec<u8>, Malformed> {
        self.context.open(&self.header, self.start.segment, self.start.offset, self.payload.to_vec())
    }

    /// Returns a report that this frame is damaged.
    pub(crate) fn damage(&self, problem: &str) -> Damage {
        let revision = self.header.revision;
        let path = self.context.segment_path(self.start.segment);
        let damage = Damage::new(&path, self.start.offset, self.header.frame_length(), problem);
        Damage { revisions: vec![revision..=revision], ..damage }
    }
}

/// The result of a scan.
pub(crate) struct ScanOutcome {
    /// The position after the last whole commit.
    pub(crate) end: Position,
    /// The revision of the last whole commit.
    pub(crate) revision: u64,
    pub(crate) damage: Vec<Damage>,
    /// Bytes after `end` that were never acknowledged.
    pub(crate) tail: u64,
    /// The last segment, if it was never finished and must be removed.
    pub(crate) unfinished: Option<u32>,
    pub(crate) frames: u64,
}

impl Segments {
    /// Reads all frames from `from` on, where `revision` is the last one before it, and passes each to `visit`.
    pub(crate) fn scan(
        &self,
        from: Position,
        revision: u64,
        acknowledged: Acknowledged,
        visit: &mut dyn FnMut(&VisitedFrame<'_>) -> Result<(), StoreError>,
    ) -> Result<ScanOutcome, StoreError> {
        let outcome = ScanOutcome {
            end: from,
            revision,
            damage: self.damage_before(from, revision)?,
            tail: 0,
            unfinished: None,
            frames: 0,
        };
        let mut scan = Scanner {
            segments: self,
            open: None,
            acknowledged,
            at: from,
            trusted: true,
            reached: revision,
            pending: None,
            outcome,
            visit,
        };
        scan.run()?;
        Ok(scan.outcome)
    }

    /// Returns the damage before a position. The scan only checks that the segments exist, belong to this store and have their
    /// full length. If one does not, everything before the position is read, so that the report names exactly what is lost.
    fn damage_before(&self, place: Position, revision: u64) -> Result<Vec<Damage>, StoreError> {
        let from = Self::beginning();
        if (place.segment, place.offset) <= (from.segment, from.offset) || self.whole_before(place) {
            return Ok(Vec::new());
        }
        let mut before = self.clone();
        before.clip(place);
        let acknowledged = Acknowledged { segment: place.segment, offset: place.offset, revision };
        Ok(before.scan(from, 0, acknowledged, &mut |_| Ok(()))?.damage)
    }
}

struct Scanner<'a> {
    segments: &'a Segments,
    /// The open file, with the number of its segment.
    open: Option<(u32, Arc<dyn DiskFile>)>,
    acknowledged: Acknowledged,
    at: Position,
    /// Whether `at.chain` is the hash of the previous frame. It is not after damage.
    trusted: bool,
    /// All revisions up to this one were seen or reported.
    reached: u64,
    /// Damage whose revisions are not known before the next frame: its index in the outcome, and its bytes.
    pending: Option<(usize, u32, u64, u64)>,
    outcome: ScanOutcome,
    visit: &'a mut dyn FnMut(&VisitedFrame<'_>) -> Result<(), StoreError>,
}

impl Scanner<'_> {
    fn run(&mut self) -> Result<(), StoreError> {
        let last = self.segments.last();
        while self.at.segment <= last {
            let number = self.at.segment;
            let Some(segment) = self.segments.files.get(&number).copied() else {
                self.note_damage(number, 0, 0, "a missing segment");
                self.next_segment(0)?;
                continue;
            };
            if self.at.offset == segment::FIRST_FRAME && !self.check_header(segment, number == last)? {
                return Ok(());
            }
            if !self.frames(segment, number == last)? {
                return Ok(());
            }
            self.next_segment(segment.length)?;
        }
        self.finish();
        Ok(())
    }

    /// Checks a segment's header. Returns false if the segment is an unfinished file at the end.
    fn check_header(&mut self, segment: Segment, last: bool) -> Result<bool, StoreError> {
        let number = self.at.segment;
        let Some(header) = segment.header else {
            let first = self.find(segment, segment::FIRST_FRAME)?;
            if last && first.is_none() && self.acknowledged.segment < number {
                self.outcome.unfinished = Some(number);
                self.outcome.tail = segment.length;
                self.finish();
                return Ok(false);
            }
            self.note_damage(number, 0, segment::FIRST_FRAME, "a header that does not check");
            return Ok(true);
        };
        if header.store_id != self.segments.context.store_id {
            self.note_damage(number, 0, segment::FIRST_FRAME, "a segment of another store");
        } else if self.trusted && header.chain != self.at.chain {
            self.note_damage(
                number,
                0,
                segment::FIRST_FRAME,
                "a segment that does not follow the one before",
            );
        }
        self.advance_to(header.revision);
        if self.outcome.damage.is_empty() {
            // The previous segment is complete, otherwise this one would not have been begun.
            self.outcome.end = self.at;
        }
        Ok(true)
    }

    /// Reads the frames of one segment. Returns false if its end is an unfinished tail.
    fn frames(&mut self, segment: Segment, last: bool) -> Result<bool, StoreError> {
        let number = self.at.segment;
        while self.at.offset < segment.length {
            let loaded = self.load(segment, self.at.offset)?;
            if let Some(loaded) = loaded.filter(|loaded| self.belongs(loaded.header)) {
                self.visit_frame(&loaded)?;
                continue;
            }
            let bad = self.at.offset;
            let next = self.find(segment, bad + 1)?;
            if last && !self.was_acknowledged(segment, bad, next)? {
                self.outcome.tail = segment.length - self.outcome.end_offset(number);
                self.finish();
                return Ok(false);
            }
            let until = next.unwrap_or(segment.length);
            self.note_damage(number, bad, until - bad, "bytes that do not check");
            self.at.offset = until;
        }
        if last {
            self.outcome.tail = segment.length.saturating_sub(self.outcome.end_offset(number));
        }
        Ok(true)
    }

    /// Returns whether a frame follows the one before it. In an encrypted journal, a plain frame was written by somebody else.
    fn belongs(&self, header: FrameHeader) -> bool {
        let foreign = header.key <= KEY_ID && header.key != self.segments.context.key();
        !foreign && (!self.trusted || header.previous == self.at.chain)
    }

    /// Returns whether the bytes at `bad` were fsynced once: a later frame is flagged accordingly, or the engine holds commits
    /// from beyond.
    fn was_acknowledged(
        &mut self,
        segment: Segment,
        bad: u64,
        next: Option<u64>,
    ) -> Result<bool, StoreError> {
        if (self.acknowledged.segment, self.acknowledged.offset) > (segment.number, bad) {
            return Ok(true);
        }
        let mut candidate = next;
        while let Some(offset) = candidate {
            let Some(loaded) = self.load(segment, offset)? else { return Ok(false) };
            if loaded.header.flags & frame::SYNCED != 0 {
                return Ok(true);
            }
            candidate = self.find(segment, offset + loaded.header.frame_length())?;
        }
        Ok(false)
    }

    fn visit_frame(&mut self, loaded: &RawFrame) -> Result<(), StoreError> {
        let header = loaded.header;
        if header.key != self.segments.context.key() {
            let place = format!(
                "byte {} of {}",
                self.at.offset,
                self.segments.context.segment_path(self.at.segment).display()
            );
            return Err(StoreError::Sealed { place, key: header.key });
        }
        let start = self.at;
        self.at = Position { offset: start.offset + header.frame_length(), chain: loaded.hash(), ..start };
        self.trusted = true;
        self.outcome.frames += 1;
        match header.kind {
            FrameKind::Body => self.advance_to(header.revision.saturating_sub(1)),
            FrameKind::Note | FrameKind::Seal => {
                self.advance_to(header.revision);
                self.pending = None;
            }
            FrameKind::Batch => {
                self.advance_to(header.revision.saturating_sub(1));
                self.note_lost_bodies(start, loaded);
                self.reached = self.reached.max(header.revision);
            }
        }
        let after_damage = !self.outcome.damage.is_empty();
        let context = &self.segments.context;
        let payload = loaded.payload.as_slice();
        (self.visit)(&VisitedFrame { start, end: self.at, header, payload, after_damage, context })?;
        if header.kind != FrameKind::Body {
            self.outcome.end = self.at;
            self.outcome.revision = self.outcome.revision.max(header.revision);
        }
        Ok(())
    }

    /// Records that all revisions up to `revision` come before this position. Those that were not seen are lost in the last
    /// damage.
    fn advance_to(&mut self, revision: u64) {
        if revision <= self.reached {
            return;
        }
        let lost = self.reached + 1..=revision;
        self.reached = revision;
        if self.outcome.damage.is_empty() {
            let path = self.segments.context.segment_path(self.at.segment);
            self.outcome.damage.push(Damage::new(&path, self.at.offset, 0, "a gap in the revisions"));
        }
        if let Some(found) = self.outcome.damage.last_mut() {
            add(&mut found.revisions, lost);
        }
    }

    /// Reports the revision of a batch that directly follows damage if it refers to bodies in the damaged bytes.
    fn note_lost_bodies(&mut self, start: Position, loaded: &RawFrame) {
        let Some((index, segment, from, length)) = self.pending.take() else { return };
        let inside =
            |place: &BodyPlace| place.segment == segment && (from..from + length).contains(&place.offset);
        let payload = loaded.payload.clone();
        let hit = self
            .segments
            .context
            .unpack(&loaded.header, start.segment, start.offset, payload)
            .and_then(|payload| batch::places(&payload))
            .map_or(true, |places| places.iter().any(inside));
        if hit && let Some(found) = self.outcome.damage.get_mut(index) {
            add(&mut found.revisions, loaded.header.revision..=loaded.header.revision);
        }
    }

    fn note_damage(&mut self, segment: u32, offset: u64, length: u64, problem: &'static str) {
        self.outcome.damage.push(Damage::new(
            &self.segments.context.segment_path(segment),
            offset,
            length,
            problem,
        ));
        self.pending = Some((self.outcome.damage.len() - 1, segment, offset, length));
        self.trusted = false;
    }

    /// Reports a segment that ends before the length that the next one records. The frame at the cut is reported with it.
    fn note_cut(&mut self, segment: u32, length: u64, known: u64) {
        let path = self.segments.context.segment_path(segment);
        let index = self.outcome.damage.len().saturating_sub(1);
        match self.outcome.damage.last_mut() {
            Some(last) if last.file == path && last.offset + last.length == length => {
                "a segment that was cut short".clone_into(&mut last.problem);
                last.length = known - last.offset;
                self.pending = Some((index, segment, last.offset, last.length));
            }
            Some(_) | None => {
                self.note_damage(segment, length, known - length, "a segment that was cut short");
            }
        }
    }

    fn next_segment(&mut self, length: u64) -> Result<(), StoreError> {
        let number = self.at.segment;
        let next = self.segments.files.get(&(number + 1)).and_then(|segment| segment.header);
        if let Some(header) = next
            && self.segments.files.contains_key(&number)
            && header.previous_length > length
        {
            self.note_cut(number, length, header.previous_length);
        }
        self.at.segment = number.checked_add(1).ok_or(StoreError::TooLarge {
            what: "the journal".to_owned(),
            size: u64::from(number),
            limit: u64::from(u32::MAX),
        })?;
        self.at.offset = segment::FIRST_FRAME;
        Ok(())
    }

    /// Ends the scan. Commits that the engine knows of and the journal does not have are lost.
    fn finish(&mut self) {
        let end = (self.outcome.end.segment, self.outcome.end.offset);
        let short = end < (self.acknowledged.segment, self.acknowledged.offset)
            || self.outcome.revision < self.acknowledged.revision;
        if short && self.outcome.damage.is_empty() {
            self.note_damage(end.0, end.1, 0, "a journal that ends before commits that were acknowledged");
        }
        if !self.outcome.damage.is_empty() {
            self.advance_to(self.acknowledged.revision);
            self.outcome.tail = 0;
            self.outcome.unfinished = None;
        }
    }

    fn load(&mut self, segment: Segment, offset: u64) -> Result<Option<RawFrame>, StoreError> {
        let Segment { number, length, .. } = segment;
        let binding = FrameBinding { store_id: self.segments.context.store_id, segment: number, offset };
        load(self.file(number)?.as_ref(), binding, length).map_err(self.segments.read_error(number))
    }

    fn file(&mut self, number: u32) -> Result<Arc<dyn DiskFile>, StoreError> {
        if let Some((_, file)) = self.open.as_ref().filter(|open| open.0 == number) {
            return Ok(Arc::clone(file));
        }
        let path = self.segments.context.segment_path(number);
        let file = self.segments.disk.open(&path, false).map_err(StoreError::io("open", path))?;
        self.open = Some((number, Arc::clone(&file)));
        Ok(file)
    }

    /// Finds the first valid frame at or after `from`. The CRC binds a frame to its place, so no bytes in a payload can be
    /// mistaken for one.
    fn find(&mut self, segment: Segment, from: u64) -> Result<Option<u64>, StoreError> {
        let mut window = vec![0_u8; WINDOW];
        let mut base = from;
        while base + (frame::HEADER_BYTES as u64) <= segment.length {
            let read = self.file(segment.number)?.read_at(base, &mut window);
            let filled = read.map_err(self.segments.read_error(segment.number))?;
            let starts = (filled + 1).saturating_sub(frame::HEADER_BYTES);
            for at in 0..starts {
                let offset = base + at as u64;
                if plausible(&window[at..], segment.length - offset) && self.load(segment, offset)?.is_some()
                {
                    return Ok(Some(offset));
                }
            }
            if starts == 0 {
                break;
            }
            base += starts as u64;
        }
        Ok(None)
    }
}

impl ScanOutcome {
    /// Returns the offset at which the whole commits of a segment end.
    fn end_offset(&self, number: u32) -> u64 {
        if self.end.segment == number { self.end.offset } else { segment::FIRST_FRAME }
    }
}

/// Returns whether a frame may begin here: a cheap test before the checksum is computed.
fn plausible(bytes: &[u8], room: u64) -> bool {
    let Some(Ok(head)) = bytes.get(..frame::HEADER_BYTES).map(<&[u8; frame::HEADER_BYTES]>::try_from) else {
        return false;
    };
    (1..=4).contains(&head[8])
        && FrameHeader::parse(head)
            .is_some_and(|header| header.frame_length() <= room && header.revision < MAX_REVISION)
}

fn add(ranges: &mut Vec<RangeInclusive<u64>>, more: RangeInclusive<u64>) {
    match ranges.last_mut() {
        Some(last) if *more.start() <= last.end() + 1 => *last = *last.start()..=*more.end().max(last.end()),
        Some(_) | None => ranges.push(more),
    }
}
