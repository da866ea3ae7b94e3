//! Takes one entry of `messages` apart: its versions, of which the person sees one.

use satchel_importer::{
    Element, Fields, ImportError, JsonError, Role,
    json::{Value, ValueFields},
    natural_key,
    warnings::shortened,
};

use crate::{
    budget::Budget,
    fields::{FIELD_READER, take_items},
    files::Files,
    piece::Piece,
    reports::Findings,
    step::{self, Block, Builder},
};

/// Bytes of one entry. A guest has 128 MiB for it and for what becomes of it.
pub(crate) const MAX_LENGTH: usize = 16 * 1024 * 1024;
/// Fields of versions that are known and kept as they are.
const KEPT: [&str; 4] = ["preprocessed", "role", "senderInfo", "type"];

/// An entry that was taken apart. It has at least one version.
pub(crate) struct Entry<'a> {
    pub(crate) versions: Vec<Version<'a>>,
    /// The version that the person sees.
    pub(crate) selected: usize,
    pub(crate) findings: Findings,
}

/// One version of an entry. It has at least one piece.
pub(crate) struct Version<'a> {
    /// The id of its first step.
    pub(crate) id: Option<&'a str>,
    pub(crate) pieces: Vec<Piece<'a>>,
}

impl Version<'_> {
    /// The key of a version without an id: its role and its first words and files, which do not change when an answer goes on.
    pub(crate) fn natural_key(&self) -> String {
        let Some(first) = self.pieces.first() else { return natural_key(&[]) };
        let files: Vec<&str> = first.files.iter().filter_map(|file| file.provider_id.as_deref()).collect();
        let calls: Vec<&str> = first.calls.iter().map(|call| &*call.name).collect();
        let (text, files, calls) = (first.text(), files.join("\n"), calls.join("\n"));
        natural_key(&[Some(role_name(first.role)), Some(&text), Some(&files), Some(&calls)])
    }
}

/// Reads an entry. The first pass has no `files`.
pub(crate) fn read<'a>(element: &Element<'a>, files: Option<&Files<'_>>) -> Result<Entry<'a>, ImportError> {
    if element.text().len() > MAX_LENGTH {
        return Err(ImportError::malformed(format!("it is longer than {MAX_LENGTH} bytes")));
    }
    let mut json = element.parser();
    let mut fields = FIELD_READER.read(&mut json)?;
    json.end()?;
    let listed = fields.take_array_fields("versions")?;
    let listed = listed.ok_or_else(|| ImportError::malformed("it has no list of versions"))?;
    let chosen = fields.take("currentlySelected");
    let mut entry = Entry { versions: Vec::new(), selected: 0, findings: Findings::default() };
    let (wanted, mut budget) = (entry.wanted(chosen, listed.len()), Budget::default());
    for (at, value) in listed.into_iter().enumerate() {
        match read_version(value, at, &mut entry.findings, &mut budget, files) {
            Ok(version) => {
                // A version that cannot be read leaves the choice to the one before it.
                if at <= wanted {
                    entry.selected = entry.versions.len();
                }
                entry.versions.push(version);
            }
            Err(error) => entry.findings.skip(|| format!("versions[{at}]"), error.message),
        }
    }
    let first = entry.versions.first_mut().and_then(|version| version.pieces.first_mut());
    let first = first.ok_or_else(|| ImportError::malformed("none of its versions can be read"))?;
    fields.add_to(&mut first.rest, &[]);
    Ok(entry)
}

impl Entry<'_> {
    /// The number of the version that the person sees, among all that are listed.
    fn wanted(&mut self, chosen: Value<'_>, count: usize) -> usize {
        let last = count.saturating_sub(1);
        let number = chosen.as_u64().and_then(|number| usize::try_from(number).ok());
        match number {
            Some(number) if number <= last => number,
            None if count < 2 => 0,
            _ => {
                self.findings.warn("the version that was selected is not there; the last one counts");
                last
            }
        }
    }
}

fn read_version<'a>(
    value: ValueFields<'a>,
    at: usize,
    findings: &mut Findings,
    budget: &mut Budget,
    files: Option<&Files<'_>>,
) -> Result<Version<'a>, ImportError> {
    let mut fields = value.fields?.ok_or_else(|| ImportError::malformed("it is not an object"))?;
    let role = role(&mut fields, findings);
    let (steps, content) = (take_items(&mut fields, "steps")?, take_items(&mut fields, "content")?);
    // Text that the model was given may have what cannot be compared; it is kept then.
    if repeats(&fields, &content).unwrap_or(false) {
        fields.take("preprocessed");
    }
    let id = steps.iter().find_map(|step| step.fields.as_ref().ok()?.as_ref()).and_then(step::id_of);
    let model = fields.object("senderInfo")?.get("senderName").nonempty_text();
    let block =
        Block { id: None, index: 0, role, time: None, model, thought: false, tokens: None, streamed: false };
    let mut builder = Builder::new(findings, budget, files, format!("versions[{at}]"));
    let left = builder.parts(&block, content);
    for (index, step) in steps.into_iter().enumerate() {
        builder.step(index, step, role);
    }
    if builder.pieces.is_empty() {
        builder.push_empty(role, step::time_of(id))?;
    }
    let mut pieces = builder.pieces;
    let wrote = pieces.iter().find_map(|piece| piece.model).or(model);
    for piece in &mut pieces {
        piece.model = piece.model.or(wrote);
    }
    if let Some(first) = pieces.first_mut() {
        // An answer may first have only a status. Its time must stay when the words come.
        first.time = step::time_of(id).or(first.time);
        first.parts.splice(0..0, left);
        fields.add_to(&mut first.rest, &KEPT);
    }
    Ok(Version { id, pieces })
}

/// Takes the role and the type. What is not known is kept, with a warning.
fn role(fields: &mut Fields<'_>, findings: &mut Findings) -> Role {
    let (name, kind) = (fields.get("role").text(), fields.get("type").text());
    match kind {
        Some("singleStep" | "multiStep") => {
            fields.take("type");
        }
        other => {
            let kind = shortened(other.unwrap_or("none"));
            findings.warn(format!("a version of the unknown type {kind:?} is read like the others"));
        }
    }
    if let Some(role) = name.and_then(step::role_of) {
        fields.take("role");
        return role;
    }
    let role = if kind == Some("singleStep") { Role::User } else { Role::Assistant };
    let (name, taken) = (shortened(name.unwrap_or("none")), role_name(role));
    findings.warn(format!("the role {name:?} is unknown; the message is read as one of the {taken}"));
    role
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    }
}

/// Whether what the model was given is what the person wrote.
fn repeats<'a>(fields: &Fields<'a>, content: &[ValueFields<'a>]) -> Result<bool, JsonError> {
    let mut given = fields.object("preprocessed")?;
    let Some(parts) = given.take_array_fields("content")? else { return Ok(false) };
    given.take("role");
    let same = |one: &ValueFields<'a>, other: &ValueFields<'a>| -> Result<bool, JsonError> {
        let pair = one.fields.as_ref().map_err(|error| *error)?.as_ref();
        let pair = pair.zip(other.fields.as_ref().map_err(|error| *error)?.as_ref());
        Ok(pair.map_or(one.value == other.value, |(one, other)| one.iter().eq(other.iter())))
    };
    let mut repeats = given.iter().next().is_none() && parts.len() == content.len();
    for (one, other) in parts.iter().zip(content) {
        // Most are the same, so this rarely goes on after a difference.
        repeats = repeats && same(one, other)?;
    }
    Ok(repeats)
}
