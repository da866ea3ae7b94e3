//! Results of calls: texts, elements of a prompt as the extension renders them, and pictures.

use std::borrow::Cow;

use satchel_importer::{Arena, Attachment, Fields, JsonError, json::Value};

use super::attachments;
use crate::fields::FIELD_READER;
/// The number that the program gives to the class of an object.
const CLASS: &str = "$mid";
/// The class of elements that are pictures.
const PICTURE: Value<'static> = Value::Raw("3");
/// Pictures of one result; the others are kept as they are.
const MAX_PICTURES: usize = 1_000;
/// Fields that say how an element is drawn.
const DRAWING: [&str; 5] = ["ctor", "ctorName", "lineBreakBefore", "priority", "type"];
/// Fields of a result that are known and kept.
const KEPT: [&str; 4] = ["content", "hasError", "toolMetadata", "toolResultError"];
/// Fields of its parts that are known and kept.
const PART: [&str; 4] = ["audience", "data", "mimeType", "value"];

/// What is read of a result.
#[derive(Debug, Default)]
pub(super) struct Output<'a> {
    pub(super) text: Option<String>,
    pub(super) pictures: Vec<Attachment<'a>>,
    /// What is not read.
    pub(super) rest: Option<Value<'a>>,
    /// Whether an unknown field in it holds text.
    pub(super) unread: bool,
}

/// Reads a result.
pub(super) fn read(mut result: Fields<'_>) -> Result<Output<'_>, JsonError> {
    let arena = result.arena();
    let (mut found, mut texts, mut others) = (Output::default(), Vec::new(), Vec::new());
    for item in result.take_array("content")?.unwrap_or_default() {
        match FIELD_READER.of(item, arena)? {
            Some(part) => {
                texts.extend(found.text_of(part, &mut others)?);
            }
            None => others.push(item.json()),
        }
    }
    if !others.is_empty() {
        result.push("content", list(&others, arena));
    }
    result.remove(&[CLASS]);
    found.rest = found.remaining(result, &KEPT).map(|json| Value::Raw(arena.alloc_str(&json)));
    found.text = Some(texts.join("\n")).filter(|text| !text.trim().is_empty());
    Ok(found)
}

fn list<'a>(items: &[Cow<'a, str>], arena: &'a Arena) -> Value<'a> {
    Value::Raw(arena.alloc_str(&format!("[{}]", items.join(","))))
}

