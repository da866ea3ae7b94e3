//! The answer to a request. Its parts become messages in their order, each a child of the one before: what stands at the end of an answer
//! that still grows changes nothing before it.

use std::borrow::Cow;

use satchel_importer::{
    Fields, ImportError, JsonError, Role,
    json::{Value, ValueFields},
};

use super::{
    Draft, Exchange, Ids, Warning, about, calls, fences, markdown, notices,
    rounds::{Rounds, joined},
    thought::Thought,
    tree::escaped,
};
use crate::{
    fields::{FIELD_READER, take_id},
    uri,
};

/// The fields of a request that belong to its answer.
pub(super) const FIELDS: [&str; 27] = [
    "actualModelId",
    "agent",
    "codeCitations",
    "completionTokens",
    "contentReferences",
    "copilotCredits",
    "elapsedMs",
    "followups",
    "isCanceled",
    "modelState",
    "modelTotals",
    "outputBuffer",
    "promptTokenDetails",
    "promptTokens",
    "response",
    "responseErrorDetails",
    "responseId",
    "responseMarkdownInfo",
    "responseTimestamp",
    "result",
    "sessionCopilotCredits",
    "slashCommand",
    "timeSpentWaiting",
    "usage",
    "usedContext",
    "vote",
    "voteDownReason",
];
/// Fields that say how a text is drawn.
const DRAWING: [&str; 9] = [
    "baseUri",
    "isTrusted",
    "kind",
    "nonce",
    "supportAlertSyntax",
    "supportHtml",
    "supportThemeIcons",
    "uris",
    "vulnerabilities",
];
/// Messages of one answer. Each takes about 600 bytes beside its texts, and real answers have hundreds.
const MAX_MESSAGES: usize = 20_000;
/// Reports an answer with more.
const TOO_MANY: &str = "its answer has more than 20000 messages; the others were left out";

/// An answer while it is read.
struct Answer<'a, 'e> {
    found: &'e mut Exchange<'a>,
    drafts: Vec<Draft<'a>>,
    rounds: Rounds<'a>,
    /// The text that is not a message yet.
    text: String,
    /// What the parts of that text have besides it.
    extras: Vec<Cow<'a, str>>,
    unread: bool,
    /// The thought that is not a message yet. There is no text beside it.
    thought: Option<Thought<'a>>,
    too_many: bool,
    by_order: bool,
    shown: String,
    thoughts: String,
}

/// Maps the answer to the request whose message is `request`, and appends its messages.
pub(super) fn map<'a>(
    mut fields: Fields<'a>,
    request: &str,
    sent: Option<i64>,
    ids: &mut Ids,
    found: &mut Exchange<'a>,
) -> Result<(), ImportError> {
    if fields.iter().next().is_none() {
        return Ok(());
    }
    let arena = fields.arena();
    let own = take_id(&mut fields, "responseId");
    let created = about::times(&mut fields, found).or(sent);
    let mut result = fields.take_object("result")?.unwrap_or_else(|| FIELD_READER.none(arena));
    let mut metadata = result.take_object("metadata")?.unwrap_or_else(|| FIELD_READER.none(arena));
    let model = about::model(&fields, &metadata, found.model);
    found.model = model;
    let tokens = about::tokens(&fields, &result, &metadata);
    let mut answer = Answer::new(Rounds::take(&mut metadata)?, found);
    answer.read(&mut fields)?;
    answer.add_error(&mut fields, &mut result)?;
    let mut drafts = answer.finish(&mut metadata);
    let parts = [&fields, &result, &metadata];
    if drafts.is_empty() && parts.iter().all(|fields| fields.iter().next().is_none()) {
        return Ok(());
    }
    if drafts.is_empty() {
        let mut empty = Draft::new(Role::Assistant);
        // There is nothing to show.
        empty.rest.add_bool("hidden", true);
        drafts.push(empty);
    }
    about::keep(fields, result, metadata, &mut drafts)?;
    let first = drafts.first_mut().filter(|first| first.message.role == Role::Assistant);
    if let Some(first) = first {
        first.message.token_count = tokens;
    }
    place(drafts, own, request, (created, model), ids, found);
    Ok(())
}

