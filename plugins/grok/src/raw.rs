//! The export's own structures. Any field may be absent, null or of another type.
//!
//! Fields beside the wrappers `conversation` and `response` are read as if they were inside them.

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, Object, Value},
};

mod response;

pub(crate) use response::Response;

/// Responses of one conversation. Real ones have thousands at most; the largest conversation must fit into the memory of
/// the sandbox several times.
const MAX_RESPONSES: usize = 100_000;
/// Items of one list inside a response that are read; the metadata keeps all of them.
const MAX_ITEMS: usize = 5_000;

/// One conversation with its responses.
#[derive(Debug, Default)]
pub(crate) struct Conversation<'a> {
    pub(crate) id: Option<&'a str>,
    /// `conversation_id`, the key of older exports.
    pub(crate) legacy_id: Option<&'a str>,
    pub(crate) account: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) leaf: Option<&'a str>,
    pub(crate) responses: Vec<Response<'a>>,
    /// Indices of items that are not responses, with the reasons.
    pub(crate) invalid: Vec<(usize, &'static str)>,
    /// It has a wrapper `conversation` or a list of responses.
    pub(crate) recognised: bool,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Conversation<'a> {
    /// Reads one element; none if it is not an object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            if key == "conversation" && json.enter_object()? {
                it.recognised = true;
                while let Some(key) = json.key()? {
                    it.field(key, json)?;
                }
            } else {
                it.field(key, json)?;
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    /// The id of either key.
    pub(crate) fn key(&self) -> Option<&'a str> {
        self.id.or(self.legacy_id)
    }

    /// The newest time in it.
    pub(crate) fn newest(&self) -> Option<i64> {
        let times = self.responses.iter().map(|response| response.created);
        times.chain([self.created, self.updated]).flatten().max()
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "responses" => self.read_responses(key, json)?,
            "id" => self.id = rest.nonempty_text(key, json)?,
            "conversation_id" => self.legacy_id = rest.nonempty_text(key, json)?,
            "user_id" => self.account = rest.nonempty_text(key, json)?,
            "title" => self.title = rest.text(key, json)?,
            "create_time" => self.created = rest.time(key, json)?,
            "modify_time" => self.updated = rest.time(key, json)?,
            "leaf_response_id" => self.leaf = rest.nonempty_text(key, json)?,
            _ => rest.keep(key, json)?,
        }
        Ok(())
    }

    fn read_responses(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        self.responses.clear();
        self.invalid.clear();
        self.recognised |= matches!(json.kind()?, Kind::Array | Kind::Null);
        if !self.rest.array(key, json)? {
            return Ok(());
        }
        let mut index = 0;
        while json.item()? {
            if json.null()? {
                self.invalid.push((index, "it is null"));
            } else {
                match Response::read(index, json)? {
                    Some(response) if response.blank() => {
                        self.invalid.push((index, "it has neither an id nor a sender nor a text"));
                    }
                    Some(response) => self.responses.push(response),
                    None => self.invalid.push((index, "it is not an object")),
                }
            }
            index += 1;
            if index > MAX_RESPONSES {
                let problem = "more responses than the limit";
                return Err(JsonError { offset: json.offset(), problem });
            }
        }
        Ok(())
    }
}

/// Calls `f` with the first [`MAX_ITEMS`] items of a list; any other value but null is one item.
pub(crate) fn visit<'a>(list: Value<'a>, arena: &'a Arena, mut f: impl FnMut(Value<'a>)) {
    let Some(raw) = list.raw().filter(|raw| raw.starts_with('[')) else {
        if list != Value::Null {
            f(list);
        }
        return;
    };
    let mut json = Parser::new(raw, arena);
    let mut read = || -> Result<(), JsonError> {
        if json.enter_array()? {
            let mut seen = 0;
            while seen < MAX_ITEMS && json.item()? {
                f(Value::read(&mut json)?);
                seen += 1;
            }
        }
        Ok(())
    };
    // The value was checked when it was read.
    read().unwrap_or_default();
}

/// As [`visit`], for the objects among the items.
pub(crate) fn visit_objects<'a>(list: Value<'a>, arena: &'a Arena, mut f: impl FnMut(Object<'a>)) {
    visit(list, arena, |item| {
        if let Some(raw) = item.raw().filter(|raw| raw.starts_with('{')) {
            f(Object::parse(raw, arena));
        }
    });
}
