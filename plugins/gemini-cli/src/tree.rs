//! Gives each piece of a message that the file did not have before its id and its parent.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::{
    digest::digest,
    record::{Piece, Record, Slot},
};

mod emitted;

use emitted::EmittedPieces;
pub(crate) use emitted::Repeat;

/// Messages of one file. Real ones have some thousands, and the id of each is in memory.
pub(crate) const MAX_MESSAGES: usize = 150_000;
/// Bytes of their ids.
const MAX_ID_BYTES: usize = 12 * 1024 * 1024;
/// Digests of what they hold.
const MAX_EMITTED: usize = 500_000;

/// The place of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    /// Whether the id is that of the provider.
    pub(crate) own_id: bool,
    /// The number of the message in the file.
    pub(crate) number: u32,
}

/// What becomes of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    New(Place),
    Repeated(Repeat),
}

/// The messages of one file so far.
#[derive(Debug, Default)]
pub(crate) struct MessageTree {
    /// The messages that were not taken back, by the digest of their id.
    known: BTreeMap<u64, Known>,
    /// Those with which the program goes on.
    order: Vec<Listed>,
    /// The ids of all pieces.
    pieces: Vec<Box<str>>,
    id_bytes: usize,
    /// The piece that the next one follows.
    head: Option<u32>,
    /// How often each id was wanted, by its digest.
    ids: BTreeMap<u64, u32>,
    emitted: EmittedPieces,
    /// The messages of the checkpoint that is being read.
    checkpoint: Option<Vec<u64>>,
    /// How many messages there were, with those that came again after they were taken back.
    rounds: u32,
}

/// A message in the order of the program.
#[derive(Debug)]
struct Listed {
    key: u64,
    /// The piece that is followed once the message is taken back.
    before: Option<u32>,
}

/// What is known of a message.
#[derive(Debug, Default)]
struct Known {
    round: u32,
    thoughts: u32,
    last: Option<u32>,
    answer: Option<Answer>,
    /// Whether that is neither a text nor a call.
    provisional: bool,
    /// Whether the program goes on with it.
    listed: bool,
}

/// The number of the piece to which the tokens of a message belong: its text or a call, or else its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) own: u32,
    /// That of the piece to which they belonged before.
    pub(crate) before: Option<u32>,
}

impl MessageTree {
    /// Whether no more messages are read.
    pub(crate) fn is_full(&self) -> bool {
        self.pieces.len() >= MAX_MESSAGES
            || self.known.len() >= MAX_MESSAGES
            || self.order.len() >= MAX_MESSAGES
            || self.id_bytes >= MAX_ID_BYTES
            || self.emitted.len() >= MAX_EMITTED
    }

