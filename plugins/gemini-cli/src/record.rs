//! Takes one message of a session apart. Each thought, text, call and result becomes a message of its own, so that none of them changes
//! when the program writes the message again with more in it.

use std::{borrow::Cow, mem};

use satchel_importer::{
    Arena, Content, Fields, ImportError, Leftover, Message, Role, address::unsigned_json, json::time_of_text,
    natural_key,
};

use crate::{
    digest::digest_of_words,
    fields::{KEPT, digest_of_unknown},
    injected,
    parts::{Parts, Remaining},
    tree::Place,
};

mod answer;

/// What a piece of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Text,
    /// A text of the person with the files that it names, as the model got it.
    Expanded,
    Thought,
    Call,
    Result,
}

/// A piece of a message.
pub(crate) struct Piece<'a> {
    pub(crate) slot: Slot,
    /// Digest of what it says, or of the id of its call.
    pub(crate) key: u64,
    /// Digest of the name and the input of a call, also of a result in its list.
    pub(crate) input: Option<u64>,
    /// The id of the call, of a call or a result.
    pub(crate) call: Option<Cow<'a, str>>,
    /// Digests of its texts and files, if they may repeat those of a result.
    pub(crate) content: Vec<u64>,
    /// Whether they may.
    pub(crate) beside_result: bool,
    /// Digest of what a tool answered.
    pub(crate) words: u64,
    /// Digests of the attachments.
    files: Vec<u64>,
    /// What is left of its parts, and the name of the field that they are in.
    remaining: Vec<Remaining<'a>>,
    field: &'static str,
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) message: Message<'a>,
    pub(crate) rest: Leftover<'a>,
    /// Digest of the fields in it that are not known and hold a text; 0 if there are none.
    pub(crate) unknown: u64,
    /// Whether the program wrote it for the model.
    pub(crate) hidden: bool,
}

/// A message of a session.
pub(crate) struct Record<'a> {
    /// Its own id, or else a key of its content.
    pub(crate) id: Cow<'a, str>,
    pub(crate) own_id: bool,
    pub(crate) kind: &'a str,
    pub(crate) time: Option<i64>,
    pub(crate) model: Option<&'a str>,
    /// The tokens as JSON text, and those of the answer.
    pub(crate) tokens: Option<(&'a str, Option<u64>)>,
    pub(crate) pieces: Vec<Piece<'a>>,
    /// The fields that belong to no piece.
    pub(crate) rest: Fields<'a>,
    /// Its type, if that is not known.
    pub(crate) unknown_type: bool,
    /// Whether the bytes of a file cannot be decoded.
    pub(crate) unreadable: bool,
}

/// The types of messages.
pub(crate) const KINDS: [&str; 5] = ["user", "gemini", "info", "error", "warning"];
/// What the program calls a message without a type.
const UNTYPED: &str = "untyped";

impl<'a> Record<'a> {
    /// Takes the fields of a message apart; `raw` is its JSON text.
    pub(crate) fn read(mut fields: Fields<'a>, raw: &str, decode: bool) -> Result<Self, ImportError> {
        let arena = fields.arena();
        let kind = fields.get("type").nonempty_text().unwrap_or(UNTYPED);
        let own_id = fields.take_id("id");
        let stamp = fields.get("timestamp").text();
        let id = own_id.map_or_else(|| natural_key(&[Some(kind), stamp, Some(raw)]).into(), Cow::Borrowed);
        let unknown_type = !KINDS.contains(&kind);
        let answers = kind == "gemini" || unknown_type;
        let mut record = Self {
            id,
            own_id: own_id.is_some(),
            kind,
            time: take_time(&mut fields),
            model: if answers { fields.take_text("model") } else { None },
            tokens: take_tokens(&mut fields, arena)?,
            pieces: Vec::new(),
            rest: fields,
            unknown_type,
            unreadable: false,
        };
        if matches!(kind, "user" | "gemini") {
            record.rest.take("type");
        }
        record.read_pieces(decode)?;
        Ok(record)
    }

    fn read_pieces(&mut self, decode: bool) -> Result<(), ImportError> {
        let arena = self.rest.arena();
        let content = Parts::read(self.rest.take("content"), arena, decode)?;
        self.unreadable |= content.unreadable;
        match self.kind {
            "user" => self.add_prompt(content, decode)?,
            "gemini" => self.add_answer(content, decode)?,
            _ => self.add_answer(content, decode)?,
        }
        // What it says about itself has a place, even if there is nothing else in it.
        let has_rest = self.tokens.is_some() || has_prose(&self.rest);
        if self.pieces.is_empty() && has_rest {
            let role = if self.kind == "user" { Role::User } else { self.answering_role() };
            self.pieces.push(Piece::new(Slot::Text, 0, self.message(role)));
        }
        Ok(())
    }

    /// A message of the person, or the results of calls in their name.
    fn add_prompt(&mut self, mut content: Parts<'a>, decode: bool) -> Result<(), ImportError> {
        let arena = self.rest.arena();
        let answers = mem::take(&mut content.responses);
        let beside_result = !answers.is_empty();
        for answer in answers {
            let piece = self.result(answer);
            self.pieces.push(piece);
        }
        self.add_calls(mem::take(&mut content.calls));
        // A part that is marked as a thought is text here.
        content.texts.extend(mem::take(&mut content.thoughts).into_iter().map(Cow::Borrowed));
        let shown = Parts::read(self.rest.get("displayContent"), arena, decode)?;
        if shown.is_text() {
            let whole = digest_of_words(content.words());
            self.rest.take("displayContent");
            if digest_of_words(shown.words()) != whole {
                let mut expanded = Piece::new(Slot::Expanded, whole, self.message(Role::System));
                expanded.texts = mem::replace(&mut content.texts, shown.texts);
                expanded.hidden = true;
                self.add_content(content, Role::User, Slot::Text);
                self.pieces.extend(Some(expanded).filter(|expanded| !expanded.texts.is_empty()));
                return Ok(());
            }
        }
        let injected = !content.texts.is_empty() && content.words().all(injected::is_injected);
        let role = if injected { Role::System } else { Role::User };
        self.add_content(content, role, Slot::Text);
        if let Some(piece) = self.pieces.last_mut().filter(|piece| piece.slot == Slot::Text) {
            piece.hidden = injected;
            piece.beside_result = beside_result;
        }
        Ok(())
    }

