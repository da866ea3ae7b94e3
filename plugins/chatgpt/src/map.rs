//! Maps the provider's conversations to records, without input or output of its own.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Conversation, Element, Evidence, ImportError, Message, Participant, Role, address::unsigned_json,
    natural_key,
};

use crate::{
    annotations::{Annotations, SHARED},
    assets::Assets,
    memory::{self, EvidenceSource},
    raw::{self, Mapping},
};

mod attachments;
mod blocks;
mod canvas;
mod citations;
mod content;
mod markers;
mod message;
mod messages;
mod tools;

pub(crate) use attachments::merge as merge_attachments;
pub(crate) use canvas::document_content;
use message::Mapper;
pub(crate) use message::{UNKNOWN_ROLE, content_of, known_role, role};
use messages::Messages;

/// The context of all conversations of an export.
pub(crate) struct Context<'a> {
    pub(crate) account: Option<&'a str>,
    /// The version part of the format that was detected, such as `2026.07`.
    pub(crate) version: &'a str,
    pub(crate) assets: &'a Assets<'a>,
    pub(crate) annotations: &'a Annotations,
}

/// The records of one element of the export.
#[derive(Default)]
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) evidence: Vec<Evidence>,
    /// Messages that cannot be read: locator and reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
    /// Locator and text.
    pub(crate) warnings: Vec<(String, &'static str)>,
    /// The ids by which other files may name the conversation.
    pub(crate) ids: [Option<&'a str>; 2],
}

/// Maps one conversation. If it has no messages, the element is malformed.
pub(crate) fn read<'a>(element: &Element<'a>, context: &Context<'a>) -> Result<Records<'a>, ImportError> {
    let Context { account, assets, annotations, .. } = *context;
    let mapper = Mapper { assets, annotations, arena: element.arena() };
    let mut messages = Messages::with_room(mapper, element.text().len());
    let Some(raw) = raw::Conversation::read(element, &mut messages)? else {
        return Err(ImportError::malformed("it is not an object"));
    };
    check(&raw, &messages)?;
    let locator = element.locator();
    let mut warnings = Vec::new();
    if element.repeats_keys() {
        messages.drop_repeated();
    }
    let tree = messages.link();
    for key in tree.cycle_roots().iter().filter_map(|at| messages.key_at(*at)) {
        warnings.push((node_locator(&locator, key), "its parents lead back to it; it is read as a root"));
    }
    let others = messages.warnings.iter();
    warnings.extend(others.map(|(key, warning)| (node_locator(&locator, key), *warning)));
    if messages.chained {
        warnings.push((locator.clone(), CHAINED));
    }
    let id = conversation_id(&raw, &messages, context);
    let thread = raw.link_id.or(raw.id).unwrap_or_default();
    attachments::add_related(&mut messages.all, &messages.linked, thread, assets, element.arena());
    let source = EvidenceSource { conversation: &id, account, locator: &locator };
    let evidence = memory::evidence(&raw, messages.memories(), &source);
    let current = raw.current.and_then(|key| tree.nearest_kept(key)).and_then(|at| messages.key_at(at));
    let skipped = messages.malformed.iter();
    let skipped = skipped.map(|node| (node_locator(&locator, node.key), node.problem)).collect();
    let system = memory::system_instruction(messages.memories().map(|(_, facts)| facts));
    let ids = [raw.link_id, raw.id];
    let mut conversation = conversation(raw, id, current, system, context, element.arena());
    if !messages.tasks.is_empty() {
        conversation.tags.push(SCHEDULED.into());
        conversation.participants.extend(messages.tasks.iter().filter_map(scheduled_task));
    }
    conversation.locator = locator.into();
    Ok(Records { conversation, messages: messages.all, evidence, skipped, warnings, ids })
}

/// The warning if no node names another.
const CHAINED: &str =
    "no message names the one that it answers; each is read as the answer to the one before";

/// Refuses a conversation without a node to emit or to report.
fn check(raw: &raw::Conversation<'_>, messages: &Messages<'_>) -> Result<(), ImportError> {
    let problem = match raw.mapping {
        Mapping::Absent => "mapping is absent",
        Mapping::Null => "mapping is null",
        Mapping::NotAnObject => "mapping is not an object",
        Mapping::Nodes if messages.all.is_empty() && messages.malformed.is_empty() => "it holds no message",
        Mapping::Nodes => return Ok(()),
    };
    Err(ImportError::malformed(problem))
}

/// `conversations.json[17].mapping.<key>`
fn node_locator(locator: &str, key: &str) -> String {
    format!("{locator}.mapping.{key}")
}

fn conversation<'a>(
    mut raw: raw::Conversation<'a>,
    id: Cow<'a, str>,
    current: Option<&'a str>,
    system: Option<String>,
    context: &Context<'a>,
    arena: &'a Arena,
) -> Conversation<'a> {
    if let (Some(link_id), Some(id)) = (raw.link_id, raw.id)
        && link_id != id
    {
        raw.rest.add_text("id", id);
    }
    if let (Some(dangling), None) = (raw.current, current) {
        raw.rest.add_text("current_node", dangling);
    }
    let mut tags = tags(&raw);
    let other_id = raw.id.filter(|id| raw.link_id != Some(*id));
    for id in [raw.link_id, other_id].into_iter().flatten() {
        for (key, rows) in context.annotations.on_conversation(id) {
            raw.rest.add_json(key, &rows);
            if key == SHARED {
                tags.push("shared".into());
            }
        }
    }
    Conversation {
        id,
        provider_conversation_id: raw.link_id.or(raw.id).map(Cow::Borrowed),
        account: context.account.map(Cow::Borrowed),
        export_format_version: Some(Cow::Borrowed(context.version)),
        title: raw.title.map(Cow::Borrowed),
        created_at: raw.created,
        updated_at: raw.updated,
        model: raw.model.map(Cow::Borrowed),
        system_instruction: system.map(Cow::Owned),
        participants: custom_gpt(&raw).into_iter().collect(),
        tags,
        is_archived: raw.archived,
        current: current.map(Cow::Borrowed),
        raw_metadata: raw.rest.take_json(arena).map(unsigned_json),
        ..Conversation::default()
    }
}

