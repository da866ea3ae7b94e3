//! Reads prompts of AI Studio, with their chunks in order.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Conversation, Element, ImportError, Leftover, Message, Parser, RecordKind, Sink,
    address::unsigned_json,
    json::{Object, Value},
    names, natural_key, order,
    tree::{Link, Parent, Tree},
};

use crate::{
    conversation_file::ConversationFile,
    redact::{self, keep_value},
};

mod chunk;

use chunk::Chunk;

/// The most chunks of one prompt that are read.
const MAX_CHUNKS: usize = 200_000;

/// Reads and emits one prompt.
pub(crate) fn read<'a>(
    element: &Element<'a>,
    file: &ConversationFile<'_, 'a>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut json = element.parser();
    let arena = element.arena();
    let mut prompt = Prompt::default();
    if !json.enter_object()? {
        return Err(ImportError::malformed("it is not an object"));
    }
    while let Some(key) = json.key()? {
        match key {
            "id" => prompt.id = prompt.rest.nonempty_text(key, &mut json)?,
            "displayName" => prompt.title = prompt.rest.nonempty_text(key, &mut json)?,
            "title" if prompt.title.is_none() => prompt.title = prompt.rest.nonempty_text(key, &mut json)?,
            "createTime" => prompt.created = prompt.rest.time(key, &mut json)?,
            "updateTime" => prompt.updated = prompt.rest.time(key, &mut json)?,
            "systemInstruction" => {
                let value = Value::read(&mut json)?;
                prompt.take_instruction(key, value, arena);
            }
            "runSettings" => {
                let value = Value::read(&mut json)?;
                let settings = value.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
                prompt.model = settings.text("model");
                keep_value(&mut prompt.rest, key, value, arena);
            }
            "chunkedPrompt" if prompt.rest.object(key, &mut json)? => prompt.take_chunks(key, &mut json)?,
            _ if json.pending() => redact::keep(&mut prompt.rest, key, &mut json)?,
            _ => {}
        }
    }
    json.end()?;
    if !prompt.has_chunks {
        return Err(ImportError::malformed("it has no chunks"));
    }
    prompt.emit(file, sink)
}

#[derive(Default)]
struct Prompt<'a> {
    id: Option<&'a str>,
    title: Option<&'a str>,
    created: Option<i64>,
    updated: Option<i64>,
    model: Option<&'a str>,
    instruction: Option<String>,
    chunks: Vec<Value<'a>>,
    has_chunks: bool,
    rest: Leftover<'a>,
}

impl<'a> Prompt<'a> {
    fn take_chunks(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), ImportError> {
        let mut rest = Leftover::default();
        while let Some(key) = json.key()? {
            match key {
                "chunks" if rest.array(key, json)? => {
                    while json.item()? {
                        self.chunks.push(Value::read(json)?);
                        if self.chunks.len() > MAX_CHUNKS {
                            let reason = format!("it has more than {MAX_CHUNKS} chunks");
                            return Err(ImportError::malformed(reason));
                        }
                    }
                }
                _ if json.pending() => redact::keep(&mut rest, key, json)?,
                _ => {}
            }
        }
        if let Some(rest) = rest.into_json() {
            self.rest.add_json(key, &rest);
        }
        self.has_chunks = true;
        Ok(())
    }

    /// Takes a text, `{text}`, or `{parts: [{text}]}`. Keeps the value if it holds more.
    fn take_instruction(&mut self, key: &'a str, value: Value<'a>, arena: &'a Arena) {
        let object = value.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
        let parts = object.objects("parts", arena);
        let mut texts: Vec<&str> =
            value.nonempty_text().or_else(|| object.text("text")).into_iter().collect();
        if texts.is_empty() {
            texts.extend(parts.iter().filter_map(|part| part.text("text")));
        }
        let text_only = object.fields().all(|(key, value)| match key {
            "text" => value.text().is_some(),
            "parts" => parts.iter().all(|part| part.fields().all(|(key, _)| key == "text")),
            _ => false,
        });
        if !text_only || (texts.is_empty() && value.text().is_none()) {
            keep_value(&mut self.rest, key, value, arena);
        }
        self.instruction = Some(texts.join("\n\n")).filter(|text| !text.trim().is_empty());
    }

