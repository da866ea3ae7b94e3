//! Prompts of AI Studio: a file each, with its chunks in order.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Bundle, Conversation, Element, ImportError, Leftover, Message, RecordKind, Sink,
    address::unsigned_json,
    json::{Object, Value},
    names, natural_key, order,
    tree::{Link, Parent, Tree},
};

use crate::{private, workspace::put};

mod chunk;

use chunk::Chunk;

/// More chunks in one prompt cannot be real.
const MAX_CHUNKS: usize = 200_000;

/// Reads and emits one prompt.
pub(crate) fn read(
    element: &Element<'_>,
    version: &'static str,
    path: &str,
    bundle: &Bundle,
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
            "id" => prompt.id = prompt.rest.words(key, &mut json)?,
            "displayName" => prompt.title = prompt.rest.words(key, &mut json)?,
            "title" if prompt.title.is_none() => prompt.title = prompt.rest.words(key, &mut json)?,
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
                put(&mut prompt.rest, key, value, arena);
            }
            "chunkedPrompt" if prompt.rest.object(key, &mut json)? => {
                let mut beside = Leftover::default();
                while let Some(key) = json.key()? {
                    match key {
                        "chunks" if beside.array(key, &mut json)? => {
                            while json.item()? {
                                prompt.chunks.push(Value::read(&mut json)?);
                                if prompt.chunks.len() > MAX_CHUNKS {
                                    return Err(ImportError::malformed(format!(
                                        "it has more than {MAX_CHUNKS} chunks"
                                    )));
                                }
                            }
                        }
                        _ if json.pending() => private::keep(&mut beside, key, &mut json)?,
                        _ => {}
                    }
                }
                if let Some(beside) = beside.into_json() {
                    prompt.rest.add_json(key, &beside);
                }
                prompt.listed = true;
            }
            _ if json.pending() => private::keep(&mut prompt.rest, key, &mut json)?,
            _ => {}
        }
    }
    json.end()?;
    if !prompt.listed {
        return Err(ImportError::malformed("it has no chunks"));
    }
    prompt.emit(&Scene { version, path, bundle, locator: &element.locator(), arena }, sink)
}

struct Scene<'s, 'a> {
    version: &'static str,
    path: &'s str,
    bundle: &'s Bundle,
    locator: &'s str,
    arena: &'a Arena,
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
    listed: bool,
    rest: Leftover<'a>,
}

impl<'a> Prompt<'a> {
    /// A text, `{text}`, or `{parts: [{text}]}`; what else it holds is kept.
    fn take_instruction(&mut self, key: &'a str, value: Value<'a>, arena: &'a Arena) {
        let object = value.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
        let parts = object.objects("parts", arena);
        let mut texts: Vec<&str> = value.words().or_else(|| object.text("text")).into_iter().collect();
        if texts.is_empty() {
            texts.extend(parts.iter().filter_map(|part| part.text("text")));
        }
        let plain = object.fields().all(|(key, value)| match key {
            "text" => value.text().is_some(),
            "parts" => parts.iter().all(|part| part.fields().all(|(key, _)| key == "text")),
            _ => false,
        });
        if !plain || (texts.is_empty() && value.text().is_none()) {
            put(&mut self.rest, key, value, arena);
        }
        self.instruction = Some(texts.join("\n\n")).filter(|text| !text.trim().is_empty());
    }

    fn emit(mut self, scene: &Scene<'_, 'a>, sink: &mut Sink) -> Result<(), ImportError> {
        let (mut chunks, mut skipped) = (Vec::new(), Vec::new());
        for (index, value) in std::mem::take(&mut self.chunks).into_iter().enumerate() {
            match Chunk::read(value, scene.arena) {
                Ok(chunk) => chunks.push((index, chunk)),
                Err(reason) => skipped.push((index, reason)),
            }
        }
        let model = self.model.map(|model| model.strip_prefix("models/").unwrap_or(model));
        let first = chunks.iter().find_map(|(_, chunk)| chunk.first_words());
        let conversation = self.conversation(first, model, scene);
        let place = |index: usize| format!("{}.chunkedPrompt.chunks[{index}]", scene.locator);
        let in_a_line = chunks.iter().all(|(_, chunk)| chunk.branch_parent.is_none());
        if in_a_line && order::contradicts(chunks.iter().map(|(_, chunk)| chunk.time())) {
            sink.warn(scene.locator, order::KEPT);
        }
        let messages = messages(chunks, model, scene, |index, warning| sink.warn(&place(index), warning));
        sink.conversation(&conversation, &messages)?;
        for (index, reason) in skipped {
            sink.skip(RecordKind::Message, &place(index), reason)?;
        }
        Ok(())
    }

