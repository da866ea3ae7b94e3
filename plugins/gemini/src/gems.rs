//! Reads Gems and other settings of Takeout's product "Gemini": labels in bold, each followed by its value.

use satchel_importer::{
    Bundle, Evidence, ImportError, Item, Leftover, RecordKind, Sink,
    address::unsigned,
    json::Value,
    pam::{
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
    },
    snapshot,
};

use crate::html::{Event, is_block, walk};

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// The most records of one file that are imported.
const MAX_RECORDS: usize = 20_000;

/// What the records of a file of settings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingsKind {
    Gems,
    ScheduledActions,
}

/// One record, as its fields.
type Fields = Vec<Field>;

#[derive(Debug, Default)]
struct Field {
    label: String,
    text: String,
    /// Texts and addresses.
    links: Vec<(String, String)>,
}

/// Reads one file of settings and emits a memory for each record.
pub(crate) fn read(
    path: &str,
    kind: SettingsKind,
    bundle: &Bundle,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let bytes = bundle.read(path, MAX_FILE)?;
    let mut records = records(&String::from_utf8_lossy(&bytes));
    if records.len() > MAX_RECORDS {
        sink.warn(path, &format!("there are more than {MAX_RECORDS} records; the rest is left out"));
        records.truncate(MAX_RECORDS);
    }
    let mut names: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for (index, record) in records.into_iter().enumerate() {
        let locator = format!("{path}[{index}]");
        let mut fields = record.into_iter();
        // Labels are in the account's language, so the order tells name and instructions.
        let (name, text) = (fields.next().map(|field| field.text), fields.next().map(|field| field.text));
        let Some((name, text)) = name.zip(text.filter(|text| !text.is_empty())) else {
            sink.skip(RecordKind::Memory, &locator, "it holds no instructions")?;
            continue;
        };
        let metadata = metadata(&name, &fields.collect::<Fields>());
        // Records of the same name are numbered in their order.
        let repeats = names.iter().filter(|known| **known == name).count();
        let key = if repeats == 0 { name.clone() } else { format!("{name}#{}", repeats + 1) };
        names.push(name);
        found.push(evidence(text, kind, &key, metadata, locator));
    }
    if found.is_empty() { Ok(()) } else { sink.evidence(&found) }
}

/// Whether the labels of the page are those of Gems, whatever the name of the file.
pub(crate) fn is_gems_page(html: &str) -> bool {
    let records = records(html);
    let labels = |record: &Fields| {
        record.iter().map(|field| field.label.as_str()).take(2).eq(["Name", "Instructions"])
    };
    !records.is_empty() && records.iter().all(labels)
}

fn evidence(
    text: String,
    kind: SettingsKind,
    key: &str,
    metadata: Option<RawObject>,
    locator: String,
) -> Evidence {
    let (kind, memory_type, custom_type) = match kind {
        SettingsKind::Gems => ("gem", MemoryType::Instruction, None),
        SettingsKind::ScheduledActions => {
            ("scheduled_action", MemoryType::Custom, Some("scheduled_action".to_owned()))
        }
    };
    let mut item = Item::new(text, memory_type);
    item.custom_type = custom_type;
    item.scope = Some(format!("{kind}:{key}"));
    item.metadata = metadata;
    // The file holds no time, so the host uses the newest time of the export.
    let mut evidence = snapshot(format!("{kind}/{key}"), vec![item], None, locator);
    evidence.extraction_method = ExtractionMethod::ExplicitUserInput;
    evidence
}

/// The name and the fields behind the instructions.
fn metadata(name: &str, fields: &[Field]) -> Option<RawObject> {
    let mut metadata = Leftover::default();
    if !name.is_empty() {
        metadata.add_text("name", name);
    }
    let fields = fields.iter().filter(|field| !field.text.is_empty() || !field.links.is_empty());
    for Field { label, text, links } in fields {
        let mut items: Vec<String> = links.iter().map(|(name, address)| link(name, address)).collect();
        let linked: Vec<&str> = links.iter().map(|(name, _)| name.as_str()).collect();
        items.extend(
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !linked.contains(line)).map(quoted),
        );
        metadata.add_json(label, &format!("[{}]", items.join(",")));
    }
    metadata.into_json().and_then(|text| RawObject::parse(text.into_owned()).ok())
}

/// A link as JSON, without the parameters that let anybody fetch the file.
fn link(name: &str, address: &str) -> String {
    let address = unsigned(address);
    let host = address.split("//").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let open_access = host.ends_with("usercontent.google.com") || host.ends_with("googleusercontent.com");
    let address = if open_access { address.split('?').next().unwrap_or_default() } else { &address };
    format!("{{\"name\":{},\"url\":{}}}", quoted(name), quoted(address))
}

