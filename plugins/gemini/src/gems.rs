//! Gems and other settings of Takeout's product "Gemini": labels in bold, each with what it stands for.

use satchel_importer::{
    Bundle, Evidence, ImportError, Item, Leftover, Sink,
    address::unsigned,
    json::quote,
    pam::{
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
    },
    snapshot,
};

use crate::html::{Event, is_block, walk};

/// Larger files of settings cannot be real.
const LIMIT: u64 = 16 * 1024 * 1024;
/// Records of one file that are taken.
const MAX_RECORDS: usize = 20_000;

/// What a file of settings holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Name, instructions, files.
    Gems,
    /// Standing requests.
    Actions,
}

/// One record: its labels with their lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Record {
    fields: Vec<Field>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Field {
    label: String,
    text: String,
    links: Vec<(String, String)>,
}

/// Reads one file of settings and emits what it says.
pub(crate) fn read(
    path: &str,
    setting: Setting,
    bundle: &Bundle,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let bytes = bundle.read(path, LIMIT)?;
    let mut records = records(&String::from_utf8_lossy(&bytes));
    if records.len() > MAX_RECORDS {
        sink.warn(path, &format!("there are more than {MAX_RECORDS} records; the rest is left out"));
        records.truncate(MAX_RECORDS);
    }
    let mut names: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for (index, record) in records.into_iter().enumerate() {
        let locator = format!("{path}[{index}]");
        let Some(said) = record.said() else {
            sink.skip(satchel_importer::RecordKind::Memory, &locator, "it holds no instructions")?;
            continue;
        };
        // Records of one name are told apart by their order.
        let repeats = names.iter().filter(|name| **name == said.name).count();
        names.push(said.name.clone());
        found.push(evidence(said, setting, repeats, locator));
    }
    if found.is_empty() { Ok(()) } else { sink.evidence(&found) }
}

/// Whether the page is one of Gems: known by its labels, whatever its name is.
pub(crate) fn are_gems(html: &str) -> bool {
    let records = records(html);
    let labels = |record: &Record| {
        let labels: Vec<&str> = record.fields.iter().map(|field| field.label.as_str()).collect();
        labels.starts_with(&["Name", "Instructions"])
    };
    !records.is_empty() && records.iter().all(labels)
}

/// A record by what it says.
struct Said {
    name: String,
    text: String,
    rest: Vec<Field>,
}

impl Record {
    /// The first field is the name, the second what is asked; labels are in the account's language.
    fn said(self) -> Option<Said> {
        let mut fields = self.fields.into_iter();
        let name = fields.next()?.text;
        let text = fields.next().map(|field| field.text).filter(|text| !text.is_empty())?;
        Some(Said {
            name,
            text,
            rest: fields.filter(|field| !field.text.is_empty() || !field.links.is_empty()).collect(),
        })
    }
}

fn evidence(said: Said, setting: Setting, repeats: usize, locator: String) -> Evidence {
    let kind = match setting {
        Setting::Gems => "gem",
        Setting::Actions => "scheduled_action",
    };
    let key = if repeats == 0 { said.name.clone() } else { format!("{}#{}", said.name, repeats + 1) };
    let mut item = match setting {
        Setting::Gems => Item::new(said.text, MemoryType::Instruction),
        Setting::Actions => {
            let mut item = Item::new(said.text, MemoryType::Custom);
            item.custom_type = Some("scheduled_action".to_owned());
            item
        }
    };
    item.scope = Some(format!("{kind}:{key}"));
    item.metadata = metadata(&said.name, &said.rest);
    // Nothing in the file says when it was so; the host takes the newest time of the export.
    let mut evidence = snapshot(format!("{kind}/{key}"), vec![item], None, locator);
    evidence.extraction_method = ExtractionMethod::ExplicitUserInput;
    evidence
}

fn metadata(name: &str, rest: &[Field]) -> Option<RawObject> {
    let mut kept = Leftover::default();
    if !name.is_empty() {
        kept.add_text("name", name);
    }
    let mut lists: Vec<(&str, String)> = Vec::new();
    for Field { label, text, links } in rest {
        let mut items: Vec<String> = links.iter().map(|(name, address)| link(name, address)).collect();
        let linked: Vec<&str> = links.iter().map(|(name, _)| name.as_str()).collect();
        items.extend(
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !linked.contains(line)).map(quoted),
        );
        lists.push((label, format!("[{}]", items.join(","))));
    }
    for (label, list) in &lists {
        kept.add_json(label, list);
    }
    kept.into_json().and_then(|text| RawObject::parse(text.into_owned()).ok())
}

/// A link without what would let others fetch the file.
fn link(name: &str, address: &str) -> String {
    let address = unsigned(address);
    let host = address.split("//").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let open = host.ends_with("usercontent.google.com") || host.ends_with("googleusercontent.com");
    let address = if open { address.split('?').next().unwrap_or_default() } else { &address };
    format!("{{\"name\":{},\"url\":{}}}", quoted(name), quoted(address))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    quote(text, &mut quoted);
    quoted
}

/// The records of a page: each begins with the label with which the first begins.
fn records(html: &str) -> Vec<Record> {
    let mut reader = Reader::default();
    walk(html, |event| reader.take(event));
    reader.end_field();
    let mut records: Vec<Record> = Vec::new();
    let first = reader.fields.first().map(|field| field.label.clone());
    for field in reader.fields {
        if Some(&field.label) == first.as_ref() {
            records.push(Record::default());
        }
        if let Some(record) = records.last_mut() {
            record.fields.push(field);
        }
    }
    records
}

#[derive(Default)]
struct Reader {
    fields: Vec<Field>,
    open: Option<Field>,
    bold: Option<String>,
    /// The address of the link that is open, and where its text begins.
    link: Option<(String, usize)>,
}

impl Reader {
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
                let open = self.open.as_mut().map(|field| &mut field.text);
                if let Some(out) = self.bold.as_mut().or(open) {
                    text.push_to(out);
                }
            }
            Event::Open(..) | Event::Close(_) => {}
        }
    }

    /// A label ends in a colon; other words in bold are words.
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
    fn labels_make_records_in_any_language() {
        let html = "<div><b>Name:</b>Tea<br><b>Instructions:</b>Be <b>bold</b>.<br>And short.<br><b>Files:</b><br>\
            <a href=\"https://drive.google.com/open?id=1\">a.md</a><br>b.md<br><br><br><b>Name:</b>Rye<br><b>Instructions:</b>x<br></div>";
        let found = records(html);
        assert_eq!(found.len(), 2);
        let fields: Vec<(&str, &str)> = found
            .iter()
            .flat_map(|record| &record.fields)
            .map(|field| (field.label.as_str(), field.text.as_str()))
            .collect();
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
        assert!(are_gems(html));
        assert!(!are_gems("<div></div>"));
        assert!(!are_gems("<b>Products:</b> Search"));
        let german = records("<b>Name:</b>A<br><b>Anleitung:</b>B<br><b>Name:</b>C<br><b>Anleitung:</b>D");
        assert_eq!(german.len(), 2);
    }

    #[test]
    fn keys_to_files_are_cut_off() {
        let opened = link("a", "https://contribution.usercontent.google.com/download?c=SECRET&filename=a");
        assert_eq!(opened, r#"{"name":"a","url":"https://contribution.usercontent.google.com/download"}"#);
        assert!(link("a", "https://drive.google.com/open?id=1").contains("id=1"));
    }
}
