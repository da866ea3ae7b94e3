//! What conversations of Workspace and prompts of AI Studio have in common: both are one file each.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Bundle, Citation,
    address::{is_uri, unsigned},
    json::Object,
};

/// The file that is read, and where it is.
pub(crate) struct ConversationFile<'f, 'a> {
    /// The format version of its conversation.
    pub(crate) version: &'static str,
    pub(crate) path: &'f str,
    pub(crate) bundle: &'f Bundle,
    pub(crate) locator: &'f str,
    pub(crate) arena: &'a Arena,
}

/// Reads a citation, whatever Google's formats call its fields.
pub(crate) fn citation<'a>(source: &Object<'a>) -> Option<Citation<'a>> {
    let first = |keys: &[&str]| keys.iter().find_map(|key| source.text(key));
    let url = first(&["uri", "url", "source_url", "link"]).filter(|url| is_uri(url)).map(unsigned);
    let title = first(&["title", "name", "source_title"]).map(Cow::Borrowed);
    let snippet = first(&["snippet", "text", "content"]).map(Cow::Borrowed);
    (url.is_some() || title.is_some() || snippet.is_some()).then_some(Citation { title, url, snippet })
}

/// Returns `id` the first time, and `id#2`, `id#3` and so on for its repetitions.
pub(crate) fn unique_id(id: String, counts: &mut BTreeMap<String, usize>) -> String {
    let count = counts.entry(id.clone()).or_default();
    *count += 1;
    if *count == 1 { id } else { format!("{id}#{count}") }
}