    /// The texts, files and unknown parts of a content, as one piece.
    fn add_content(&mut self, content: Parts<'a>, role: Role, slot: Slot) {
        if content.is_empty() {
            return;
        }
        let key = digest_of_words(content.words());
        let mut piece = Piece::new(slot, key, self.message(role));
        piece.content.extend(&content.files);
        piece.content.extend(content.remaining.iter().map(Remaining::digest));
        // Bytes that a tool read are sent to the model again, without a text.
        piece.beside_result = content.texts.is_empty() && !content.files.is_empty();
        match content.texts.as_slice() {
            [_] => piece.content.push(key),
            texts => piece.content.extend(texts.iter().map(|text| digest_of_words([&**text]))),
        }
        piece.texts = content.texts;
        piece.message.attachments = content.attachments;
        (piece.files, piece.remaining) = (content.files, content.remaining);
        self.pieces.push(piece);
    }

    /// The role of a message that is not the person's.
    fn answering_role(&self) -> Role {
        let answers =
            self.kind == "gemini" || (self.unknown_type && (self.model.is_some() || self.tokens.is_some()));
        if answers { Role::Assistant } else { Role::System }
    }

    fn message(&self, role: Role) -> Message<'a> {
        let model = self.model.filter(|_| role == Role::Assistant);
        Message { role, created_at: self.time, model: model.map(Cow::Borrowed), ..Message::default() }
    }
}

impl<'a> Piece<'a> {
    fn new(slot: Slot, key: u64, message: Message<'a>) -> Self {
        Self {
            slot,
            key,
            input: None,
            call: None,
            content: Vec::new(),
            beside_result: false,
            words: 0,
            files: Vec::new(),
            remaining: Vec::new(),
            field: "content",
            texts: Vec::new(),
            message,
            rest: Leftover::default(),
            unknown: 0,
            hidden: false,
        }
    }

    /// Whether the person wrote it.
    pub(crate) fn is_prompt(&self) -> bool {
        self.message.role == Role::User && self.slot == Slot::Text
    }

    /// Keeps fields that belong to no piece.
    pub(crate) fn keep(&mut self, fields: &Fields<'a>) {
        fields.add_to(&mut self.rest, &KEPT);
        if self.rest.unread().is_some() {
            self.unknown ^= digest_of_unknown(fields);
        }
    }

    /// Digests of its files and of what is left of its parts.
    pub(crate) fn contents(&self) -> impl Iterator<Item = u64> {
        self.files.iter().copied().chain(self.remaining.iter().map(Remaining::digest))
    }

    /// Keeps only the files and parts whose digests are new.
    pub(crate) fn keep_new(&mut self, is_new: impl Fn(u64) -> bool) {
        self.texts.clear();
        self.remaining.retain(|part| is_new(part.digest()));
        let attachments = mem::take(&mut self.message.attachments);
        let files = attachments.into_iter().zip(mem::take(&mut self.files));
        (self.message.attachments, self.files) = files.filter(|(_, file)| is_new(*file)).unzip();
    }

    /// The message at its place.
    pub(crate) fn finish(mut self, place: &'a Place) -> Message<'a> {
        if self.hidden {
            self.rest.add_bool("hidden", true);
        }
        Remaining::add_to(&self.remaining, &mut self.rest, self.field);
        let unread = self.rest.unread().map(Cow::Borrowed);
        Message {
            id: Cow::Borrowed(&place.id),
            provider_message_id: place.own_id.then_some(Cow::Borrowed(&*place.id)),
            content: content(self.texts, self.message.is_thought),
            parent: place.parent.as_deref().map(Cow::Borrowed),
            raw_metadata: self.rest.into_json().map(unsigned_json),
            unread,
            ..self.message
        }
    }
}

/// The texts as parts; the subject of a thought is a paragraph of its own.
fn content(texts: Vec<Cow<'_, str>>, thought: bool) -> Option<Content<'_>> {
    if thought && texts.len() > 1 {
        return Some(Content::Text(texts.join("\n\n").into()));
    }
    Content::of_texts(texts)
}

/// Takes the time out of the fields; one that is not understood in full is left there.
fn take_time(fields: &mut Fields<'_>) -> Option<i64> {
    let (time, note) = fields.get("timestamp").text().and_then(time_of_text)?;
    if note.is_none() {
        fields.take("timestamp");
    }
    Some(time)
}

fn take_tokens<'a>(
    fields: &mut Fields<'a>,
    arena: &'a Arena,
) -> Result<Option<(&'a str, Option<u64>)>, ImportError> {
    let Some(raw) = fields.get("tokens").raw().filter(|raw| raw.starts_with('{') && *raw != "{}") else {
        return Ok(None);
    };
    fields.take("tokens");
    Ok(Some((raw, Fields::parse(raw, arena)?.get("output").as_u64())))
}

/// Whether a field that is not known holds a text.
fn has_prose(fields: &Fields<'_>) -> bool {
    let mut rest = Leftover::default();
    fields.add_to(&mut rest, &KEPT);
    rest.unread().is_some()
}