    /// What becomes of the pieces of a message. Of one that is new in part, the rest is removed.
    pub(crate) fn add(&mut self, record: &mut Record<'_>) -> Vec<Outcome> {
        let key = digest(&record.id);
        let known = self.known.entry(key).or_insert_with(|| {
            self.rounds = self.rounds.saturating_add(1);
            Known { round: self.rounds, ..Known::default() }
        });
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.push(key);
        } else if !known.listed {
            known.listed = true;
            self.order.push(Listed { key, before: self.head });
        }
        let mut pieces = std::mem::take(&mut record.pieces);
        let outcomes = pieces.iter_mut().map(|piece| self.place(key, record, piece)).collect();
        record.pieces = pieces;
        outcomes
    }

    /// The piece of a message to which its tokens belong.
    pub(crate) fn answer(&self, record: &Record<'_>) -> Option<Answer> {
        self.known.get(&digest(&record.id)).and_then(|known| known.answer)
    }

    /// The messages that are added until [`MessageTree::end_checkpoint`] take the place of those before.
    pub(crate) fn begin_checkpoint(&mut self) {
        self.checkpoint = Some(Vec::new());
    }

    /// Goes on with the messages of the checkpoint, in its order.
    pub(crate) fn end_checkpoint(&mut self) {
        for listed in self.order.drain(..) {
            if let Some(known) = self.known.get_mut(&listed.key) {
                known.listed = false;
            }
        }
        let mut before = None;
        for key in self.checkpoint.take().unwrap_or_default() {
            if let Some(known) = self.known.get_mut(&key).filter(|known| !known.listed) {
                known.listed = true;
                self.order.push(Listed { key, before });
                before = known.last.or(before);
            }
        }
    }

    /// Takes a message and everything behind it back. Returns false if there is no such message; then nothing is left.
    pub(crate) fn rewind(&mut self, id: &str) -> bool {
        let key = digest(id);
        if !self.known.get(&key).is_some_and(|known| known.listed) {
            self.known.clear();
            self.order.clear();
            self.head = None;
            return false;
        }
        while let Some(listed) = self.order.pop() {
            self.known.remove(&listed.key);
            self.head = listed.before;
            if listed.key == key {
                break;
            }
        }
        true
    }

    /// The id of the last message that was not taken back.
    pub(crate) fn into_last(self) -> Option<String> {
        self.id_of(self.head)
    }

    fn id_of(&self, piece: Option<u32>) -> Option<String> {
        self.pieces.get(piece? as usize).map(ToString::to_string)
    }

    fn place(&mut self, key: u64, record: &Record<'_>, piece: &mut Piece<'_>) -> Outcome {
        let round = self.known.get(&key).map_or(0, |known| known.round);
        if let Some(repeat) = self.emitted.repeats(round, piece) {
            return Outcome::Repeated(repeat);
        }
        let wanted = self.wanted_id(key, record, piece);
        let (id, numbered) = self.unique(wanted);
        let own_id = record.own_id && !numbered && id == record.id;
        let number = u32::try_from(self.pieces.len()).unwrap_or(u32::MAX);
        let place = Place { id, parent: self.id_of(self.head), own_id, number };
        self.id_bytes += place.id.len();
        self.pieces.push(place.id.as_str().into());
        self.head = Some(number);
        self.emitted.note(round, piece);
        self.note(key, piece, number);
        Outcome::New(place)
    }

    fn note(&mut self, key: u64, piece: &Piece<'_>, number: u32) {
        let Some(known) = self.known.get_mut(&key) else { return };
        known.last = Some(number);
        known.thoughts += u32::from(piece.slot == Slot::Thought);
        let spoken = matches!(piece.slot, Slot::Text | Slot::Call);
        if known.answer.is_none() || (spoken && known.provisional) {
            known.answer = Some(Answer { own: number, before: known.answer.map(|answer| answer.own) });
            known.provisional = !spoken;
        }
    }

    fn wanted_id(&self, key: u64, record: &Record<'_>, piece: &Piece<'_>) -> String {
        let id = &record.id;
        let call = piece.call.as_deref().unwrap_or("1");
        match piece.slot {
            Slot::Text => id.to_string(),
            Slot::Expanded => format!("{id}:expanded"),
            Slot::Thought => {
                let thoughts = self.known.get(&key).map_or(0, |known| known.thoughts);
                format!("{id}:thought:{}", thoughts + 1)
            }
            Slot::Call => format!("{id}:call:{call}"),
            Slot::Result => format!("{id}:result:{call}"),
        }
    }

    /// An id that no message has yet: the second with one id gets `:2`.
    fn unique(&mut self, wanted: String) -> (String, bool) {
        let key = digest(&wanted);
        let Some(mut count) = self.ids.get(&key).copied() else {
            self.ids.insert(key, 1);
            return (wanted, false);
        };
        loop {
            count += 1;
            let numbered = format!("{wanted}:{count}");
            if let Entry::Vacant(own) = self.ids.entry(digest(&numbered)) {
                own.insert(1);
                self.ids.insert(key, count);
                return (numbered, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use satchel_importer::Arena;

    use super::*;
    use satchel_importer::Fields;

    /// The ids and parents of the new messages of each step; `back ID` takes messages back.
    fn steps(steps: &[&str]) -> Vec<String> {
        let mut tree = MessageTree::default();
        let mut found = Vec::new();
        let arena = Arena::new();
        for step in steps {
            if let Some(id) = step.strip_prefix("back ") {
                found.push(format!("back: {}", tree.rewind(id)));
                continue;
            }
            let raw = arena.alloc_str(step);
            let fields = Fields::parse(raw, &arena).expect("it is JSON");
            let mut record = Record::read(fields, raw, false).expect("it is a message");
            for outcome in tree.add(&mut record) {
                let Outcome::New(place) = outcome else { continue };
                found.push(format!("{} < {}", place.parent.as_deref().unwrap_or("-"), place.id));
            }
        }
        found.push(format!("last: {}", tree.into_last().as_deref().unwrap_or("-")));
        found
    }

    const ONE: &str = r#"{"id":"a","type":"user","content":"one"}"#;
    const TWO: &str = r#"{"id":"b","type":"gemini","content":"two"}"#;
    const MORE: &str =
        r#"{"id":"b","type":"gemini","content":"two","toolCalls":[{"id":"c","name":"ls","result":"x"}]}"#;

    #[test]
    fn a_message_that_grows_adds_messages_at_the_end() {
        let info = r#"{"id":"i","type":"info","content":"news"}"#;
        let expected =
            ["- < a", "a < b", "b < i", "i < b:call:c", "b:call:c < b:result:c", "last: b:result:c"];
        assert_eq!(steps(&[ONE, TWO, TWO, info, MORE, MORE]), expected);
    }

    #[test]
    fn a_file_with_long_ids_is_full_earlier() {
        let mut tree = MessageTree::default();
        let arena = Arena::new();
        for number in 0.. {
            let raw = arena.alloc_str(&format!(
                r#"{{"id":"{number:0250}","type":"gemini","content":"","toolCalls":[{{"id":"{number:0250}"}}]}}"#
            ));
            if tree.is_full() {
                break;
            }
            let fields = Fields::parse(raw, &arena).expect("it is JSON");
            tree.add(&mut Record::read(fields, raw, false).expect("it is a message"));
        }
        assert!((MAX_ID_BYTES..MAX_ID_BYTES + 512).contains(&tree.id_bytes) && tree.pieces.len() < 30_000);
    }

    #[test]
    fn a_message_that_was_taken_back_may_come_again() {
        let expected =
            ["- < a", "a < b", "back: true", "a < b:2", "back: true", "back: false", "- < a:2", "last: a:2"];
        assert_eq!(steps(&[ONE, TWO, "back b", TWO, "back a", "back a", ONE]), expected);
    }

    #[test]
    fn a_message_without_words_can_be_gone_back_to() {
        let empty = r#"{"id":"e","type":"gemini","content":""}"#;
        let expected = ["- < a", "a < b", "back: true", "last: a"];
        assert_eq!(steps(&[ONE, empty, TWO, "back e"]), expected);
    }

    #[test]
    fn results_that_are_written_again_are_recognised_by_their_call() {
        let result = |id: &str, call: &str, text: &str| {
            format!(
                r#"{{"id":"{id}","type":"user","content":[{{"functionResponse":{{"id":"{call}","response":{{"output":"{text}"}}}}}}]}}"#
            )
        };
        let expected =
            ["- < b", "b < b:call:c", "b:call:c < b:result:c", "b:result:c < v:result:d", "last: v:result:d"];
        assert_eq!(steps(&[MORE, &result("u", "c", "masked"), &result("v", "d", "y")]), expected);
    }
}
