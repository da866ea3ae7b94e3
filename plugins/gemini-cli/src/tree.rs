//! Decides for each piece of a message whether the file had it before, and if not, gives it its id and its parent.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use crate::{
    digest::digest,
    record::{Piece, Record, Slot},
};

/// Messages of one file. Real ones have some thousands, and the id of each is in memory.
pub(crate) const MAX_MESSAGES: usize = 400_000;

/// The place of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    /// Whether the id is that of the provider.
    pub(crate) own_id: bool,
    /// The number of the message in the file.
    pub(crate) number: usize,
}

/// The messages of one file so far.
#[derive(Debug, Default)]
pub(crate) struct MessageTree {
    /// The messages that were not taken back, by the digest of their id.
    known: BTreeMap<u64, Known>,
    /// Their digests in the order in which they came, each with the length of `chain` before it.
    order: Vec<(u64, usize)>,
    /// The ids of the pieces that were not taken back.
    chain: Vec<String>,
    /// How often each id was wanted, by its digest.
    ids: BTreeMap<u64, u32>,
    /// Whether the last call of each id has a result.
    calls: BTreeMap<u64, bool>,
    /// Texts and files beside results.
    beside_results: BTreeSet<u64>,
    count: usize,
}

/// What is known of a message.
#[derive(Debug, Default)]
struct Known {
    /// The slot of each piece and its key.
    pieces: BTreeSet<(u8, u64)>,
    /// Digests of the inputs of calls without an id.
    unnamed: BTreeSet<u64>,
    thoughts: usize,
    answer: Option<Answer>,
    /// Whether that is neither a text nor a call.
    provisional: bool,
}

/// The number of the piece to which the tokens of a message belong: its text or a call, or else its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) own: usize,
    /// That of the piece to which they belonged before.
    pub(crate) before: Option<usize>,
}

impl MessageTree {
    /// Whether no more messages are read.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= MAX_MESSAGES || self.order.len() >= MAX_MESSAGES
    }

    /// The places of the pieces of a message: none for those that the file had before.
    pub(crate) fn add(&mut self, record: &Record<'_>) -> Vec<Option<Place>> {
        let key = digest(&record.id);
        if let Entry::Vacant(own) = self.known.entry(key) {
            own.insert(Known::default());
            self.order.push((key, self.chain.len()));
        }
        record.pieces.iter().map(|piece| self.place(key, record, piece)).collect()
    }

    /// The piece of a message to which its tokens belong.
    pub(crate) fn answer(&self, record: &Record<'_>) -> Option<Answer> {
        self.known.get(&digest(&record.id)).and_then(|known| known.answer)
    }

    /// Takes a message and everything behind it back. Returns false if there is no such message; then nothing is left.
    pub(crate) fn rewind(&mut self, id: &str) -> bool {
        let key = digest(id);
        let found = self.known.contains_key(&key);
        while let Some((own, length)) = self.order.pop() {
            self.known.remove(&own);
            self.chain.truncate(length);
            if found && own == key {
                break;
            }
        }
        found
    }

    /// The id of the last message that was not taken back.
    pub(crate) fn into_last(mut self) -> Option<String> {
        self.chain.pop()
    }

    fn place(&mut self, key: u64, record: &Record<'_>, piece: &Piece<'_>) -> Option<Place> {
        if self.repeats(key, piece) || self.names_call(key, piece) {
            return None;
        }
        let wanted = self.wanted_id(key, record, piece);
        let (id, numbered) = self.unique(wanted);
        let own_id = record.own_id && !numbered && id == record.id;
        let place = Place { id, parent: self.chain.last().cloned(), own_id, number: self.count };
        self.chain.push(place.id.clone());
        self.count += 1;
        self.note(key, piece, place.number);
        Some(place)
    }

    fn repeats(&self, key: u64, piece: &Piece<'_>) -> bool {
        let has = |slot: Slot, piece: u64| {
            self.known.get(&key).is_some_and(|known| known.pieces.contains(&(slot as u8, piece)))
        };
        let known = has(piece.slot, piece.key);
        match piece.slot {
            Slot::Text | Slot::Expanded => {
                let repeated = |content: &u64| self.beside_results.contains(content);
                let beside = piece.beside_result && !piece.content.is_empty();
                // A checkpoint has the text as the model got it in the place of the one that the person wrote.
                known || has(Slot::Expanded, piece.key) || (beside && piece.content.iter().all(repeated))
            }
            Slot::Thought => known,
            Slot::Call => {
                known || piece.input.is_some_and(|input| piece.call.is_none() && has(Slot::Call, input))
            }
            Slot::Result => known || self.has_result(piece),
        }
    }

    /// Whether the message had this call before, without its id.
    fn names_call(&mut self, key: u64, piece: &Piece<'_>) -> bool {
        let Some((known, input)) = self.known.get_mut(&key).zip(piece.input) else { return false };
        let names = piece.call.is_some() && known.unnamed.remove(&input);
        if names {
            known.pieces.insert((Slot::Call as u8, piece.key));
            self.calls.insert(piece.key, false);
        }
        names
    }

    /// Whether the last call of this id has a result. Newer versions write it once more, in the person's name.
    fn has_result(&self, piece: &Piece<'_>) -> bool {
        piece.call.is_some() && self.calls.get(&piece.key).is_some_and(|result| *result)
    }

    fn note(&mut self, key: u64, piece: &Piece<'_>, number: usize) {
        let Some(known) = self.known.get_mut(&key) else { return };
        known.pieces.insert((piece.slot as u8, piece.key));
        match piece.slot {
            Slot::Thought => known.thoughts += 1,
            Slot::Call => {
                known.pieces.extend(piece.input.map(|input| (Slot::Call as u8, input)));
                known.unnamed.extend(piece.input.filter(|_| piece.call.is_none()));
                self.calls.insert(piece.key, false);
            }
            Slot::Result => {
                self.calls.insert(piece.key, true);
                self.beside_results.extend(&piece.content);
            }
            Slot::Text | Slot::Expanded => {}
        }
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
    use crate::fields::Fields;

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
            let record = Record::read(fields, raw, false).expect("it is a message");
            for place in tree.add(&record).into_iter().flatten() {
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
