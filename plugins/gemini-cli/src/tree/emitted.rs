//! Decides for each piece of a message whether the file had it before.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher as _},
};

use crate::{
    digest::digest,
    record::{Piece, Slot},
};

/// How a result begins that the program has replaced to save room.
const MASKED: &str = "<tool_output_masked>";

/// What is left out of a piece that was written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Nothing that the first version does not have.
    Same,
    /// A note that stands for the result.
    Masked,
    /// Other words, files or unknown fields than those of the first version.
    Changed,
}

/// What the messages of one file have brought so far. The number of a message is another one if it comes again after it was taken back.
#[derive(Debug, Default)]
pub(super) struct EmittedPieces {
    /// The first version of each piece, by the number of the message, the slot and the key.
    pieces: BTreeMap<u64, Version>,
    /// Files and unknown parts, by the number of the message.
    contents: BTreeSet<u64>,
    /// Inputs of calls without an id, by the number of the message.
    unnamed: BTreeSet<u64>,
    /// The last call of each id: the number of the message and the key of its result.
    calls: BTreeMap<u64, (u32, u64)>,
    /// Texts and files beside results.
    beside_results: BTreeSet<u64>,
}

/// Digests of what a piece holds; 0 if it has none.
#[derive(Clone, Copy, Debug, Default)]
struct Version {
    words: u32,
    /// None if the files are in another message.
    contents: Option<u32>,
    /// Of the fields, if an unknown one holds a text.
    rest: u32,
}

impl EmittedPieces {
    /// How many digests are kept.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
            + self.contents.len()
            + self.unnamed.len()
            + self.calls.len()
            + self.beside_results.len()
    }

    /// Whether the file had a piece before. Of one that is new in part, the rest is removed.
    pub(super) fn repeats(&mut self, message: u32, piece: &mut Piece<'_>) -> Option<Repeat> {
        match piece.slot {
            Slot::Text | Slot::Expanded => self.repeats_text(message, piece),
            Slot::Call if self.names_call(message, piece) => Some(Repeat::Same),
            Slot::Call | Slot::Thought => {
                self.pieces.get(&place(message, piece.slot, piece.key)).map(|first| first.compare(piece))
            }
            Slot::Result => self.repeats_result(message, piece),
        }
    }

    fn repeats_text(&self, message: u32, piece: &mut Piece<'_>) -> Option<Repeat> {
        let repeated = |content: &u64| self.beside_results.contains(content);
        if piece.beside_result && !piece.content.is_empty() && piece.content.iter().all(repeated) {
            return Some(Repeat::Same);
        }
        // A checkpoint has the text as the model got it in the place of the one that the person wrote.
        let known = [piece.slot, Slot::Expanded]
            .iter()
            .any(|slot| self.pieces.contains_key(&place(message, *slot, piece.key)));
        let wordless = piece.texts.is_empty() && piece.contents().next().is_some();
        if known || wordless {
            piece.keep_new(|content| !self.contents.contains(&combine(&(message, content))));
            if piece.contents().next().is_none() {
                return Some(Repeat::Same);
            }
        }
        None
    }

    /// Whether the message had this call before, without its id.
    fn names_call(&mut self, message: u32, piece: &Piece<'_>) -> bool {
        let Some((id, input)) = piece.call.as_deref().zip(piece.input) else { return false };
        let names = self.unnamed.remove(&combine(&(message, input)));
        if names {
            self.pieces.insert(place(message, Slot::Call, piece.key), Version::default());
            self.calls.insert(digest(id), (message, piece.key));
        }
        names
    }

    /// Newer versions write a result once more, in the person's name.
    fn repeats_result(&self, message: u32, piece: &Piece<'_>) -> Option<Repeat> {
        let own = self.pieces.get(&place(message, Slot::Result, piece.key));
        let first = own.or_else(|| {
            let (message, key) = self.calls.get(&digest(piece.call.as_deref()?))?;
            let same = piece.input.is_none() || piece.key == *key;
            self.pieces.get(&place(*message, Slot::Result, *key)).filter(|_| same)
        })?;
        if first.is_empty() && !Version::of(piece).is_empty() {
            return None;
        }
        Some(match first.compare(piece) {
            Repeat::Changed if piece.texts.iter().any(|text| text.starts_with(MASKED)) => Repeat::Masked,
            repeat => repeat,
        })
    }

    /// Keeps what is compared of a new piece.
    pub(super) fn note(&mut self, message: u32, piece: &Piece<'_>) {
        let own = place(message, piece.slot, piece.key);
        self.pieces.insert(own, Version::of(piece));
        match piece.slot {
            Slot::Call => self.note_call(message, piece),
            Slot::Result => self.note_result(message, piece),
            Slot::Text | Slot::Expanded => {
                self.contents.extend(piece.contents().map(|content| combine(&(message, content))));
            }
            Slot::Thought => {}
        }
    }

    fn note_call(&mut self, message: u32, piece: &Piece<'_>) {
        if let Some(input) = piece.input {
            self.pieces.entry(place(message, Slot::Call, input)).or_default();
            if piece.call.is_none() {
                self.unnamed.insert(combine(&(message, input)));
            }
        }
        if let Some(id) = &piece.call {
            self.calls.insert(digest(id), (message, piece.key));
        }
    }

    fn note_result(&mut self, message: u32, piece: &Piece<'_>) {
        self.beside_results.extend(&piece.content);
        let Some(id) = piece.call.as_deref().filter(|_| piece.input.is_none()) else { return };
        let (call, key) = *self.calls.entry(digest(id)).or_insert((message, piece.key));
        if (call, key) != (message, piece.key) {
            // The message with the call may have the result, too.
            let version = Version { contents: None, ..Version::of(piece) };
            self.pieces.insert(place(call, Slot::Result, key), version);
        }
    }
}

impl Version {
    fn of(piece: &Piece<'_>) -> Self {
        let contents: Vec<u64> = piece.contents().collect();
        Self {
            words: if piece.texts.is_empty() { 0 } else { short(piece.words) },
            contents: Some(if contents.is_empty() { 0 } else { short(combine(&contents)) }),
            rest: if piece.unknown == 0 { 0 } else { short(piece.unknown) },
        }
    }

    fn is_empty(self) -> bool {
        self.words == 0 && self.contents.is_none_or(|contents| contents == 0)
    }

    /// Compares a later version, which may have less.
    fn compare(self, piece: &Piece<'_>) -> Repeat {
        let later = Self::of(piece);
        let words = piece.slot == Slot::Result && later.words != 0 && later.words != self.words;
        let contents =
            later.contents != Some(0) && self.contents.is_some() && later.contents != self.contents;
        let rest = later.rest != 0 && later.rest != self.rest;
        if words || contents || rest { Repeat::Changed } else { Repeat::Same }
    }
}

/// Where the first version of a piece is kept.
fn place(message: u32, slot: Slot, key: u64) -> u64 {
    combine(&(message, slot as u8, key))
}

fn combine(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Half of a digest, which is not 0.
fn short(digest: u64) -> u32 {
    u32::try_from(digest & u64::from(u32::MAX)).unwrap_or_default() | 1
}
