//! From the provider's shapes to records; pure: everything comes in by arguments and goes out as values.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, Conversation, Element, Evidence, ImportError, Message, Participant, Role,
    address::unsigned_json, natural_key,
};

use crate::{
    assets::Assets,
    memory,
    raw::{self, Mapping},
    remarks::Remarks,
};

mod arguments;
mod attachments;
mod blocks;
mod canvas;
mod citations;
mod content;
mod files;
mod marks;
mod message;
mod messages;
mod tools;

use message::Mapper;
pub(crate) use message::{SPEAKERLESS, is_role, role};
pub(crate) use messages::Messages;

/// What holds for every conversation of an export.
pub(crate) struct Context<'a> {
    pub(crate) account: Option<&'a str>,
    /// The version part of the format that was detected, such as `2026.07`.
    pub(crate) version: &'a str,
    pub(crate) assets: &'a Assets<'a>,
    pub(crate) remarks: &'a Remarks,
}

/// All that one element of the export gives.
#[derive(Default)]
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) evidence: Vec<Evidence>,
    /// Nodes that cannot be read: locator and reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
    /// Locator and what is odd.
    pub(crate) warnings: Vec<(String, &'static str)>,
    /// The ids by which other files may name it.
    pub(crate) named: [Option<&'a str>; 2],
}

/// The files in a list like that of `metadata.attachments`.
pub(crate) fn listed_files<'a>(
    listed: Option<&'a str>,
    assets: &'a Assets<'a>,
    arena: &'a Arena,
) -> Vec<Attachment<'a>> {
    attachments::attachments(Vec::new(), listed, assets, arena)
}

/// Maps one conversation. An element that gives none is malformed, with the reason.
pub(crate) fn records<'a>(element: &Element<'a>, context: &Context<'a>) -> Result<Records<'a>, ImportError> {
    let mapper = Mapper { assets: context.assets, remarks: context.remarks, arena: element.arena() };
    let mut read = Messages::with_room(mapper, element.text().len());
    let Some(raw) = raw::Conversation::read(element, &mut read)? else {
        return Err(ImportError::malformed("it is not an object"));
    };
    check(&raw, &read)?;
    let locator = element.locator();
    let mut warnings = Vec::new();
    if element.repeats_keys() {
        read.drop_repeated();
    }
    let tree = read.link();
    for key in tree.cut().iter().filter_map(|at| read.key_at(*at)) {
        warnings.push((node_locator(&locator, key), "its parents lead back to it; it is read as a root"));
    }
    let odd = read.oddities.iter();
    warnings.extend(odd.map(|(key, oddity)| (node_locator(&locator, key), *oddity)));
    if read.chained {
        warnings.push((locator.clone(), CHAINED));
    }
    let id = conversation_id(&raw, &read, context);
    files::join(&mut read, raw.address.or(raw.id).unwrap_or_default(), context.assets, element.arena());
    let at = memory::Place { conversation: &id, account: context.account, locator: &locator };
    let evidence = memory::evidence(&raw, &read, &at);
    let current = raw.current.and_then(|key| tree.kept_at(key)).and_then(|at| read.key_at(at));
    let skipped = read.odd.iter().map(|odd| (node_locator(&locator, odd.key), odd.problem)).collect();
    let system = memory::system_instruction(&read);
    let named = [raw.address, raw.id];
    let mut conversation = conversation(raw, id, current, system, context, element.arena());
    if !read.tasks.is_empty() {
        conversation.tags.push(SCHEDULED.into());
        conversation.participants.extend(read.tasks.iter().filter_map(scheduled_task));
    }
    let conversation = Conversation { locator: Cow::Owned(locator), ..conversation };
    Ok(Records { conversation, messages: read.all, evidence, skipped, warnings, named })
}

/// Said where no node names another.
const CHAINED: &str =
    "no message names the one that it answers; each is read as the answer to the one before";

/// Whether there is anything to emit or to report.
fn check(raw: &raw::Conversation<'_>, read: &Messages<'_>) -> Result<(), ImportError> {
    let problem = match raw.mapping {
        Mapping::Absent => "mapping is absent",
        Mapping::Null => "mapping is null",
        Mapping::Odd => "mapping is not an object",
        Mapping::Nodes if read.all.is_empty() && read.odd.is_empty() => "it holds no message",
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
    if let (Some(address), Some(other)) = (raw.address, raw.id)
        && address != other
    {
        raw.rest.add_text("id", other);
    }
    if let (Some(dangling), None) = (raw.current, current) {
        raw.rest.add_text("current_node", dangling);
    }
    let mut tags = tags(&raw);
    for id in [raw.address, raw.id].into_iter().flatten().take(if raw.address == raw.id { 1 } else { 2 }) {
        if let Some(feedback) = context.remarks.on_conversation(id) {
            raw.rest.add_json("feedback", &feedback);
        }
        if let Some(comparisons) = context.remarks.comparisons(id) {
            raw.rest.add_json("model_comparisons", &comparisons);
        }
        if let Some(shares) = context.remarks.shares(id) {
            raw.rest.add_json("shared_conversations", &shares);
            tags.push("shared".into());
        }
    }
    Conversation {
        id,
        provider_conversation_id: raw.address.or(raw.id).map(Cow::Borrowed),
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

/// What `gizmo_id` or `conversation_template_id` names.
fn gizmos<'a>(raw: &raw::Conversation<'a>) -> impl Iterator<Item = &'a str> {
    [raw.gizmo, raw.template].into_iter().flatten().filter(|id| id.starts_with("g-"))
}

/// A project and a custom GPT are told by their tags; the export names neither.
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

/// Whether PAM takes `text` for a tag.
fn is_tag(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_'))
}

/// The custom GPT that answered.
fn custom_gpt<'a>(raw: &raw::Conversation<'a>) -> Option<Participant<'a>> {
    let id = gizmos(raw).find(|id| !id.starts_with("g-p-"))?;
    Some(Participant { role: Role::Assistant, name: None, provider_id: Some(Cow::Borrowed(id)) })
}

/// Who wrote some of the person's turns, where the export names the task.
fn scheduled_task<'a>(&(id, title): &(Option<&'a str>, Option<&'a str>)) -> Option<Participant<'a>> {
    let named = id.or(title).is_some();
    let task =
        Participant { role: Role::User, name: title.map(Cow::Borrowed), provider_id: id.map(Cow::Borrowed) };
    named.then_some(task)
}

/// PAM tag of conversations with turns that a scheduled task wrote.
const SCHEDULED: &str = "scheduled-task";

/// The provider's id; some files give none, then a hash of what does not change from export to export.
fn conversation_id<'a>(
    raw: &raw::Conversation<'a>,
    read: &Messages<'a>,
    context: &Context<'_>,
) -> Cow<'a, str> {
    if let Some(id) = [raw.address, raw.id].into_iter().flatten().find(|id| !id.is_empty()) {
        return Cow::Borrowed(id);
    }
    let created = raw.created.map(|time| time.to_string());
    natural_key(&[context.account, created.as_deref(), raw.title, read.first_key()]).into()
}