    fn conversation(
        self,
        first: Option<&'a str>,
        model: Option<&'a str>,
        scene: &Scene<'_, 'a>,
    ) -> Conversation<'a> {
        let name = names::split(scene.path).1;
        let stem = ["json", "txt"].iter().find(|ending| names::ends_in(name, ending));
        let stem = stem.map_or(name, |ending| name.get(..name.len() - ending.len() - 1).unwrap_or(name));
        // Files of Drive hold neither id nor title: their name is the title.
        let natural = || natural_key(&[Some("aistudio"), Some(stem), first]);
        let titled = self.title.filter(|title| !title.trim().is_empty());
        Conversation {
            id: self.id.map_or_else(|| Cow::Owned(natural()), Cow::Borrowed),
            provider_conversation_id: self.id.map(Cow::Borrowed),
            export_format_version: Some(Cow::Borrowed(scene.version)),
            title: titled
                .map_or_else(|| Some(Cow::Owned(stem.to_owned())), |title| Some(Cow::Borrowed(title))),
            created_at: self.created,
            updated_at: self.updated,
            model: model.map(Cow::Borrowed),
            system_instruction: self.instruction.map(Cow::Owned),
            raw_metadata: self.rest.into_json().map(unsigned_json),
            locator: Cow::Owned(scene.locator.to_owned()),
            ..Conversation::default()
        }
    }
}

/// The chunks as messages: each answers the one before, or the one that it names.
fn messages<'a>(
    chunks: Vec<(usize, Chunk<'a>)>,
    model: Option<&'a str>,
    scene: &Scene<'_, 'a>,
    mut warn: impl FnMut(usize, &str),
) -> Vec<Message<'a>> {
    for (index, _) in chunks.iter().filter(|(_, chunk)| !chunk.speaks) {
        warn(*index, "it does not say who speaks; it is read as the model's");
    }
    let folders = [names::split(scene.path).0.to_owned()];
    let ids = chunk::ids(chunks.iter().map(|(_, chunk)| chunk));
    let known: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let parents: Vec<Option<&str>> = chunks
        .iter()
        .enumerate()
        .map(|(at, (_, chunk))| {
            let named = chunk.branch_parent.filter(|parent| known.contains(parent));
            named.or_else(|| at.checked_sub(1).and_then(|before| ids.get(before)).map(String::as_str))
        })
        .collect();
    let links = ids.iter().zip(&parents).map(|(id, parent)| Link { key: id, parent: *parent, kept: true });
    let tree = Tree::link(links, |_| []);
    for at in tree.cut() {
        if let Some((index, _)) = chunks.get(*at) {
            warn(*index, "its parents lead back to itself; it is read as a root");
        }
    }
    let parent_of = |at: usize| match tree.parent(at) {
        Parent::Node(above) => ids.get(above).cloned(),
        Parent::Root | Parent::Absent(_) => None,
    };
    let parents: Vec<Option<String>> = (0..chunks.len()).map(parent_of).collect();
    let numbers = tree.sibling_numbers(|at| chunks.get(at)?.1.time(), Some);
    let nodes = chunks.into_iter().zip(ids.iter().cloned().zip(parents)).enumerate();
    nodes
        .map(|(at, ((_, mut chunk), (id, parent)))| {
            if let Some(number) = numbers.get(&at) {
                chunk.number(*number);
            }
            chunk.into_message(id, parent, model, &folders, scene.bundle)
        })
        .collect()
}
