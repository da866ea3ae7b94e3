//! The memories that Claude stores: of all conversations, of each project, and its memory files.

use satchel_importer::{
    Item, JsonError, Leftover, Parser,
    json::{Kind, Object},
    pam::memory::{ExtractionMethod, MemoryType},
    snapshot,
};

use super::{Fallback, MemoryRecords, heading_metadata, metadata, prose};

/// Series of the snapshots, and the fields that they come from.
const CONVERSATIONS: &str = "conversations_memory";
const PROJECTS: &str = "project_memories";
const FILES: &str = "memory_files";

/// The account whose memories a file holds, from its name `memories/<account>.json`.
pub(crate) fn account_of(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/')?;
    let account = name.strip_suffix(".json")?;
    let uuid = account.len() == 36 && account.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    (folder.rsplit('/').next() == Some("memories") && uuid).then_some(account)
}

/// The newest time in one element of a memories file.
pub(crate) fn newest(json: &mut Parser<'_>) -> Result<Option<i64>, JsonError> {
    let mut newest = None;
    if !json.enter_object()? {
        return Ok(None);
    }
    while let Some(key) = json.key()? {
        if key != FILES || !json.enter_array()? {
            continue;
        }
        while json.item()? {
            if !json.enter_object()? {
                continue;
            }
            while let Some(key) = json.key()? {
                if key == "updated_at" {
                    newest = newest.max(Leftover::default().time(key, json)?);
                }
            }
        }
    }
    Ok(newest)
}

/// Reads one element of a memories file.
pub(crate) fn read(
    json: &mut Parser<'_>,
    fallback: &Fallback<'_>,
    locator: &str,
) -> Result<MemoryRecords, JsonError> {
    let mut reader = Reader { observed: fallback.observed, locator, records: MemoryRecords::default() };
    let mut account = None;
    let mut rest = Leftover::default();
    if !json.enter_object()? {
        reader.skip("", "it is not an object");
        return Ok(reader.records);
    }
    while let Some(key) = json.key()? {
        match key {
            "account_uuid" => account = rest.text(key, json)?,
            CONVERSATIONS => reader.read_conversations(json)?,
            PROJECTS => reader.read_projects(json)?,
            FILES => reader.read_files(json)?,
            _ => rest.keep(key, json)?,
        }
    }
    json.end()?;
    let mut records = reader.records;
    if let Some(rest) = rest.into_json() {
        let keys: Vec<&str> = Object::parse(&rest, json.arena()).fields().map(|(key, _)| key).collect();
        let message = format!("these fields are not known and are not imported: {}", keys.join(", "));
        records.warnings.push((locator.to_owned(), message));
    }
    let account = account.or(fallback.account);
    for evidence in &mut records.evidence {
        evidence.account = account.map(ToOwned::to_owned);
    }
    Ok(records)
}

struct Reader<'r> {
    observed: Option<i64>,
    locator: &'r str,
    records: MemoryRecords,
}

