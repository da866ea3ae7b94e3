//! Lists of files that were changed, which are kept without what is in the files.

use satchel_importer::{
    Arena, Fields, ImportError,
    json::{Value, array_of, parse_items},
};

/// Members of a changed file that hold the file itself.
const CONTENTS: [&str; 4] = ["before", "after", "patch", "diff"];

/// Removes the contents of files from a list of changed files at `key`; the files themselves are elsewhere.
pub(crate) fn without_contents<'a>(fields: &mut Fields<'a>, key: &'a str) -> Result<(), ImportError> {
    let Some(raw) = fields.get(key).raw().filter(|raw| raw.starts_with('[')) else { return Ok(()) };
    let list = changed_files(raw, fields.arena())?;
    fields.take(key);
    fields.push(key, Value::Raw(fields.arena().alloc_str(&list)));
    Ok(())
}

/// The JSON text of a list of changed files, without what is in them.
pub(crate) fn changed_files<'a>(raw: &'a str, arena: &'a Arena) -> Result<String, ImportError> {
    let mut files = Vec::new();
    for value in parse_items(raw, arena)? {
        let Some(raw) = value.raw().filter(|raw| raw.starts_with('{')) else {
            files.push(value.json().into_owned());
            continue;
        };
        let mut file = Fields::parse(raw, arena)?;
        for name in CONTENTS {
            file.take(name);
        }
        files.push(file.into_json());
    }
    Ok(array_of(&files))
}
