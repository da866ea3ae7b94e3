//! What a conversation says about memories: facts that ChatGPT saved, its list of them, and custom instructions.

use satchel_importer::{
    Arena, Claim, Evidence, Item, Message, ToolInput,
    address::unsigned_json,
    json::{self, Object},
    pam::{
        memory::{ExtractionMethod, MemoryType, Status},
        raw::RawObject,
        record::ConfidenceRecord,
    },
};

use crate::{
    map::Messages,
    memory_text::{self, Side},
    raw,
};

/// What one message shows of memories.
#[derive(Debug, Default)]
pub(crate) struct Note<'a> {
    /// Custom instructions, in the person's own words.
    sides: Vec<(Side, &'a str)>,
    /// The list of saved memories.
    saved: Option<&'a str>,
    /// Saved memories that an answer rests on.
    used: Vec<Used<'a>>,
}

/// A saved memory that an answer rests on, as far as the answer shows it.
#[derive(Debug)]
struct Used<'a> {
    id: Option<&'a str>,
    words: &'a str,
    /// The object that names it, as it stood.
    about: &'a str,
}

impl<'a> Note<'a> {
    /// What `raw` shows; none for ordinary messages.
    pub(crate) fn read(raw: &raw::Message<'a>, arena: &'a Arena) -> Option<Box<Self>> {
        let note = match raw.content.kind {
            Some("model_editable_context") => {
                Self { saved: raw.content.fields.text("model_set_context"), ..Self::default() }
            }
            Some("user_editable_context") => Self { sides: sides(raw, arena), ..Self::default() },
            _ if raw.metadata.user_context.is_some() || raw.metadata.user_system => {
                Self { sides: sides(raw, arena), ..Self::default() }
            }
            _ if raw.metadata.context.is_some() => {
                Self { used: used(raw.metadata.context.unwrap_or_default(), arena), ..Self::default() }
            }
            _ => return None,
        };
        Some(Box::new(note))
    }
}

/// A saved fact may have been deleted later on the web page, which exports do not show.
const SAVED_CONFIDENCE: f64 = 0.5;
/// What an answer shows of a memory may be a part of it.
const USED_CONFIDENCE: f64 = 0.3;

/// Where a conversation stands.
pub(crate) struct Place<'p> {
    pub(crate) conversation: &'p str,
    pub(crate) account: Option<&'p str>,
    pub(crate) locator: &'p str,
}

/// All evidence of one conversation; none if the person asked it not to be remembered.
pub(crate) fn evidence(raw: &raw::Conversation<'_>, read: &Messages<'_>, place: &Place<'_>) -> Vec<Evidence> {
    if raw.forget {
        return Vec::new();
    }
    let maker = Maker { scope: scope(raw, place.conversation), created: raw.created, place };
    let mut found = Vec::new();
    for (message, facts) in read.all.iter().zip(&read.facts) {
        if facts.remembered
            && let Some(text) = asked(message)
        {
            found.extend(maker.saved_facts(message, text));
        }
        if let Some(note) = &facts.note {
            found.extend(note.saved.and_then(|list| maker.saved_list(message, list)));
            found.extend(maker.instructions(message, &note.sides));
            found.extend(maker.used(message, &note.used));
        }
    }
    found
}

/// The custom instructions that held for the conversation, for PAM's `system_instruction`.
pub(crate) fn system_instruction(read: &Messages<'_>) -> Option<String> {
    let notes = read.facts.iter().filter_map(|facts| facts.note.as_ref());
    let first = notes.map(|note| &note.sides).find(|sides| !sides.is_empty())?;
    Some(first.iter().map(|(_, words)| *words).collect::<Vec<_>>().join("\n\n"))
}

/// What a message asked of a tool.
fn asked<'m>(message: &'m Message<'_>) -> Option<&'m str> {
    match message.tool_calls.first()?.input.as_ref()? {
        ToolInput::Text(text) | ToolInput::Object(text) => Some(text),
    }
}

/// What is said inside a project holds for the project only.
fn scope(raw: &raw::Conversation<'_>, conversation: &str) -> Option<String> {
    let project = [raw.gizmo, raw.template].into_iter().flatten().find(|id| id.starts_with("g-p-"));
    let alone = raw.memory_scope == Some("project_enabled");
    match project {
        Some(project) => Some(format!("project:{project}")),
        // The project is not named: no wider than the conversation.
        None if alone => Some(format!("conversation:{conversation}")),
        None => None,
    }
}

struct Maker<'p> {
    scope: Option<String>,
    created: Option<i64>,
    place: &'p Place<'p>,
}