/// The ids of projects and custom GPTs in `gizmo_id` and `conversation_template_id`.
fn gizmos<'a>(raw: &raw::Conversation<'a>) -> impl Iterator<Item = &'a str> {
    [raw.gizmo, raw.template].into_iter().flatten().filter(|id| id.starts_with("g-"))
}

/// Tags with the ids of the project and the custom GPT; the export has no names of them.
fn tags<'a>(raw: &raw::Conversation<'a>) -> Vec<Cow<'a, str>> {
    let mut tags: Vec<Cow<'a, str>> = Vec::new();
    for id in gizmos(raw) {
        let kind = if id.starts_with("g-p-") { "project" } else { "custom-gpt" };
        for tag in [kind, id] {
            if is_tag(tag) && !tags.iter().any(|known| known == tag) {
                tags.push(Cow::Borrowed(tag));
            }
        }
    }
    tags
}

/// Whether `text` is a valid PAM tag.
fn is_tag(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_'))
}

/// The custom GPT that answered.
fn custom_gpt<'a>(raw: &raw::Conversation<'a>) -> Option<Participant<'a>> {
    let id = gizmos(raw).find(|id| !id.starts_with("g-p-"))?;
    Some(Participant { role: Role::Assistant, name: None, provider_id: Some(Cow::Borrowed(id)) })
}

/// The task that wrote some of the person's messages, if the export names it.
fn scheduled_task<'a>(&(id, title): &(Option<&'a str>, Option<&'a str>)) -> Option<Participant<'a>> {
    let named = id.or(title).is_some();
    let task =
        Participant { role: Role::User, name: title.map(Cow::Borrowed), provider_id: id.map(Cow::Borrowed) };
    named.then_some(task)
}

/// PAM tag of conversations with messages from a scheduled task.
const SCHEDULED: &str = "scheduled-task";

/// The provider's id, or if there is none a hash of values that are the same in every export.
fn conversation_id<'a>(
    raw: &raw::Conversation<'a>,
    messages: &Messages<'a>,
    context: &Context<'_>,
) -> Cow<'a, str> {
    if let Some(id) = [raw.link_id, raw.id].into_iter().flatten().find(|id| !id.is_empty()) {
        return Cow::Borrowed(id);
    }
    let created = raw.created.map(|time| time.to_string());
    natural_key(&[context.account, created.as_deref(), raw.title, messages.first_key()]).into()
}