/// Gives the messages their ids and parents.
fn place<'a>(
    drafts: Vec<Draft<'a>>,
    own: Option<&'a str>,
    request: &str,
    (created, model): (Option<i64>, Option<&'a str>),
    ids: &mut Ids,
    found: &mut Exchange<'a>,
) {
    let key = own.map(|own| escaped(own).into_owned());
    let first = key.clone().map_or_else(|| format!("{request}:response"), |key| ids.unique(key));
    let own = own.filter(|_| key.as_ref() == Some(&first));
    let mut parent = request.to_owned();
    for (number, mut draft) in drafts.into_iter().enumerate() {
        let id = if number == 0 { first.clone() } else { format!("{first}:{number}") };
        draft.message.created_at = created;
        draft.message.model = model.filter(|_| draft.message.role == Role::Assistant).map(Cow::Borrowed);
        let mut message = draft.finish(id.clone(), Some(std::mem::replace(&mut parent, id.clone())));
        message.provider_message_id = own.filter(|_| number == 0).map(Cow::Borrowed);
        found.messages.push(message);
    }
}

impl<'a, 'e> Answer<'a, 'e> {
    fn new(rounds: Rounds<'a>, found: &'e mut Exchange<'a>) -> Self {
        Self {
            found,
            drafts: Vec::new(),
            rounds,
            text: String::new(),
            extras: Vec::new(),
            unread: false,
            thought: None,
            too_many: false,
            by_order: false,
            shown: String::new(),
            thoughts: String::new(),
        }
    }

    fn read(&mut self, fields: &mut Fields<'a>) -> Result<(), JsonError> {
        let parts = parts(fields)?;
        let ids = calls::ids(&parts);
        self.by_order = self.rounds.pair_by_order(&ids);
        let fences = fences::find(&parts);
        for (at, part) in parts.into_iter().enumerate() {
            if !fences.contains(&at) && !self.too_many {
                self.part(part)?;
            }
        }
        self.end_text();
        if self.drafts.is_empty() {
            self.read_rounds();
        }
        while !self.too_many
            && let Some(call) = self.rounds.take_next()
        {
            let draft = calls::unseen(call);
            self.push(draft);
        }
        Ok(())
    }

    /// Adds a message, unless there are too many. An error is added behind them.
    fn push(&mut self, draft: Draft<'a>) {
        if self.drafts.len() < MAX_MESSAGES {
            self.drafts.push(draft);
        } else if !self.too_many {
            self.too_many = true;
            self.found.warnings.push(Warning::Each(TOO_MANY));
        }
    }

    fn part(&mut self, part: Fields<'a>) -> Result<(), JsonError> {
        let kind = part.get("kind").text();
        match kind {
            None if part.get("value").text().is_some() => self.add_text(part, "value"),
            Some("markdownContent" | "markdownVuln") => {
                let key = if part.get("content") == Value::Null { "value" } else { "content" };
                self.add_text(part, key);
            }
            Some("inlineReference") => self.add_reference(part),
            Some("thinking") => self.add_thought(part),
            Some(kind) if calls::is_invocation(kind) => {
                self.end_text();
                let draft = calls::invocation(part, &mut self.rounds, self.by_order)?;
                self.push(draft);
            }
            Some(kind) if calls::is_edit(kind) => {
                self.end_text();
                self.push(calls::edit(kind, part));
            }
            Some(kind) if notices::is_left_out(kind) => self.found.left_out.push(kind),
            None if part.iter().next().is_none() => self.found.left_out.push("none"),
            kind => {
                self.end_text();
                let draft = notices::notice(kind, part, self.found)?;
                self.push(draft);
            }
        }
        Ok(())
    }

    fn add_text(&mut self, mut part: Fields<'a>, key: &'static str) {
        let Some(text) = markdown(part.get(key), part.arena()) else {
            // A text of an unknown form is kept.
            self.keep_extra(part, &["kind"]);
            return;
        };
        part.take(key);
        self.end_thought();
        self.text.push_str(text);
        part.remove(&DRAWING);
        self.keep_extra(part, &["inlineReferences"]);
    }

    /// A name of a file or a symbol inside the text. The page shows it as a link; the model wrote it as code.
    fn add_reference(&mut self, mut part: Fields<'a>) {
        let arena = part.arena();
        let target = part.get("inlineReference");
        let symbol = FIELD_READER
            .of(target, arena)
            .ok()
            .flatten()
            .and_then(|target| target.get("name").nonempty_text());
        let name = part.get("name").nonempty_text().or(symbol).map(ToOwned::to_owned);
        self.end_thought();
        if let Some(name) = name.or_else(|| uri::name(target, arena)) {
            self.text.push_str(&format!("`{name}`"));
        }
        part.take("kind");
        self.keep_extra(part, &["inlineReference", "name", "resolveId"]);
    }

    fn keep_extra(&mut self, part: Fields<'a>, known: &[&str]) {
        let rest = part.into_rest(known);
        self.unread |= rest.unread().is_some();
        self.extras.extend(rest.into_json());
    }

