//! Conversations: API responses, rows of the database, and requests of a client.

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, Object, time_of_text},
};

/// Messages of one conversation. Real ones have thousands at most; the sandbox's memory must hold the largest
/// conversation several times.
const MAX_MESSAGES: usize = 100_000;

/// One conversation.
#[derive(Debug, Default)]
pub(crate) struct Conversation<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) agent: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    /// Kept in `rest` too.
    pub(crate) session: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) listing: Listing,
    pub(crate) messages: Vec<Message<'a>>,
    /// Indices in the list that hold no message, and why not.
    pub(crate) gaps: Vec<(usize, &'static str)>,
    /// The pipeline's conclusion about the person.
    pub(crate) insight: Option<Insight<'a>>,
    pub(crate) rest: Leftover<'a>,
}

/// Whether a conversation has a list of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Listing {
    /// No, as in a list of conversations.
    #[default]
    Absent,
    /// Something else is in its place.
    Invalid,
    List,
}

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message<'a> {
    /// Its index in the list.
    pub(crate) place: usize,
    pub(crate) id: Option<&'a str>,
    pub(crate) role: Option<&'a str>,
    pub(crate) content: Option<&'a str>,
    /// Its number in the conversation, from 0; kept in `rest` too.
    pub(crate) index: Option<u64>,
    pub(crate) created: Option<i64>,
    pub(crate) rest: Leftover<'a>,
}

/// The result of the third stage of the pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insight<'a> {
    pub(crate) text: &'a str,
    /// 0 to 1.
    pub(crate) confidence: Option<f64>,
    pub(crate) at: Option<i64>,
}

impl<'a> Conversation<'a> {
    /// Reads one element; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        let mut data = None;
        while let Some(key) = json.key()? {
            if key == "conversation_data" {
                data = (json.kind()? != Kind::Null).then(|| json.raw_value()).transpose()?;
            } else {
                it.field(key, json)?;
            }
        }
        json.end()?;
        if let Some(raw) = data {
            it.read_data(raw, json.arena())?;
        }
        Ok(Some(it))
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "messages" => self.read_messages(key, json)?,
            "conversation_id" => self.id = rest.nonempty_text(key, json)?,
            "agent_id" => self.agent = rest.nonempty_text(key, json)?,
            "user_id" => self.user = rest.nonempty_text(key, json)?,
            "session_id" => self.session = super::id_and_text(key, json, rest)?,
            "created_at" => self.created = rest.time(key, json)?,
            "pipeline_result" => {
                let result = rest.keep_and_read(key, json)?;
                // A JSON column may be dumped as text.
                self.insight =
                    result.raw().or(result.text()).and_then(|raw| Insight::read(raw, json.arena()));
            }
            _ => rest.keep(key, json)?,
        }
        Ok(())
    }

    /// Reads the column `conversation_data`: an object with the messages, the messages alone, or either of them as JSON in a
    /// string. If the conversation has other messages, the column is kept unchanged.
    fn read_data(&mut self, raw: &'a str, arena: &'a Arena) -> Result<(), JsonError> {
        let key = "conversation_data";
        if !self.messages.is_empty() {
            self.rest.add_json(key, raw);
            return Ok(());
        }
        let text = if raw.starts_with('"') { Parser::new(raw, arena).string()? } else { raw };
        let json = &mut Parser::new(text, arena);
        match json.kind() {
            Ok(Kind::Array) => self.read_messages(key, json),
            Ok(Kind::Object) => self.read_data_object(key, json),
            _ => {
                self.rest.add_json(key, raw);
                self.listing = Listing::Invalid;
                Ok(())
            }
        }
    }

    fn read_data_object(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let outer = std::mem::take(&mut self.rest);
        json.enter_object()?;
        while let Some(inner) = json.key()? {
            if inner == "messages" {
                self.read_messages(inner, json)?;
            } else {
                self.rest.keep(inner, json)?;
            }
        }
        let kept = std::mem::replace(&mut self.rest, outer).into_json();
        if let Some(kept) = kept {
            self.rest.add_json(key, &kept);
        }
        Ok(())
    }

    fn read_messages(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.messages.clear();
        self.gaps.clear();
        let list = matches!(json.kind()?, Kind::Array | Kind::Null);
        self.listing = if list { Listing::List } else { Listing::Invalid };
        if !self.rest.array(key, json)? {
            return Ok(());
        }
        let mut place = 0;
        while json.item()? {
            if json.null()? {
                self.gaps.push((place, "it is null"));
            } else if let Some(message) = Message::read(place, json)? {
                self.messages.push(message);
            } else {
                self.gaps.push((place, "it is not an object"));
            }
            place += 1;
            if place > MAX_MESSAGES {
                let problem = "more messages than the limit";
                return Err(JsonError { offset: json.offset(), problem });
            }
        }
        Ok(())
    }
}

impl<'a> Message<'a> {
    /// Reads one item; none if it is no object.
    fn read(place: usize, json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self { place, ..Self::default() };
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "message_id" => it.id = rest.nonempty_text(key, json)?,
                "role" => it.role = rest.text(key, json)?,
                "content" => it.content = rest.text(key, json)?,
                "message_index" => it.index = rest.keep_and_read(key, json)?.as_u64(),
                "created_at" => it.created = rest.time(key, json)?,
                _ => rest.keep(key, json)?,
            }
        }
        Ok(Some(it))
    }
}

impl<'a> Insight<'a> {
    /// Reads the JSON text of a pipeline's result.
    fn read(raw: &'a str, arena: &'a Arena) -> Option<Self> {
        let result = Object::parse(raw, arena).object("mind_result", arena);
        let confidence = result.get("confidence_score").raw().and_then(|raw| raw.parse().ok());
        let at =
            result.object("metadata", arena).text("analyzed_at").and_then(time_of_text).map(|(at, _)| at);
        let text = result.text("insights").filter(|text| !text.trim().is_empty())?;
        Some(Self { text, confidence: confidence.filter(|score| (0.0..=1.0).contains(score)), at })
    }
}

/// The API's response to saving a conversation.
#[derive(Debug, Default)]
pub(crate) struct SaveResponse<'a> {
    pub(crate) conversation: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) created: Option<i64>,
    /// How many messages were saved.
    pub(crate) count: Option<u64>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> SaveResponse<'a> {
    /// Reads one element; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "conversation_id" => it.conversation = rest.nonempty_text(key, json)?,
                "session_id" => it.session = rest.nonempty_text(key, json)?,
                "created_at" => it.created = rest.time(key, json)?,
                "message_count" => it.count = rest.keep_and_read(key, json)?.as_u64(),
                _ => rest.keep(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }
}
