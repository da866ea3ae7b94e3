//! The memories that Claude stores: of all conversations, of each project, and its memory files.

use satchel_importer::{
    Item, JsonError, Leftover, Parser,
    json::Kind,
    pam::memory::{ExtractionMethod, MemoryType},
    snapshot,
};

use super::{
    Found, Origin, metadata,
    prose::{self, Voice},
};

/// Series of the snapshots.
const CONVERSATIONS: &str = "conversations_memory";
const PROJECTS: &str = "project_memories";
const FILES: &str = "memory_files";

/// Whose memories a file holds, by its name `memories/<account>.json`.
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
pub(crate) fn read(json: &mut Parser<'_>, origin: &Origin<'_>, locator: &str) -> Result<Found, JsonError> {
    let mut reader = Reader { origin, locator, found: Found::default() };
    let mut account = None;
    let mut rest = Leftover::default();
    if !json.enter_object()? {
        reader.skip("", "it is not an object");
        return Ok(reader.found);
    }
    while let Some(key) = json.key()? {
        match key {
            "account_uuid" => account = rest.text(key, json)?,
            CONVERSATIONS => reader.conversations(json)?,
            PROJECTS => reader.projects(json)?,
            FILES => reader.files(json)?,
            _ => rest.keep(key, json)?,
        }
    }
    json.end()?;
    if let Some(rest) = rest.into_json() {
        let keys = keys(&mut Parser::new(&rest, json.arena()));
        reader.warn("", format!("these fields are not known and are not imported: {}", keys.join(", ")));
    }
    let account = account.or(origin.owner);
    for evidence in &mut reader.found.evidence {
        evidence.account = account.map(ToOwned::to_owned);
    }
    Ok(reader.found)
}

struct Reader<'r> {
    origin: &'r Origin<'r>,
    locator: &'r str,
    found: Found,
}

