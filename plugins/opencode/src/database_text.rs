//! Turns rows of a database into the objects that exports and storages have in their place.

use std::collections::BTreeMap;

use satchel_importer::{
    Arena, ImportError,
    sqlite::{ObjectText, Row, Table, Value},
};

use crate::fields;

/// Columns of a session that have other names in its exports.
const RENAMED: [(&str, &str); 3] =
    [("project_id", "projectID"), ("workspace_id", "workspaceID"), ("parent_id", "parentID")];
/// Columns of a session with JSON.
const JSON: [&str; 5] = ["model", "metadata", "revert", "permission", "fork_boundary"];
/// Columns that are members of objects in exports: the name of the object, and for each column the member.
const GROUPS: [(&str, &[(&str, &str)]); 3] = [
    (
        "summary",
        &[("summary_additions", "additions"), ("summary_deletions", "deletions"), ("summary_files", "files")],
    ),
    (
        "time",
        &[
            ("time_created", "created"),
            ("time_updated", "updated"),
            ("time_compacting", "compacting"),
            ("time_archived", "archived"),
            ("time_suspended", "suspended"),
            ("time_idle", "idle"),
            ("time_viewed", "viewed"),
        ],
    ),
    ("share", &[("share_url", "url")]),
];
/// Columns with counts of tokens.
const TOKENS: [(&str, &str); 3] =
    [("tokens_input", "input"), ("tokens_output", "output"), ("tokens_reasoning", "reasoning")];
/// Columns with counts of cached tokens.
const CACHED_TOKENS: [(&str, &str); 2] = [("tokens_cache_read", "read"), ("tokens_cache_write", "write")];
/// A column of a session that counts attempts to go on with it.
const STATE: &str = "resume_attempts";
/// Columns of a project that are states of the program, or a picture.
const NOT_OF_PROJECT: [&str; 8] = [
    "id",
    "icon_url",
    "icon_url_override",
    "icon_color",
    "time_created",
    "time_updated",
    "time_initialized",
    "time_active",
];

/// The session as `opencode export` prints it, and the columns that cannot be read. Columns that are not known keep their names.
pub(crate) fn session<'t>(table: &'t Table, row: &Row<'_>) -> Result<(String, Vec<&'t str>), ImportError> {
    let mut object = ObjectText::default();
    let mut groups: BTreeMap<&str, ObjectText> = BTreeMap::new();
    let mut left_out = Vec::new();
    for column in table.columns().filter(|column| !is_of_tokens(column) && *column != STATE) {
        let value = whole(row.get(column)?);
        // An empty text stands for what an earlier version did not know.
        if value == Value::Null || value == Value::Text(String::new()) {
            continue;
        }
        let group = GROUPS.iter().find_map(|(group, members)| Some((*group, renamed(members, column)?)));
        let read = if JSON.contains(&column) {
            json(&value).map(|json| object.json(column, &json)).is_some()
        } else if column == "summary_diffs" {
            json(&value).map(|json| groups.entry("summary").or_default().json("diffs", &json)).is_some()
        } else if let Some((group, member)) = group {
            groups.entry(group).or_default().value(member, &value)
        } else {
            object.value(renamed(&RENAMED, column).unwrap_or(column), &value)
        };
        if !read {
            left_out.push(column);
        }
    }
    for (name, group) in groups {
        object.json(name, &group.finish());
    }
    if let Some(tokens) = tokens(row)? {
        object.json("tokens", &tokens);
    }
    Ok((object.finish(), left_out))
}

/// What is known about a project, apart from its id.
pub(crate) fn project(table: &Table, row: &Row<'_>) -> Result<String, ImportError> {
    let mut object = ObjectText::default();
    for column in table.columns().filter(|column| !NOT_OF_PROJECT.contains(column)) {
        let value = row.get(column)?;
        match json(&value).filter(|_| matches!(column, "sandboxes" | "commands")) {
            Some(json) => object.json(column, &json),
            None => {
                // The program stores no bytes.
                let _known = object.value(column, &value);
            }
        }
    }
    Ok(object.finish())
}

/// The position of a task in its list, and its text.
pub(crate) fn task(row: &Row<'_>) -> Result<(i64, String), ImportError> {
    let mut object = ObjectText::default();
    for column in ["content", "status", "priority"] {
        // The program stores no bytes.
        let _known = object.value(column, &row.get(column)?);
    }
    Ok((row.integer("position")?.unwrap_or_default(), object.finish()))
}

/// The counts of tokens of a session, which versions before May 2026 do not have.
fn tokens(row: &Row<'_>) -> Result<Option<String>, ImportError> {
    let (mut tokens, mut cache) = (ObjectText::default(), ObjectText::default());
    let known = add_counts(row, &TOKENS, &mut tokens)?;
    if add_counts(row, &CACHED_TOKENS, &mut cache)? {
        tokens.json("cache", &cache.finish());
    }
    Ok(known.then(|| tokens.finish()))
}

/// Whether the row has any of these counts.
fn add_counts(row: &Row<'_>, columns: &[(&str, &str)], object: &mut ObjectText) -> Result<bool, ImportError> {
    let mut any = false;
    for (column, member) in columns {
        if let Some(count) = row.integer(column)? {
            object.json(member, &count.to_string());
            any = true;
        }
    }
    Ok(any)
}

/// The JSON text in a column, checked as a whole.
fn json(value: &Value) -> Option<String> {
    let Value::Text(text) = value else { return None };
    fields::value(text, &Arena::new()).ok()
}

/// A number as exports have it: those of type `real` are whole numbers there if they have no fraction.
fn whole(value: Value) -> Value {
    match value {
        #[expect(clippy::cast_possible_truncation, reason = "it is a whole number that fits")]
        Value::Real(number) if number.fract() == 0.0 && number.abs() < 1e15 => Value::Integer(number as i64),
        value => value,
    }
}

fn renamed<'n>(names: &[(&str, &'n str)], column: &str) -> Option<&'n str> {
    names.iter().find(|(name, _)| *name == column).map(|(_, member)| *member)
}

fn is_of_tokens(column: &str) -> bool {
    TOKENS.iter().chain(&CACHED_TOKENS).any(|(name, _)| *name == column)
}
