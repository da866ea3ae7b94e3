//! Checks the field table of the README against every leaf of every fixture.

use satchel_importer::{
    names,
    testkit::{Emitted, FieldTable, FixtureError, Rule},
};
use satchel_plugin_gemini::Gemini;
use serde_json::Value;

const RULES: [(&str, Rule); 7] = [
    ("title", title),
    ("markdown", markdown),
    ("detail", detail),
    ("inner", |text, emitted| emitted.holds_json_in(text)),
    ("file", file),
    ("role", role),
    ("base64", base64),
];

#[test]
fn every_field_is_mapped_as_documented() -> Result<(), FixtureError> {
    let table = FieldTable::parse(include_str!("../../README.md"), root, &RULES);
    table.check::<Gemini>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

/// The first name of the table's paths for a file.
fn root(path: &str) -> Option<&'static str> {
    if path.contains("AI Studio/") || path.starts_with("prompts/") {
        Some("studio")
    } else if path.contains("Workspace/") {
        Some("work")
    } else {
        // A list of all products has rows that are not imported.
        (names::is_json(path) && path != "Takeout/My Activity/MyActivity.json").then_some("list")
    }
}

/// Every word of a title is emitted, in whatever field.
fn title(title: &Value, emitted: &Emitted) -> bool {
    title.as_str().unwrap_or_default().split_whitespace().all(|word| emitted.holds(word))
}

/// Every word between the tags is emitted, except those of scripts and styles.
fn markdown(html: &Value, emitted: &Emitted) -> bool {
    let mut html = html.as_str().unwrap_or_default().to_owned();
    for tag in ["script", "style"] {
        while let Some((start, end)) = html.find(&format!("<{tag}>")).zip(html.find(&format!("</{tag}>"))) {
            html.replace_range(start..end, "");
        }
    }
    let texts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let decode = |text: &str| text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    texts
        .flat_map(|text| decode(text).split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>())
        .all(|word| emitted.holds(&word))
}

fn detail(name: &Value, _: &Emitted) -> bool {
    matches!(name.as_str(), Some("Request" | "Response"))
}

/// A file is emitted by its path, which may be spelled differently.
fn file(name: &Value, emitted: &Emitted) -> bool {
    let name = name.as_str().unwrap_or_default().replace("%20", " ");
    emitted.holds(&name) || emitted.holds(&name.replace(".jpeg", ".jpg"))
}

fn role(role: &Value, emitted: &Emitted) -> bool {
    role == "model" && emitted.holds("assistant")
}

/// Bytes are emitted as numbers; those of the fixtures are the beginning of a PNG.
fn base64(data: &Value, emitted: &Emitted) -> bool {
    data == "iVBORw0KGgo=" && emitted.holds("137\n80\n78\n71\n13\n10\n26\n10")
}