impl Reader<'_> {
    /// A text, or texts in a list or in an object by heading.
    fn conversations(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        match json.kind()? {
            Kind::Null => {}
            Kind::String => self.sections(json.string()?),
            Kind::Array => {
                json.enter_array()?;
                let mut all = Vec::new();
                while json.item()? {
                    match json.kind()? {
                        Kind::String => all.push(json.string()?),
                        Kind::Object => self.headings(json)?,
                        _ => self.skip(".conversations_memory", "it holds something that is no text"),
                    }
                }
                self.sections(&all.join("\n"));
            }
            Kind::Object => self.headings(json)?,
            Kind::Bool | Kind::Number => self.skip(".conversations_memory", "it is not a text"),
        }
        Ok(())
    }

    fn headings(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        json.enter_object()?;
        while let Some(heading) = json.key()? {
            match json.kind()? {
                Kind::Null => {}
                Kind::String => {
                    let text = json.string()?;
                    self.section(Some(heading), text.trim());
                }
                _ => self.skip(&format!(".conversations_memory.{heading}"), "it is not a text"),
            }
        }
        Ok(())
    }

    fn sections(&mut self, text: &str) {
        for section in prose::sections(text) {
            self.section(section.heading, &section.text);
        }
    }

    fn section(&mut self, heading: Option<&str>, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut item = Item::new(text, MemoryType::Context);
        let mut kept = Leftover::default();
        if let Some(heading) = heading {
            kept.add_text("heading", heading);
        }
        item.metadata = metadata(kept);
        let series =
            heading.map_or_else(|| CONVERSATIONS.to_owned(), |heading| format!("{CONVERSATIONS}/{heading}"));
        let locator = format!("{}.conversations_memory", self.locator);
        self.found.push(snapshot(series, vec![item], self.origin.observed, locator));
    }

    /// One memory for each project: headings differ from project to project.
    fn projects(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if json.null()? {
            return Ok(());
        }
        if !json.enter_object()? {
            self.skip(".project_memories", "it is not an object");
            return Ok(());
        }
        while let Some(project) = json.key()? {
            let place = format!(".project_memories.{project}");
            match json.kind()? {
                Kind::Null => {}
                Kind::String => {
                    let text = json.string()?.trim();
                    if !text.is_empty() {
                        let mut item = Item::new(text, MemoryType::Project);
                        item.scope = Some(format!("project:{project}"));
                        let locator = format!("{}{place}", self.locator);
                        let series = format!("{PROJECTS}/{project}");
                        self.found.push(snapshot(series, vec![item], self.origin.observed, locator));
                    }
                }
                _ => self.skip(&place, "it is not a text"),
            }
        }
        Ok(())
    }

    fn files(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if json.null()? {
            return Ok(());
        }
        if !json.enter_array()? {
            self.skip(".memory_files", "it is not a list");
            return Ok(());
        }
        let mut index = 0;
        while json.item()? {
            self.file(&format!(".memory_files[{index}]"), json)?;
            index += 1;
        }
        Ok(())
    }

    fn file(&mut self, place: &str, json: &mut Parser<'_>) -> Result<(), JsonError> {
        let (mut path, mut content, mut updated) = (None, None, None);
        let mut rest = Leftover::default();
        if !json.enter_object()? {
            self.skip(place, "it is not an object");
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "path" => path = rest.text(key, json)?,
                "content" => content = rest.text(key, json)?,
                "updated_at" => updated = rest.time(key, json)?,
                _ => rest.keep(key, json)?,
            }
        }
        match (path.filter(|path| !path.is_empty()), content) {
            (Some(_), Some(content)) if content.trim().is_empty() => {
                self.skip(place, "the memory file is empty");
            }
            (Some(path), Some(content)) => self.note_file(path, content, updated, rest, place),
            (None, _) => self.skip(place, "the memory file has no path"),
            (Some(_), None) => self.skip(place, "the memory file has no text"),
        }
        Ok(())
    }

    fn note_file(
        &mut self,
        path: &str,
        content: &str,
        updated: Option<i64>,
        mut rest: Leftover<'_>,
        place: &str,
    ) {
        rest.add_text("path", path);
        let metadata = metadata(rest);
        let bullets = prose::bullets(content);
        let whole = bullets.marked.is_empty();
        let make = |text: &str| {
            let mut item = Item::new(text, memory_type(path, whole));
            item.updated_at = updated;
            item.metadata.clone_from(&metadata);
            item
        };
        let spoken = |voice| {
            bullets.marked.iter().filter(move |(other, _)| *other == voice).map(|(_, text)| make(text))
        };
        let rest = if whole { content.trim().to_owned() } else { bullets.others.join("\n") };
        let lists: [(&str, ExtractionMethod, Vec<Item>); 3] = [
            ("", ExtractionMethod::ApiExport, if rest.is_empty() { Vec::new() } else { vec![make(&rest)] }),
            ("#stated", ExtractionMethod::ExplicitUserInput, spoken(Voice::Stated).collect()),
            ("#inferred", ExtractionMethod::LlmInference, spoken(Voice::Inferred).collect()),
        ];
        for (list, method, items) in lists {
            if items.is_empty() {
                continue;
            }
            let series = format!("{FILES}{path}{list}");
            let at = updated.or(self.origin.observed);
            let mut evidence = snapshot(series, items, at, format!("{}{place}", self.locator));
            evidence.extraction_method = method;
            self.found.push(evidence);
        }
    }

    fn skip(&mut self, place: &str, reason: &str) {
        self.found.skip(format!("{}{place}", self.locator), reason);
    }

    fn warn(&mut self, place: &str, message: String) {
        self.found.warnings.push((format!("{}{place}", self.locator), message));
    }
}

/// What a memory file is about, by its path.
fn memory_type(path: &str, whole: bool) -> MemoryType {
    let path = path.trim_start_matches('/');
    let (first, _) = path.split_once('/').unwrap_or((path, ""));
    match first.strip_suffix(".md").unwrap_or(first) {
        "people" => MemoryType::Relationship,
        // The whole profile says who the person is, one line of it a fact.
        "profile" if whole => MemoryType::Identity,
        "profile" => MemoryType::Fact,
        "preferences" => MemoryType::Preference,
        "projects" => MemoryType::Project,
        _ => MemoryType::Context,
    }
}

fn keys<'a>(json: &mut Parser<'a>) -> Vec<&'a str> {
    let mut keys = Vec::new();
    if let Ok(true) = json.enter_object() {
        while let Ok(Some(key)) = json.key() {
            keys.push(key);
        }
    }
    keys
}
