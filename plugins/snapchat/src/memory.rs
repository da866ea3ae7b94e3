//! The memory of My AI: a text for each time, with one memory on each line.

use satchel_importer::{
    ImportError, Item, Parser, RecordKind, Sink,
    pam::{memory::MemoryType, raw::RawObject, unread},
    snapshot,
};

use crate::raw;

/// Memories of one export. Real ones have some dozens.
const MAX_MEMORIES: usize = 10_000;
/// The name of the list.
const SERIES: &str = "my-ai-memory";

/// The memories found so far.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    items: Vec<Item>,
    /// The newest time.
    newest: Option<i64>,
    /// How many were more than fit.
    beyond_limit: usize,
}

impl Memories {
    /// Adds the lines of one entry.
    pub(crate) fn add(
        &mut self,
        json: &mut Parser<'_>,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let raw = raw::Memory::read(json)?.ok_or_else(|| ImportError::malformed("it has no named fields"))?;
        let text = raw.text.filter(|text| !text.trim().is_empty());
        let text = text.ok_or_else(|| ImportError::malformed("it has no memory"))?;
        if let Some(field) = raw.rest.unread() {
            sink.warn(locator, &unread::in_field(field));
        }
        let metadata = raw.rest.into_json().and_then(|rest| RawObject::parse(rest.into_owned()).ok());
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if self.items.len() == MAX_MEMORIES {
                self.beyond_limit += 1;
                continue;
            }
            let mut item = Item::new(line, MemoryType::Fact);
            item.updated_at = raw.time;
            item.metadata.clone_from(&metadata);
            self.items.push(item);
        }
        self.newest = self.newest.max(raw.time);
        Ok(())
    }

    /// Emits the list. The export has all memories of My AI at its time, which it does not state: the newest change stands for it.
    pub(crate) fn emit(
        self,
        account: Option<&str>,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if self.beyond_limit > 0 {
            let reason = format!("{} memories are more than fit", self.beyond_limit);
            sink.skip(RecordKind::Memory, locator, &reason)?;
        }
        if self.items.is_empty() {
            return Ok(());
        }
        let mut evidence = snapshot(SERIES.to_owned(), self.items, self.newest, locator.to_owned());
        evidence.account = account.map(ToOwned::to_owned);
        sink.evidence(&[evidence])
    }
}
