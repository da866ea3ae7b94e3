//! Evidence about memories in a conversation: facts that ChatGPT saved, its list of them, and custom instructions.

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
    memory_text::{self, InstructionKind},
    raw,
};

/// What one message says about memories.
#[derive(Debug, Default)]
pub(crate) struct MemoryFacts<'a> {
    pub(crate) context: Option<Box<MemoryContext<'a>>>,
    /// A tool confirmed that it saved the input of this call.
    pub(crate) confirmed: bool,
}

/// The memories and instructions that the model received with a message.
#[derive(Debug, Default)]
pub(crate) struct MemoryContext<'a> {
    instructions: Instructions<'a>,
    /// The list of saved memories.
    saved: Option<&'a str>,
    /// Saved memories that an answer used.
    cited: Vec<CitedMemory<'a>>,
}

/// Custom instructions in the person's own words.
type Instructions<'a> = Vec<(InstructionKind, &'a str)>;

/// A saved memory that an answer used.
#[derive(Debug)]
struct CitedMemory<'a> {
    id: Option<&'a str>,
    text: &'a str,
    /// The entry about it as JSON text.
    entry: &'a str,
}

impl<'a> MemoryContext<'a> {
    /// Reads the context in a message; ordinary messages have none.
    pub(crate) fn read(raw: &raw::Message<'a>, arena: &'a Arena) -> Option<Box<Self>> {
        let (kind, metadata) = (raw.content.kind, &raw.metadata);
        let instructed = metadata.user_context.is_some() || metadata.user_system;
        let context = if kind == Some("model_editable_context") {
            Self { saved: raw.content.fields.text("model_set_context"), ..Self::default() }
        } else if kind == Some("user_editable_context") || instructed {
            Self { instructions: instructions(raw, arena), ..Self::default() }
        } else {
            Self { cited: cited_memories(metadata.context?, arena), ..Self::default() }
        };
        Some(Box::new(context))
    }
}

/// A saved fact may have been deleted later on the page, which exports do not show.
const SAVED_CONFIDENCE: f64 = 0.5;
/// An answer may show only a part of a memory.
const CITED_CONFIDENCE: f64 = 0.3;

/// The conversation that evidence comes from.
pub(crate) struct EvidenceSource<'s> {
    pub(crate) conversation: &'s str,
    pub(crate) account: Option<&'s str>,
    pub(crate) locator: &'s str,
}

/// All evidence in one conversation; none if no memories are to be made from it.
pub(crate) fn evidence<'m, 'a: 'm>(
    raw: &raw::Conversation<'_>,
    messages: impl Iterator<Item = (&'m Message<'a>, &'m MemoryFacts<'a>)>,
    source: &EvidenceSource<'_>,
) -> Vec<Evidence> {
    if raw.forget {
        return Vec::new();
    }
    let builder = EvidenceBuilder { scope: scope(raw, source.conversation), created: raw.created, source };
    let mut found = Vec::new();
    for (message, facts) in messages {
        if facts.confirmed
            && let Some(input) = tool_input(message)
        {
            found.extend(builder.saved_facts(message, input));
        }
        if let Some(context) = &facts.context {
            found.extend(context.saved.and_then(|list| builder.saved_list(message, list)));
            found.extend(builder.instructions(message, &context.instructions));
            found.extend(builder.cited_memories(message, &context.cited));
        }
    }
    found
}

/// The custom instructions of the conversation, for PAM's `system_instruction`.
pub(crate) fn system_instruction<'m, 'a: 'm>(
    mut memories: impl Iterator<Item = &'m MemoryFacts<'a>>,
) -> Option<String> {
    let instructions = memories.find_map(|facts| {
        let context = facts.context.as_ref()?;
        (!context.instructions.is_empty()).then_some(&context.instructions)
    })?;
    Some(instructions.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n\n"))
}

fn tool_input<'m>(message: &'m Message<'_>) -> Option<&'m str> {
    match message.tool_calls.first()?.input.as_ref()? {
        ToolInput::Text(text) | ToolInput::Object(text) => Some(text),
    }
}

/// Memories of a project apply to the project only.
fn scope(raw: &raw::Conversation<'_>, conversation: &str) -> Option<String> {
    let project = [raw.gizmo, raw.template].into_iter().flatten().find(|id| id.starts_with("g-p-"));
    // The project may not be named: then the scope is the conversation.
    let in_project = raw.memory_scope == Some("project_enabled");
    let unnamed = || in_project.then(|| format!("conversation:{conversation}"));
    project.map(|project| format!("project:{project}")).or_else(unnamed)
}

struct EvidenceBuilder<'s> {
    scope: Option<String>,
    created: Option<i64>,
    source: &'s EvidenceSource<'s>,
}

