//! Fences that the program sets around the place of an edit. They say nothing without the edit's text, which is elsewhere.

use std::collections::BTreeSet;

use satchel_importer::{Fields, json::Value};

use super::calls;
/// The fence that the program sets around the place of an edit.
const FENCE: &str = "```";

/// The parts that are only fences around the place of an edit.
pub(super) fn find(parts: &[Fields<'_>]) -> BTreeSet<usize> {
    let kind = |at: usize| parts.get(at).and_then(|part| part.get("kind").text());
    let edit = |kind: Option<&str>| kind.is_some_and(|kind| kind == "codeblockUri" || calls::is_edit(kind));
    let near = |mut steps: Box<dyn Iterator<Item = usize>>| {
        edit(steps.find_map(|at| kind(at).filter(|kind| *kind != "undoStop")))
    };
    let is_fence = |at: &usize| {
        let text = parts
            .get(*at)
            .filter(|part| part.get("kind") == Value::Null)
            .and_then(|part| part.get("value").text());
        text.is_some_and(|text| text.trim() == FENCE)
    };
    let beside_edit = |at: &usize| {
        let behind = (*at + 1..parts.len()).take(3);
        let before = (at.saturating_sub(3)..*at).rev();
        near(Box::new(behind)) || near(Box::new(before))
    };
    (0..parts.len()).filter(is_fence).filter(beside_edit).collect()
}