fn quoted(text: &str) -> String {
    Value::Text(text).json().into_owned()
}

/// The records of a page. Each begins with the label of the first field.
fn records(html: &str) -> Vec<Fields> {
    let mut reader = FieldReader::default();
    walk(html, |event| reader.take(event));
    reader.end_field();
    let first = reader.fields.first().map(|field| field.label.clone());
    let mut records: Vec<Fields> = Vec::new();
    for field in reader.fields {
        if Some(&field.label) == first.as_ref() {
            records.push(Fields::new());
        }
        if let Some(record) = records.last_mut() {
            record.push(field);
        }
    }
    records
}

/// Reads the fields of a page event by event.
#[derive(Default)]
struct FieldReader {
    fields: Vec<Field>,
    open: Option<Field>,
    /// The text of an open bold element.
    bold: Option<String>,
    /// The address of an open link, and the offset of its text in the open field.
    link: Option<(String, usize)>,
}

impl FieldReader {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Open("b" | "strong", _) => self.bold = Some(String::new()),
            Event::Close("b" | "strong") => self.end_bold(),
            Event::Open("br", _) => self.push("\n"),
            Event::Open("a", attributes) => {
                let start = self.open.as_ref().map_or(0, |field| field.text.len());
                self.link = attributes.get("href").map(|address| (address.to_owned(), start));
            }
            Event::Close("a") => self.end_link(),
            Event::Open(name, _) | Event::Close(name) if is_block(name) => self.push("\n"),
            Event::Text(text) => {
                let field = self.open.as_mut().map(|field| &mut field.text);
                if let Some(out) = self.bold.as_mut().or(field) {
                    text.push_to(out);
                }
            }
            Event::Open(..) | Event::Close(_) => {}
        }
    }

    /// Begins a field if the bold text ends in a colon. Other bold text is part of the open field.
    fn end_bold(&mut self) {
        let Some(bold) = self.bold.take() else { return };
        let trimmed = bold.trim();
        match trimmed.strip_suffix([':', '：']).map(str::trim).filter(|label| !label.is_empty()) {
            Some(label) => {
                self.end_field();
                self.open = Some(Field { label: label.to_owned(), ..Field::default() });
            }
            None => self.push(&bold),
        }
    }

    fn push(&mut self, text: &str) {
        if let Some(field) = &mut self.open {
            field.text.push_str(text);
        }
    }

    fn end_link(&mut self) {
        let (Some((address, start)), Some(field)) = (self.link.take(), &mut self.open) else { return };
        let name = field.text.get(start..).unwrap_or_default().trim().to_owned();
        field.links.push((name, address));
    }

    fn end_field(&mut self) {
        if let Some(field) = self.open.take() {
            self.fields.push(Field { text: field.text.trim().to_owned(), ..field });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_in_any_language() {
        let html = "<div><b>Name:</b>Tea<br><b>Instructions:</b>Be <b>bold</b>.<br>And short.<br><b>Files:</b><br>\
            <a href=\"https://drive.google.com/open?id=1\">a.md</a><br>b.md<br><br><br><b>Name:</b>Rye<br><b>Instructions:</b>x<br></div>";
        let found = records(html);
        assert_eq!(found.len(), 2);
        let fields: Vec<(&str, &str)> =
            found.iter().flatten().map(|field| (field.label.as_str(), field.text.as_str())).collect();
        assert_eq!(
            fields,
            [
                ("Name", "Tea"),
                ("Instructions", "Be bold.\nAnd short."),
                ("Files", "a.md\nb.md"),
                ("Name", "Rye"),
                ("Instructions", "x")
            ]
        );
        assert!(is_gems_page(html));
        assert!(!is_gems_page("<div></div>"));
        assert!(!is_gems_page("<b>Products:</b> Search"));
        let german = records("<b>Name:</b>A<br><b>Anleitung:</b>B<br><b>Name:</b>C<br><b>Anleitung:</b>D");
        assert_eq!(german.len(), 2);
    }

    #[test]
    fn parameters_that_give_access_are_removed() {
        let link_without_access =
            link("a", "https://contribution.usercontent.google.com/download?c=SECRET&filename=a");
        assert_eq!(
            link_without_access,
            r#"{"name":"a","url":"https://contribution.usercontent.google.com/download"}"#
        );
        assert!(link("a", "https://drive.google.com/open?id=1").contains("id=1"));
    }
}
