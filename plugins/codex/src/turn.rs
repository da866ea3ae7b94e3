//! Finds the events of a turn that repeat its items.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use satchel_importer::Role;

use crate::{
    injected,
    map::{Origin, UnplacedMessage},
};

/// Messages of a turn; real ones have hundreds.
const MAX_MESSAGES: usize = 20_000;
/// Digests of the texts of a turn.
const MAX_DIGESTS: usize = 500_000;

/// The tag of a plan in an answer. It is an event of its own, and the event of the answer leaves it out.
const PLAN: &str = "proposed_plan";
/// The tag of what an answer used of the memories, which its event leaves out.
const CITATION: &str = "oai-mem-citation";

/// The items of a turn: a message of the person, and what follows up to the next one.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Digest of its own id, if it is known.
    id: Option<u64>,
    messages: usize,
    /// How many digests are in memory.
    digests: usize,
    /// Whether there is an answer or a result of a tool.
    answered: bool,
    /// How many items have a text, by its digest.
    items: BTreeMap<u64, u32>,
    /// How many events of a type repeated an item of the person.
    taken: BTreeMap<(u64, u64), u32>,
}

/// The texts of an event.
#[derive(Debug)]
pub(crate) struct Event {
    /// Digest of its type.
    kind: u64,
    user: bool,
    /// Digest of the whole text.
    whole: u64,
    /// Digests of its texts, or of its files if it has none.
    parts: Box<[u64]>,
}

impl Turn {
    /// Whether a line with the id of a turn ends this one. Before an answer it may stand between the person's message and its event.
    pub(crate) fn ends_at(&self, id: &str) -> bool {
        self.answered && self.id.is_some_and(|own| own != digest(id))
    }

    pub(crate) fn set_id(&mut self, id: &str) {
        self.id = Some(digest(id));
    }

    /// The turn behind this one. It has the same id until a line gives another.
    pub(crate) fn next(self) -> Self {
        Self { id: self.id, ..Self::default() }
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.answered
    }

    /// Whether it takes so much memory that it must be compared in pieces.
    pub(crate) fn is_full(&self) -> bool {
        self.messages >= MAX_MESSAGES || self.digests >= MAX_DIGESTS
    }

    /// Adds a message, and if it is an item, its texts and files.
    pub(crate) fn add(&mut self, unplaced: &UnplacedMessage<'_>) {
        self.answered |= matches!(unplaced.role, Role::Assistant | Role::Tool);
        self.messages += 1;
        self.digests += unplaced.texts.len() + unplaced.files.len();
        if unplaced.origin == Origin::Item {
            for digest in item_digests(unplaced) {
                self.digests += 1;
                *self.items.entry(digest).or_default() += 1;
            }
        }
    }

    /// Whether an item has the text of the event. The person may write the same twice, so each item is repeated once by each type.
    pub(crate) fn repeats(&self, event: &Event) -> bool {
        if !self.items_have(event) {
            return false;
        }
        let items = self.items.get(&event.whole).copied().unwrap_or(1);
        !event.user || self.taken.get(&(event.kind, event.whole)).is_none_or(|taken| *taken < items)
    }

    /// Notes that the event repeats an item.
    pub(crate) fn take(&mut self, event: &Event) {
        if event.user {
            *self.taken.entry((event.kind, event.whole)).or_default() += 1;
        }
    }

    /// Like [`Turn::repeats`], and notes it.
    pub(crate) fn take_if_repeats(&mut self, event: &Event) -> bool {
        let repeats = self.repeats(event);
        if repeats {
            self.take(event);
        }
        repeats
    }

    /// Whether items have the whole text, or each of its parts.
    fn items_have(&self, event: &Event) -> bool {
        let known = |digest: &u64| self.items.contains_key(digest);
        known(&event.whole) || (!event.parts.is_empty() && event.parts.iter().all(known))
    }
}

impl Event {
    pub(crate) fn new(unplaced: &UnplacedMessage<'_>) -> Self {
        let texts = texts(unplaced);
        let parts: Vec<u64> = match texts.as_slice() {
            [] => unplaced.files.clone(),
            texts => texts.iter().map(|text| text_digest(unplaced, text)).collect(),
        };
        let whole = match (texts.as_slice(), parts.as_slice()) {
            ([], [file]) => *file,
            ([], _) => digest(""),
            ([_], [text]) => *text,
            (texts, _) => text_digest(unplaced, &texts.concat()),
        };
        let (kind, user) = (digest(unplaced.kind), unplaced.begins_turn());
        Self { kind, user, whole, parts: parts.into() }
    }
}

/// Digests of what events may have of an item: its texts and files, the whole text with and without line breaks between the parts, the
/// text without the blocks that events leave out, and each plan.
fn item_digests(unplaced: &UnplacedMessage<'_>) -> BTreeSet<u64> {
    let texts = texts(unplaced);
    let of = |text: &str| text_digest(unplaced, text);
    let mut found: BTreeSet<u64> = unplaced.files.iter().copied().collect();
    if let [text] = texts.as_slice()
        && !text.contains('<')
    {
        // All its forms are the same.
        found.insert(of(text));
    } else if !texts.is_empty() {
        let whole = texts.concat();
        found.extend(texts.iter().map(|text| of(text)));
        found.extend([of(&whole), of(&texts.join("\n")), of(&visible(&whole))]);
        found.extend(plans(&whole).into_iter().map(of));
    }
    found
}

/// The texts of a message without those that mark the place of an image.
fn texts<'t>(unplaced: &'t UnplacedMessage<'_>) -> Vec<&'t str> {
    let texts = unplaced.texts.iter().map(|text| &**text);
    texts.filter(|text| !injected::is_image_marker(text)).collect()
}

/// The text of an answer as its event has it: without citations, even one without an end, and without plans and their lines.
fn visible(text: &str) -> String {
    let mut cited = String::new();
    let mut rest = text;
    while let Some((before, _, after)) = block(rest, CITATION) {
        cited.push_str(before);
        rest = after.unwrap_or_default();
    }
    cited.push_str(rest);
    let mut found = String::new();
    let mut rest = cited.as_str();
    while let Some((before, _, Some(after))) = block(rest, PLAN) {
        found.push_str(before);
        rest = after.strip_prefix('\n').unwrap_or(after);
    }
    found.push_str(rest);
    found
}

/// What is inside each plan of an answer.
fn plans(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, inside, Some(after))) = block(rest, PLAN) {
        found.push(inside);
        rest = after;
    }
    found
}

/// The text before the first block with this tag, inside it, and after it; nothing is after it if it has no end.
fn block<'t>(text: &'t str, tag: &str) -> Option<(&'t str, &'t str, Option<&'t str>)> {
    let (before, rest) = text.split_once(&format!("<{tag}>"))?;
    Some(match rest.split_once(&format!("</{tag}>")) {
        Some((inside, after)) => (before, inside, Some(after)),
        None => (before, rest, None),
    })
}

/// Both sides may say the same words, and a thought may be said.
fn text_digest(unplaced: &UnplacedMessage<'_>, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (unplaced.role as u8, unplaced.message.is_thought, text.trim()).hash(&mut hasher);
    hasher.finish()
}

/// A digest of a text, for lookups within one file.
pub(crate) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