impl Maker<'_> {
    /// One fact on each line of a confirmed write.
    fn saved_facts(&self, message: &Message<'_>, text: &str) -> Vec<Evidence> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(number, line)| {
                let mut item = self.item(line.trim(), MemoryType::Fact);
                item.status = Some(Status::Active);
                item.confidence = Some(confidence(SAVED_CONFIDENCE));
                let name = format!("bio/{number}");
                self.evidence(
                    message,
                    &name,
                    message.created_at,
                    Claim::Statement(item),
                    ExtractionMethod::ApiExport,
                )
            })
            .collect()
    }

    /// The saved memories that an answer names as its ground; one each, whatever the answer shows of it.
    fn used(&self, message: &Message<'_>, used: &[Used<'_>]) -> Vec<Evidence> {
        let evidence = |(number, used): (usize, &Used<'_>)| {
            let mut item = self.item(used.words, MemoryType::Fact);
            item.status = Some(Status::Active);
            item.confidence = Some(confidence(USED_CONFIDENCE));
            item.metadata = RawObject::parse(unsigned_json(used.about.into()).into_owned()).ok();
            let name = used.id.map_or_else(|| format!("used/{number}"), |id| format!("used/{id}"));
            let claim = Claim::Statement(item);
            self.evidence(message, &name, message.created_at, claim, ExtractionMethod::ApiExport)
        };
        used.iter().enumerate().map(evidence).collect()
    }

    /// The whole list of saved memories as the model saw it; an empty one says nothing.
    fn saved_list(&self, message: &Message<'_>, list: &str) -> Option<Evidence> {
        let items: Vec<Item> = memory_text::saved_items(list)
            .into_iter()
            .map(|saved| {
                let mut item = self.item(&saved.text, MemoryType::Fact);
                item.created_at = saved.date.as_deref().and_then(json::day);
                item.valid_from = item.created_at;
                item
            })
            .collect();
        if items.is_empty() {
            return None;
        }
        Some(self.snapshot(message, "model_set_context", items, ExtractionMethod::ApiExport))
    }

    fn instructions(&self, message: &Message<'_>, sides: &[(Side, &str)]) -> Vec<Evidence> {
        sides
            .iter()
            .map(|&(side, words)| {
                let (series, kind) = match side {
                    Side::AboutUser => ("about_user_message", MemoryType::Identity),
                    Side::AboutModel => ("about_model_message", MemoryType::Instruction),
                };
                let items = vec![self.item(words, kind)];
                self.snapshot(message, series, items, ExtractionMethod::ExplicitUserInput)
            })
            .collect()
    }

    fn item(&self, content: &str, memory_type: MemoryType) -> Item {
        Item { scope: self.scope.clone(), ..Item::new(content, memory_type) }
    }

    /// A list of one scope never replaces that of another.
    fn snapshot(
        &self,
        message: &Message<'_>,
        series: &str,
        items: Vec<Item>,
        method: ExtractionMethod,
    ) -> Evidence {
        let scoped = self.scope.as_ref().map(|scope| format!("{series}@{scope}"));
        let claim = Claim::Snapshot { series: scoped.unwrap_or_else(|| series.to_owned()), items };
        self.evidence(message, series, message.created_at, claim, method)
    }

    fn evidence(
        &self,
        message: &Message<'_>,
        name: &str,
        at: Option<i64>,
        claim: Claim,
        extraction_method: ExtractionMethod,
    ) -> Evidence {
        let Place { conversation, account, locator } = self.place;
        Evidence {
            id: format!("{conversation}/{}/{name}", message.id),
            claim,
            at: at.or(self.created),
            account: account.map(ToOwned::to_owned),
            conversation: Some((*conversation).to_owned()),
            message: Some(message.id.clone().into_owned()),
            extraction_method,
            locator: format!("{locator}.mapping.{}", message.id),
        }
    }
}

fn confidence(value: f64) -> ConfidenceRecord {
    ConfidenceRecord { initial: Some(value), current: Some(value), ..ConfidenceRecord::default() }
}

/// The saved memories in a `conversation_context_citation_metadata`; past conversations and instructions are none.
fn used<'a>(list: &'a str, arena: &'a Arena) -> Vec<Used<'a>> {
    let mut found: Vec<Used<'a>> = Vec::new();
    for about in json::items(list, arena).into_iter().filter_map(json::Value::raw) {
        let entry = Object::parse(about, arena);
        let inner = entry.object("citation", arena);
        let citation = if inner.is_empty() { entry } else { inner };
        if citation.text("conversation_context_type") != Some("user_memory") {
            continue;
        }
        let id = citation.text("memory_id");
        let words = ["snippet", "title"].into_iter().find_map(|key| citation.text(key)).map(str::trim);
        let repeated =
            |words: &str| found.iter().any(|known| (id.is_some() && known.id == id) || known.words == words);
        if let Some(words) = words.filter(|words| !words.is_empty() && !repeated(words)) {
            found.push(Used { id, words, about });
        }
    }
    found
}

/// The two sides of custom instructions in one message: the clean copy, else the words inside the boilerplate.
fn sides<'a>(raw: &raw::Message<'a>, arena: &'a Arena) -> Vec<(Side, &'a str)> {
    let clean = raw.metadata.user_context.map(|context| Object::parse(context, arena)).unwrap_or_default();
    let sides = both(&clean, ["about_user_message", "about_model_message"], str::trim);
    if !sides.is_empty() {
        return sides;
    }
    if raw.content.kind == Some("user_editable_context") {
        return both(&raw.content.fields, ["user_profile", "user_instructions"], memory_text::unfence);
    }
    let texts = raw.content.parts.iter().filter_map(|part| match part {
        raw::Part::Text(text) => Some(text),
        raw::Part::Nothing | raw::Part::Raw(_) => None,
    });
    texts.flat_map(memory_text::split_sides).collect()
}

/// The sides that say something, each under its key.
fn both<'a>(object: &Object<'a>, keys: [&str; 2], words: impl Fn(&str) -> &str) -> Vec<(Side, &'a str)> {
    let sides = [Side::AboutUser, Side::AboutModel].into_iter().zip(keys);
    let said = sides.filter_map(|(side, key)| Some((side, words(object.text(key)?))));
    said.filter(|(_, words)| !words.is_empty()).collect()
}
