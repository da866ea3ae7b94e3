//! `memories.json`: the saved memories that a browser tool reads from ChatGPT's page.

use satchel_importer::{
    Bundle, Element, Evidence, ImportError, Item, JsonError, Leftover, Parser, RecordKind, Sink,
    json::Kind,
    pam::{
        memory::{ExtractionMethod, MemoryType, Status},
        raw::RawObject,
    },
    snapshot,
};

use crate::record_list::RecordList;

/// Bytes of the head that distinguishes the file from those of other providers.
const HEAD: usize = 64 * 1024;
/// Memories of one file, and bytes of their records: far more than ChatGPT stores.
const MAX_MEMORIES: usize = 20_000;
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Whether the file is a list, in `memories` or at the root, whose first entry has `content` and a time or an id.
pub(crate) fn is_ours(bundle: &Bundle, path: &str) -> bool {
    let mut ours = false;
    let check = |element: Element<'_>| {
        ours = is_memory(&mut element.parser(), &mut Vec::new()).unwrap_or_default();
        false
    };
    let Ok(list) = RecordList::below(bundle, path, "/memories") else { return false };
    list.array().sample(bundle, HEAD, check).is_ok() && ours
}

fn is_memory<'a>(json: &mut Parser<'a>, keys: &mut Vec<&'a str>) -> Result<bool, JsonError> {
    if !json.enter_object()? {
        return Ok(false);
    }
    while let Some(key) = json.key()? {
        if key == "content" && json.kind()? != Kind::String {
            return Ok(false);
        }
        keys.push(key);
    }
    let dated = keys.iter().any(|key| matches!(*key, "created_at" | "updated_at" | "id"));
    Ok(dated && keys.contains(&"content"))
}

/// Reads the list as one snapshot, dated by its newest memory.
pub(crate) fn read(
    bundle: &Bundle,
    path: &str,
    account: Option<&str>,
    sink: &mut Sink,
) -> Result<Option<Evidence>, ImportError> {
    let (mut found, mut newest, mut bytes) = (Vec::new(), None, 0);
    let list = RecordList::below(bundle, path, "/memories")?;
    list.each(bundle, RecordKind::Memory, sink, |element, _| {
        bytes += element.text().len();
        if found.len() >= MAX_MEMORIES || bytes > MAX_BYTES {
            return Err(ImportError::malformed("there are too many memories"));
        }
        let Some((item, time)) = read_memory(&mut element.parser())? else {
            return Err(ImportError::malformed("it is no memory"));
        };
        newest = newest.max(time);
        found.push(item);
        Ok(())
    })?;
    if found.is_empty() {
        return Ok(None);
    }
    let evidence = snapshot("saved_memories".to_owned(), found, newest, path.to_owned());
    let account = account.map(ToOwned::to_owned);
    Ok(Some(Evidence { account, extraction_method: ExtractionMethod::BrowserExtraction, ..evidence }))
}

/// One memory and when it was last changed.
fn read_memory(json: &mut Parser<'_>) -> Result<Option<(Item, Option<i64>)>, JsonError> {
    if !json.enter_object()? {
        return Ok(None);
    }
    let (mut content, mut created, mut updated, mut rest) = (None, None, None, Leftover::default());
    while let Some(key) = json.key()? {
        match key {
            "content" => content = rest.nonempty_text(key, json)?,
            "created_at" => created = rest.time(key, json)?,
            "updated_at" => updated = rest.time(key, json)?,
            _ => rest.keep(key, json)?,
        }
    }
    json.end()?;
    let Some(content) = content.map(str::trim).filter(|content| !content.is_empty()) else { return Ok(None) };
    let mut item = Item::new(content, MemoryType::Fact);
    item.status = Some(Status::Active);
    (item.created_at, item.updated_at) = (created, updated);
    item.valid_from = created;
    item.metadata = rest.into_json().and_then(|json| RawObject::parse(json.into_owned()).ok());
    Ok(Some((item, updated.or(created))))
}