impl Reader<'_> {
    /// Reads a text, a list of texts, or an object of texts by heading.
    fn read_conversations(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        match json.kind()? {
            Kind::Null => {}
            Kind::String => self.add_sections(json.string()?),
            Kind::Array => {
                json.enter_array()?;
                let mut texts = Vec::new();
                while json.item()? {
                    match json.kind()? {
                        Kind::String => texts.push(json.string()?),
                        Kind::Object => self.read_headings(json)?,
                        _ => self.skip(".conversations_memory", "it holds something that is no text"),
                    }
                }
                self.add_sections(&texts.join("\n"));
            }
            Kind::Object => self.read_headings(json)?,
            Kind::Bool | Kind::Number => self.skip(".conversations_memory", "it is not a text"),
        }
        Ok(())
    }

    fn read_headings(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        json.enter_object()?;
        self.read_texts(CONVERSATIONS, json, |reader, heading, text| reader.add_section(Some(heading), text))
    }

    /// Reads the texts of an object that was entered; `add` gets each key with its text.
    fn read_texts(
        &mut self,
        field: &str,
        json: &mut Parser<'_>,
        add: fn(&mut Self, &str, &str),
    ) -> Result<(), JsonError> {
        while let Some(key) = json.key()? {
            match json.kind()? {
                Kind::Null => {}
                Kind::String => match json.string()?.trim() {
                    "" => {}
                    text => add(self, key, text),
                },
                _ => self.skip(&format!(".{field}.{key}"), "it is not a text"),
            }
        }
        Ok(())
    }

    fn add_sections(&mut self, text: &str) {
        for section in prose::split_sections(text) {
            self.add_section(section.heading, &section.text);
        }
    }

    fn add_section(&mut self, heading: Option<&str>, text: &str) {
        let mut item = Item::new(text, MemoryType::Context);
        item.metadata = heading_metadata(heading);
        let series =
            heading.map_or_else(|| CONVERSATIONS.to_owned(), |heading| format!("{CONVERSATIONS}/{heading}"));
        let locator = format!("{}.conversations_memory", self.locator);
        self.records.push(snapshot(series, vec![item], self.observed, locator));
    }

    /// Reads one memory for each project. It is not split: headings differ from project to project.
    fn read_projects(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if json.null()? {
            return Ok(());
        }
        if !json.enter_object()? {
            self.skip(".project_memories", "it is not an object");
            return Ok(());
        }
        self.read_texts(PROJECTS, json, |reader, project, text| {
            let mut item = Item::new(text, MemoryType::Project);
            item.scope = Some(format!("project:{project}"));
            let locator = format!("{}.{PROJECTS}.{project}", reader.locator);
            let series = format!("{PROJECTS}/{project}");
            reader.records.push(snapshot(series, vec![item], reader.observed, locator));
        })
    }

    fn read_files(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if json.null()? {
            return Ok(());
        }
        if !json.enter_array()? {
            self.skip(".memory_files", "it is not a list");
            return Ok(());
        }
        let mut index = 0;
        while json.item()? {
            self.read_file(&format!(".memory_files[{index}]"), json)?;
            index += 1;
        }
        Ok(())
    }

    fn read_file(&mut self, place: &str, json: &mut Parser<'_>) -> Result<(), JsonError> {
        let (mut path, mut content, mut updated) = (None, None, None);
        let mut rest = Leftover::default();
        if !json.enter_object()? {
            self.skip(place, "it is not an object");
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "path" => path = rest.nonempty_text(key, json)?,
                "content" => content = rest.text(key, json)?,
                "updated_at" => updated = rest.time(key, json)?,
                _ => rest.keep(key, json)?,
            }
        }
        match (path, content) {
            (Some(_), Some(content)) if content.trim().is_empty() => {
                self.skip(place, "the memory file is empty");
            }
            (Some(path), Some(content)) => self.add_file(path, content, updated, rest, place),
            (None, _) => self.skip(place, "the memory file has no path"),
            (Some(_), None) => self.skip(place, "the memory file has no text"),
        }
        Ok(())
    }

    fn add_file(
        &mut self,
        path: &str,
        content: &str,
        updated: Option<i64>,
        mut rest: Leftover<'_>,
        place: &str,
    ) {
        rest.add_text("path", path);
        let metadata = metadata(rest);
        let lines = prose::split_lines(content);
        let whole = lines.marked.is_empty();
        let item = |text: &str| {
            let mut item = Item::new(text, memory_type(path, whole));
            item.updated_at = updated;
            item.metadata.clone_from(&metadata);
            item
        };
        let marked = |method| {
            lines.marked.iter().filter(move |(other, _)| *other == method).map(|(_, text)| item(text))
        };
        let others = if whole { content.trim().to_owned() } else { lines.others.join("\n") };
        let others = Some(others).filter(|others| !others.is_empty());
        let (stated, inferred) = (ExtractionMethod::ExplicitUserInput, ExtractionMethod::LlmInference);
        let lists: [(&str, ExtractionMethod, Vec<Item>); 3] = [
            ("", ExtractionMethod::ApiExport, others.iter().map(|others| item(others)).collect()),
            ("#stated", stated, marked(stated).collect()),
            ("#inferred", inferred, marked(inferred).collect()),
        ];
        for (list, method, items) in lists {
            if items.is_empty() {
                continue;
            }
            let series = format!("{FILES}{path}{list}");
            let at = updated.or(self.observed);
            let mut evidence = snapshot(series, items, at, format!("{}{place}", self.locator));
            evidence.extraction_method = method;
            self.records.push(evidence);
        }
    }

    fn skip(&mut self, place: &str, reason: &str) {
        self.records.skip(format!("{}{place}", self.locator), reason);
    }
}

/// The type of a memory file, by its path.
fn memory_type(path: &str, whole: bool) -> MemoryType {
    let path = path.trim_start_matches('/');
    let (first, _) = path.split_once('/').unwrap_or((path, ""));
    match first.strip_suffix(".md").unwrap_or(first) {
        "people" => MemoryType::Relationship,
        // The whole profile identifies the person; one line of it is a fact.
        "profile" if whole => MemoryType::Identity,
        "profile" => MemoryType::Fact,
        "preferences" => MemoryType::Preference,
        "projects" => MemoryType::Project,
        _ => MemoryType::Context,
    }
}