impl<'a> Output<'a> {
    fn remaining(&mut self, fields: Fields<'a>, known: &[&str]) -> Option<Cow<'a, str>> {
        let rest = fields.into_rest(known);
        self.unread |= rest.unread().is_some();
        rest.into_json()
    }

    /// Reads one part: a text, a rendered element, or a picture. What remains of it goes to `others`.
    fn text_of(
        &mut self,
        mut part: Fields<'a>,
        others: &mut Vec<Cow<'a, str>>,
    ) -> Result<Option<String>, JsonError> {
        let arena = part.arena();
        let mut text = part.get("value").text().map(ToOwned::to_owned);
        if text.is_some() {
            part.take("value");
        } else if let Some(mut inside) = FIELD_READER.of(part.get("value"), arena)? {
            if let Some(root) = inside.take_object("node")? {
                let mut elements = Vec::new();
                text = Some(self.rendered(root, &mut elements)?);
                if !elements.is_empty() {
                    inside.push("node", list(&elements, arena));
                }
                part.take("value");
                if let Some(json) = self.remaining(inside, &["node"]) {
                    part.push("value", Value::Raw(arena.alloc_str(&json)));
                }
            }
        } else if self.pictures.len() < MAX_PICTURES
            && let Some(picture) = attachments::of_bytes(part.get("data"), part.get("mimeType").text(), arena)
        {
            self.pictures.push(picture);
            part.remove(&["data", "mimeType"]);
        }
        part.remove(&[CLASS]);
        others.extend(self.remaining(part, &PART));
        Ok(text)
    }

    /// The text of an element: those of its children, each on a new line if it says so. What remains of them goes to `others`.
    fn rendered(&mut self, root: Fields<'a>, others: &mut Vec<Cow<'a, str>>) -> Result<String, JsonError> {
        let arena = root.arena();
        let mut text = String::new();
        // The parser limits their depth.
        let mut stack = vec![root];
        while let Some(mut node) = stack.pop() {
            if node.get("lineBreakBefore").is_true() && !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(node.take_text("text").unwrap_or_default());
            if let Some(raw) = node.get("children").raw() {
                let children = FIELD_READER.items(raw, arena)?.into_iter().rev();
                let children =
                    children.map(|child| FIELD_READER.of(child, arena)).collect::<Result<Vec<_>, _>>()?;
                if children.iter().all(Option::is_some) {
                    node.take("children");
                    stack.extend(children.into_iter().flatten());
                }
            }
            if node.get("ctor") == PICTURE && self.pictures.len() < MAX_PICTURES {
                self.picture(&mut node)?;
            }
            node.remove(&DRAWING);
            others.extend(self.remaining(node, &["props", "references"]));
        }
        Ok(text)
    }

    /// Takes the picture of an element.
    fn picture(&mut self, node: &mut Fields<'a>) -> Result<(), JsonError> {
        let arena = node.arena();
        let Some(mut props) = FIELD_READER.of(node.get("props"), arena)? else { return Ok(()) };
        let Some(picture) = props.get("src").text().and_then(attachments::of_address) else { return Ok(()) };
        self.pictures.push(picture);
        props.remove(&["detail", "src"]);
        node.take("props");
        if let Some(json) = self.remaining(props, &[]) {
            node.push("props", Value::Raw(arena.alloc_str(&json)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output<'a>(raw: &'a str, arena: &'a Arena) -> Output<'a> {
        read(FIELD_READER.parse(raw, arena).expect("it is JSON")).expect("it is read")
    }

    #[test]
    fn rendered_results_are_read_in_order() {
        let arena = Arena::new();
        let raw = r#"{"$mid":20,"content":[{"$mid":23,"value":{"node":{"type":1,"children":[
            {"type":2,"text":"a","lineBreakBefore":false},
            {"type":1,"children":[{"type":2,"text":"b","lineBreakBefore":true}]},
            {"type":2,"text":"c"}]}}},{"value":"d"}]}"#;
        let found = output(raw, &arena);
        assert_eq!((found.text.as_deref(), found.rest, found.unread), (Some("a\nbc\nd"), None, false));
    }

    #[test]
    fn pictures_are_attached_and_what_is_not_read_is_kept() {
        let arena = Arena::new();
        let raw = r#"{"content":[{"value":{"node":{"ctor":2,"children":[{"text":"Taken."},
            {"ctor":3,"props":{"src":"data:image/png;base64,AAEC","detail":"high"},"children":[]}],"references":[7]}},"audience":["user"]},
            {"mimeType":"image/jpeg","data":{"$base64":"AAEC"}},{"mimeType":"image/png","data":{}},{"value":7},8],
            "hasError":true,"note":"A text that no importer knows about."}"#;
        let found = output(raw, &arena);
        let kinds: Vec<_> = found.pictures.iter().map(|picture| picture.mime_type.as_deref()).collect();
        assert_eq!(
            (found.text.as_deref(), kinds),
            (Some("Taken."), vec![Some("image/png"), Some("image/jpeg")])
        );
        let rest = found.rest.expect("there is more").json().into_owned();
        let kept = r#"[{"audience":["user"],"value":{"node":[{"references":[7]}]}},{"mimeType":"image/png"},{"value":7},8]"#;
        assert!(rest.contains(kept) && rest.contains(r#""hasError":true"#) && found.unread, "{rest}");
    }
}