impl EvidenceBuilder<'_> {
    /// One fact for each line of a confirmed call.
    fn saved_facts(&self, message: &Message<'_>, input: &str) -> Vec<Evidence> {
        let lines = input.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let statement = |(number, line): (usize, &str)| {
            self.statement(message, &format!("bio/{number}"), self.fact(line.trim(), SAVED_CONFIDENCE))
        };
        lines.map(statement).collect()
    }

    /// One fact for each saved memory that an answer used.
    fn cited_memories(&self, message: &Message<'_>, cited: &[CitedMemory<'_>]) -> Vec<Evidence> {
        let statement = |(number, memory): (usize, &CitedMemory<'_>)| {
            let mut item = self.fact(memory.text, CITED_CONFIDENCE);
            item.metadata = RawObject::parse(unsigned_json(memory.entry.into()).into_owned()).ok();
            let name = memory.id.map_or_else(|| format!("used/{number}"), |id| format!("used/{id}"));
            self.statement(message, &name, item)
        };
        cited.iter().enumerate().map(statement).collect()
    }

    /// The whole list of saved memories that the model received; none for an empty list.
    fn saved_list(&self, message: &Message<'_>, list: &str) -> Option<Evidence> {
        let items: Vec<Item> = memory_text::parse_saved_memories(list)
            .into_iter()
            .map(|saved| {
                let mut item = self.item(&saved.text, MemoryType::Fact);
                item.created_at = saved.date.as_deref().and_then(json::time_of_date);
                item.valid_from = item.created_at;
                item
            })
            .collect();
        let method = ExtractionMethod::ApiExport;
        (!items.is_empty()).then(|| self.snapshot(message, "model_set_context", items, method))
    }

    fn instructions(&self, message: &Message<'_>, all: &[(InstructionKind, &str)]) -> Vec<Evidence> {
        let snapshot = |&(kind, text): &(InstructionKind, &str)| {
            let (series, memory_type) = match kind {
                InstructionKind::AboutUser => ("about_user_message", MemoryType::Identity),
                InstructionKind::AboutModel => ("about_model_message", MemoryType::Instruction),
            };
            let items = vec![self.item(text, memory_type)];
            self.snapshot(message, series, items, ExtractionMethod::ExplicitUserInput)
        };
        all.iter().map(snapshot).collect()
    }

    /// An active fact.
    fn fact(&self, content: &str, confidence: f64) -> Item {
        let value = Some(confidence);
        Item {
            status: Some(Status::Active),
            confidence: Some(ConfidenceRecord {
                initial: value,
                current: value,
                ..ConfidenceRecord::default()
            }),
            ..self.item(content, MemoryType::Fact)
        }
    }

    fn item(&self, content: &str, memory_type: MemoryType) -> Item {
        Item { scope: self.scope.clone(), ..Item::new(content, memory_type) }
    }

    fn statement(&self, message: &Message<'_>, name: &str, item: Item) -> Evidence {
        self.evidence(message, name, Claim::Statement(item), ExtractionMethod::ApiExport)
    }

    /// The series contains the scope, so that a list never replaces that of another scope.
    fn snapshot(
        &self,
        message: &Message<'_>,
        series: &str,
        items: Vec<Item>,
        method: ExtractionMethod,
    ) -> Evidence {
        let scoped = self.scope.as_ref().map(|scope| format!("{series}@{scope}"));
        let claim = Claim::Snapshot { series: scoped.unwrap_or_else(|| series.to_owned()), items };
        self.evidence(message, series, claim, method)
    }

    fn evidence(
        &self,
        message: &Message<'_>,
        name: &str,
        claim: Claim,
        extraction_method: ExtractionMethod,
    ) -> Evidence {
        let EvidenceSource { conversation, account, locator } = self.source;
        Evidence {
            id: format!("{conversation}/{}/{name}", message.id),
            claim,
            at: message.created_at.or(self.created),
            account: account.map(ToOwned::to_owned),
            conversation: Some((*conversation).to_owned()),
            message: Some(message.id.clone().into_owned()),
            extraction_method,
            locator: format!("{locator}.mapping.{}", message.id),
        }
    }
}

/// The saved memories among the entries of `conversation_context_citation_metadata`, each once.
fn cited_memories<'a>(list: &'a str, arena: &'a Arena) -> Vec<CitedMemory<'a>> {
    let mut found: Vec<CitedMemory<'a>> = Vec::new();
    for entry in json::items(list, arena).into_iter().filter_map(json::Value::raw) {
        let object = Object::parse(entry, arena);
        let inner = object.object("citation", arena);
        let citation = if inner.is_empty() { object } else { inner };
        if citation.text("conversation_context_type") != Some("user_memory") {
            continue;
        }
        let id = citation.text("memory_id");
        let text = ["snippet", "title"].into_iter().find_map(|key| citation.text(key)).map(str::trim);
        let repeated =
            |text: &str| found.iter().any(|known| (id.is_some() && known.id == id) || known.text == text);
        if let Some(text) = text.filter(|text| !text.is_empty() && !repeated(text)) {
            found.push(CitedMemory { id, text, entry });
        }
    }
    found
}

/// The custom instructions in one message: the separate copy, else the text inside ChatGPT's wording.
fn instructions<'a>(raw: &raw::Message<'a>, arena: &'a Arena) -> Instructions<'a> {
    let copy = raw.metadata.user_context.map(|context| Object::parse(context, arena)).unwrap_or_default();
    let found = instructions_in(&copy, ["about_user_message", "about_model_message"], str::trim);
    if !found.is_empty() {
        return found;
    }
    if raw.content.kind == Some("user_editable_context") {
        let keys = ["user_profile", "user_instructions"];
        return instructions_in(&raw.content.fields, keys, memory_text::strip_fences);
    }
    let texts = raw.content.parts.iter().filter_map(json::Value::text);
    texts.flat_map(memory_text::parse_instructions).collect()
}

/// The instructions under two keys, if they are not empty.
fn instructions_in<'a>(
    object: &Object<'a>,
    keys: [&str; 2],
    extract: impl Fn(&str) -> &str,
) -> Instructions<'a> {
    let kinds = [InstructionKind::AboutUser, InstructionKind::AboutModel];
    let found =
        kinds.into_iter().zip(keys).filter_map(|(kind, key)| Some((kind, extract(object.text(key)?))));
    found.filter(|(_, text)| !text.is_empty()).collect()
}
