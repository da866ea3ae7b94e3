//! Configuration files in JSON. Comments and trailing commas are allowed, and kept.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode},
};

use super::{EditError, Edited, EntryLocation, ServerEntry};

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn install(
    text: &str,
    (key, typed): (&str, bool),
    place: EntryLocation<'_>,
    entry: &ServerEntry,
) -> Result<Edited, EditError> {
    // An empty file is what is left of an interrupted write of other programs.
    let root = parse(if text.trim().is_empty() { "{}\n" } else { text })?;
    let servers = match member(&root_object(&root)?, key)? {
        Some(servers) => object(&servers, key)?,
        None => root_object(&root)?.append(key, CstInputValue::Object(Vec::new())).object_value_or_set(),
    };
    let known = member(&servers, place.name)?;
    let before = known.map(|known| update(&known, place, entry)).transpose()?;
    if before.is_none() {
        let kind = typed.then(|| ("type".to_owned(), "stdio".into()));
        let fields = fields(entry).map(|(key, value)| (key.to_owned(), value));
        servers.append(place.name, CstInputValue::Object(kind.into_iter().chain(fields).collect()));
    }
    Ok(Edited { text: root.to_string(), before })
}

/// Makes an entry of ours start what `entry` says. Returns what it started before.
fn update(
    known: &CstObjectProp,
    place: EntryLocation<'_>,
    entry: &ServerEntry,
) -> Result<ServerEntry, EditError> {
    let found = read_own(known, place)?;
    let known = object(known, place.name)?;
    for (key, value) in fields(entry) {
        match member(&known, key)? {
            Some(field) => field.set_value(value),
            None => drop(known.append(key, value)),
        }
    }
    Ok(found)
}

pub(super) fn uninstall(text: &str, key: &str, place: EntryLocation<'_>) -> Result<Edited, EditError> {
    let absent = || Ok(Edited { text: text.to_owned(), before: None });
    if text.trim().is_empty() {
        return absent();
    }
    let root = parse(text)?;
    let Some(servers) = member(&root_object(&root)?, key)? else { return absent() };
    let Some(known) = member(&object(&servers, key)?, place.name)? else { return absent() };
    let before = read_own(&known, place)?;
    known.remove();
    Ok(Edited { text: root.to_string(), before: Some(before) })
}

/// Reads an entry, if it is ours.
fn read_own(known: &CstObjectProp, place: EntryLocation<'_>) -> Result<ServerEntry, EditError> {
    let found = read(known, place.name)?;
    if found.is_ours(place.executable) { Ok(found) } else { Err(EditError::Foreign(place.name.to_owned())) }
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &OPTIONS).map_err(|error| EditError::Syntax(error.to_string()))
}

fn root_object(root: &CstRootNode) -> Result<CstObject, EditError> {
    root.object_value().ok_or_else(|| EditError::WrongType("it".to_owned(), "an object"))
}

fn object(property: &CstObjectProp, name: &str) -> Result<CstObject, EditError> {
    property.object_value().ok_or_else(|| EditError::WrongType(format!("{name:?}"), "an object"))
}

/// Returns the member with this name.
fn member(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, EditError> {
    let mut named =
        object.properties().into_iter().filter(|one| one.decoded_name().is_some_and(|found| found == name));
    match (named.next(), named.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(EditError::Duplicate(name.to_owned())),
    }
}

/// Reads an entry. What is not a text counts as empty, so that the entry is not ours.
fn read(property: &CstObjectProp, name: &str) -> Result<ServerEntry, EditError> {
    let entry = object(property, name)?;
    let value = |key| Ok(member(&entry, key)?.and_then(|field| field.value()));
    let string =
        |node: CstNode| node.as_string_lit().and_then(|text| text.decoded_value().ok()).unwrap_or_default();
    let args = value("args")?.and_then(|args| args.as_array());
    Ok(ServerEntry {
        command: value("command")?.map(string).unwrap_or_default(),
        args: args.map(|args| args.elements().into_iter().map(string).collect()).unwrap_or_default(),
    })
}

fn fields(entry: &ServerEntry) -> impl Iterator<Item = (&'static str, CstInputValue)> {
    let args = entry.args.iter().map(|arg| arg.as_str().into()).collect();
    [("command", entry.command.as_str().into()), ("args", CstInputValue::Array(args))].into_iter()
}