    fn add_thought(&mut self, mut part: Fields<'a>) {
        let arena = part.arena();
        let (id, value) = (part.get("id").nonempty_text(), part.get("value"));
        let Some(text) = joined(value, arena) else {
            if matches!(value, Value::Null | Value::Text(_) | Value::Raw("[]")) {
                // It only says that the thought has ended.
                self.found.left_out.push("thinking");
            } else {
                self.keep_extra(part, &[]);
            }
            return;
        };
        self.thoughts.push_str(&text);
        part.remove(&["kind", "value"]);
        if let Some(thought) = self.thought.as_mut().filter(|thought| thought.goes_on(id)) {
            thought.add(&text, part);
            return;
        }
        self.end_text();
        self.thought = Some(Thought::new(id, text.into_owned(), part));
    }

    /// Makes a message of the thought so far.
    fn end_thought(&mut self) {
        if let Some(thought) = self.thought.take() {
            self.push(thought.finish());
        }
    }

    /// Makes messages of the thought and the text so far.
    fn end_text(&mut self) {
        self.end_thought();
        let (text, extras) = (std::mem::take(&mut self.text), std::mem::take(&mut self.extras));
        if text.trim().is_empty() && extras.is_empty() {
            return;
        }
        let mut draft = Draft::new(Role::Assistant);
        if !text.trim().is_empty() {
            self.shown.push_str(&text);
            draft.set_text(text);
        }
        if !extras.is_empty() {
            draft.rest.add_json("parts", &format!("[{}]", extras.join(",")));
        }
        if std::mem::take(&mut self.unread) {
            draft.rest.mark_unread("parts");
        }
        self.push(draft);
    }

    /// Reads the rounds of an answer that has no parts.
    fn read_rounds(&mut self) {
        if self.rounds.is_empty() {
            return;
        }
        let mut order = Vec::new();
        for round in self.rounds.iter() {
            order.push((round.thought.clone(), round.text, round.calls.clone()));
        }
        for (thought, text, numbers) in order {
            if let Some(thought) = thought {
                self.thoughts.push_str(&thought);
                let mut draft = Draft::new(Role::Assistant);
                draft.message.is_thought = true;
                draft.set_text(thought);
                self.push(draft);
            }
            self.text.push_str(text.unwrap_or_default());
            self.end_text();
            for number in numbers {
                if let Some(draft) = self.rounds.take_number(number).map(calls::unseen) {
                    self.push(draft);
                }
            }
        }
    }

    /// An error is a message of the program.
    fn add_error(&mut self, fields: &mut Fields<'a>, result: &mut Fields<'a>) -> Result<(), JsonError> {
        let of_result = result.take_object("errorDetails")?;
        let Some(mut details) =
            of_result.map_or_else(|| fields.take_object("responseErrorDetails"), |found| Ok(Some(found)))?
        else {
            return Ok(());
        };
        let mut draft = Draft::new(Role::System);
        if let Some(text) = markdown(details.get("message"), details.arena()).filter(|text| !text.is_empty())
        {
            details.take("message");
            draft.set_text(text);
        }
        let known: Vec<&str> = details.iter().map(|(key, _)| key).collect();
        if let Some(json) = details.into_rest(&known).into_json() {
            draft.rest.add_json("errorDetails", &json);
        }
        if draft.message.content.is_some() || !draft.rest.is_empty() {
            self.drafts.push(draft);
        }
        Ok(())
    }

    /// The messages; what remains of the rounds goes back to the metadata.
    fn finish(self, metadata: &mut Fields<'a>) -> Vec<Draft<'a>> {
        let unread = self.rounds.add_to(metadata, &self.shown, &self.thoughts);
        let mut drafts = self.drafts;
        if let (Some(first), Some(field)) = (drafts.first_mut(), unread) {
            first.rest.mark_unread(field);
        }
        drafts
    }
}

/// Takes the parts of an answer: a list, or one part. Very old versions have plain texts.
fn parts<'a>(fields: &mut Fields<'a>) -> Result<Vec<Fields<'a>>, JsonError> {
    let arena = fields.arena();
    let items = match fields.take("response") {
        Value::Null => Vec::new(),
        Value::Raw(raw) if raw.starts_with('[') => FIELD_READER.item_fields(raw, arena)?,
        one => vec![ValueFields { value: one, fields: FIELD_READER.of(one, arena) }],
    };
    let part = |item: ValueFields<'a>| {
        Ok(item.fields?.unwrap_or_else(|| {
            let mut part = FIELD_READER.none(arena);
            part.push("value", item.value);
            part
        }))
    };
    items.into_iter().map(part).collect()
}