    fn emit(mut self, file: &ConversationFile<'_, 'a>, sink: &mut Sink) -> Result<(), ImportError> {
        let (mut chunks, mut skipped) = (Vec::new(), Vec::new());
        for (index, value) in std::mem::take(&mut self.chunks).into_iter().enumerate() {
            match Chunk::read(value, file.arena) {
                Ok(chunk) => chunks.push((index, chunk)),
                Err(reason) => skipped.push((index, reason)),
            }
        }
        let model = self.model.map(|model| model.strip_prefix("models/").unwrap_or(model));
        let first_prompt = chunks.iter().find_map(|(_, chunk)| chunk.user_text());
        let conversation = self.conversation(first_prompt, model, file);
        let locator = |index: usize| format!("{}.chunkedPrompt.chunks[{index}]", file.locator);
        let linear = chunks.iter().all(|(_, chunk)| chunk.branch_parent.is_none());
        if linear && order::contradicts(chunks.iter().map(|(_, chunk)| chunk.time())) {
            sink.warn(file.locator, order::KEPT);
        }
        let messages = messages(chunks, model, file, |index, warning| sink.warn(&locator(index), warning));
        sink.conversation(&conversation, &messages)?;
        for (index, reason) in skipped {
            sink.skip(RecordKind::Message, &locator(index), reason)?;
        }
        Ok(())
    }

    fn conversation(
        self,
        first_prompt: Option<&'a str>,
        model: Option<&'a str>,
        file: &ConversationFile<'_, 'a>,
    ) -> Conversation<'a> {
        let name = names::split(file.path).1;
        let extension = ["json", "txt"].iter().find(|extension| names::has_extension(name, extension));
        let stem =
            extension.and_then(|extension| name.get(..name.len() - extension.len() - 1)).unwrap_or(name);
        // Files of Drive have neither id nor title, so the file's name is the title.
        let natural = || natural_key(&[Some("aistudio"), Some(stem), first_prompt]);
        let title = self.title.filter(|title| !title.trim().is_empty());
        Conversation {
            id: self.id.map_or_else(|| Cow::Owned(natural()), Cow::Borrowed),
            provider_conversation_id: self.id.map(Cow::Borrowed),
            export_format_version: Some(Cow::Borrowed(file.version)),
            title: Some(title.map_or_else(|| Cow::Owned(stem.to_owned()), Cow::Borrowed)),
            created_at: self.created,
            updated_at: self.updated,
            model: model.map(Cow::Borrowed),
            system_instruction: self.instruction.map(Cow::Owned),
            raw_metadata: self.rest.into_json().map(unsigned_json),
            locator: Cow::Owned(file.locator.to_owned()),
            ..Conversation::default()
        }
    }
}

/// The chunks as messages. The parent of each is the chunk that it names, else the chunk before.
fn messages<'a>(
    chunks: Vec<(usize, Chunk<'a>)>,
    model: Option<&'a str>,
    file: &ConversationFile<'_, 'a>,
    mut warn: impl FnMut(usize, &str),
) -> Vec<Message<'a>> {
    for (index, _) in chunks.iter().filter(|(_, chunk)| !chunk.role_known) {
        warn(*index, "it does not say who speaks; it is read as the model's");
    }
    let folders = [names::split(file.path).0.to_owned()];
    let ids = chunk::ids(chunks.iter().map(|(_, chunk)| chunk));
    let known_ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let parents: Vec<Option<&str>> = chunks
        .iter()
        .enumerate()
        .map(|(at, (_, chunk))| {
            let named = chunk.branch_parent.filter(|parent| known_ids.contains(parent));
            named.or_else(|| at.checked_sub(1).and_then(|before| ids.get(before)).map(String::as_str))
        })
        .collect();
    let links = ids.iter().zip(&parents).map(|(id, parent)| Link { key: id, parent: *parent, kept: true });
    let tree = Tree::link(links, |_| []);
    for at in tree.cycle_roots() {
        if let Some((index, _)) = chunks.get(*at) {
            warn(*index, "its parents lead back to itself; it is read as a root");
        }
    }
    let numbers = tree.sibling_numbers(|at| chunks.get(at)?.1.time(), Some);
    let nodes = chunks.into_iter().zip(&ids).enumerate();
    nodes
        .map(|(at, ((_, mut chunk), id))| {
            if let Some(number) = numbers.get(&at) {
                chunk.set_sibling_number(*number);
            }
            let parent = match tree.parent(at) {
                Parent::Node(above) => ids.get(above).cloned(),
                Parent::Root | Parent::Absent(_) => None,
            };
            chunk.into_message(id.clone(), parent, model, &folders, file.bundle)
        })
        .collect()
}
