//! Compares the declared checksum of a store with the text of its `memories`.

use std::io;

use super::{ChecksumStatus, MAX_DEPTH, TextSource, reread::Rereader};
use crate::{
    checksum::Builder,
    jcs::{self, JcsError},
    json::tree::{self, Node, Notes},
    normal::normal_node,
};

/// Entries without an id that the checksum takes at most.
const MAX_WITHOUT_ID: usize = 1 << 20;

/// The memories as written. They are hashed while they are read, as long as they come in id order.
#[derive(Default)]
pub(super) struct MemoriesChecksum {
    builder: Builder,
    count: u64,
    /// Where each entry is, to read it again.
    entries: EntryIndex,
    without_id: usize,
    unordered: bool,
    problem: Option<JcsError>,
    buffer: Vec<u8>,
}

/// Ids and positions of entries in the text, packed because a document may hold millions.
#[derive(Default)]
struct EntryIndex {
    ids: String,
    rows: Vec<Row>,
}

#[derive(Clone, Copy)]
struct Row {
    /// End of its id in `ids`; the id starts at the end of the previous one.
    end: u32,
    length: u32,
    offset: usize,
}

impl EntryIndex {
    /// Adds an entry; false if the ids or the entry are too long to index.
    fn push(&mut self, id: &str, offset: usize, length: usize) -> bool {
        self.ids.push_str(id);
        let (Ok(end), Ok(length)) = (u32::try_from(self.ids.len()), u32::try_from(length)) else {
            return false;
        };
        self.rows.push(Row { end, length, offset });
        true
    }

    fn id(&self, row: usize) -> &str {
        let start = row.checked_sub(1).map_or(0, |before| self.rows[before].end);
        &self.ids[start as usize..self.rows[row].end as usize]
    }

    fn last(&self) -> Option<&str> {
        self.rows.len().checked_sub(1).map(|row| self.id(row))
    }

    /// Offsets and lengths in id order; memories with equal ids keep their order.
    fn in_order(self, sorted: bool) -> Vec<(usize, u32)> {
        let mut order: Vec<u32> = (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).collect();
        if !sorted {
            order.sort_by(|left, right| self.id(*left as usize).cmp(self.id(*right as usize)));
        }
        let rows = self.rows;
        drop(self.ids);
        order.into_iter().map(|row| (rows[row as usize].offset, rows[row as usize].length)).collect()
    }
}

impl MemoriesChecksum {
    /// Entries, readable or not.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds an entry that is not JSON.
    pub(super) fn push_broken(&mut self) {
        self.push(&Node::Null, 0);
    }

    /// Adds an entry; `offset` counts the bytes of the text before it.
    pub(super) fn push(&mut self, node: &Node<'_>, offset: usize) {
        self.count += 1;
        let Node::Object(object) = node else {
            // No checksum can be right; the issue is reported where the entry is read.
            return self.fail("an entry is not an object");
        };
        let id = node.member("id").unwrap_or_default();
        self.without_id += usize::from(id.is_empty());
        if self.without_id > MAX_WITHOUT_ID {
            return self.fail("too many entries have no id");
        }
        if self.problem.is_some() {
            return;
        }
        self.unordered |= self.entries.last().is_some_and(|previous| previous > id);
        if !self.entries.push(id, offset, object.text.len()) {
            return self.fail("the ids are too long");
        }
        if self.unordered {
            return;
        }
        self.buffer.clear();
        match jcs::write_tree(&mut self.buffer, node) {
            Ok(()) => self.builder.push_canonical(&self.buffer),
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// The last memory has a duplicate key. RFC 8785 has no form for it, so no checksum or signature can cover it.
    pub(super) fn refuse_duplicate_keys(&mut self) {
        self.fail("a memory has a key twice");
    }

    fn fail(&mut self, reason: &str) {
        self.problem.get_or_insert_with(|| JcsError::Value(reason.to_owned()));
        self.entries = EntryIndex::default();
    }

    /// Compares with the declared checksum; none if `keep_going` ends it. `skipped` counts the bytes at the start of `text` that
    /// offsets leave out.
    pub(super) fn compare(
        self,
        declared: Option<&str>,
        (text, skipped): (&dyn TextSource, usize),
        keep_going: &dyn Fn() -> bool,
    ) -> io::Result<Option<ChecksumStatus>> {
        let Some(declared) = declared else { return Ok(Some(ChecksumStatus::Absent)) };
        let Self { mut builder, entries, unordered, problem, .. } = self;
        if let Some(problem) = problem {
            return Ok(Some(ChecksumStatus::NotCanonical(problem.to_string())));
        }
        let order = entries.in_order(!unordered);
        if unordered {
            match rehash(&order, (text, skipped), |node| node, keep_going)? {
                None => return Ok(None),
                Some(Ok(read)) => builder = read,
                Some(Err(problem)) => return Ok(Some(ChecksumStatus::NotCanonical(problem.to_string()))),
            }
        }
        let computed = builder.finish();
        if computed.to_string() == declared {
            return Ok(Some(ChecksumStatus::Spec));
        }
        let Some(normal) = rehash(&order, (text, skipped), normal_node, keep_going)? else { return Ok(None) };
        if normal.is_ok_and(|normal| normal.finish().to_string() == declared) {
            return Ok(Some(ChecksumStatus::SdkNormalForm));
        }
        Ok(Some(ChecksumStatus::Mismatch { computed }))
    }
}

/// Reads and hashes the memories at these positions again, each after `change`; none if `keep_going` ends it.
fn rehash(
    order: &[(usize, u32)],
    (text, skipped): (&dyn TextSource, usize),
    change: fn(Node<'_>) -> Node<'_>,
    keep_going: &dyn Fn() -> bool,
) -> io::Result<Option<Result<Builder, JcsError>>> {
    let (mut builder, mut buffer) = (Builder::new(), Vec::new());
    let mut hash = |bytes: &[u8]| {
        let text = str::from_utf8(bytes).map_err(|problem| JcsError::Value(problem.to_string()))?;
        let node = tree::parse(text, MAX_DEPTH, &mut Notes::default())
            .map_err(|problem| JcsError::Value(problem.to_string()))?;
        buffer.clear();
        jcs::write_tree(&mut buffer, &change(node))?;
        builder.push_canonical(&buffer);
        Ok(())
    };
    let mut rereader = Rereader::new(text, skipped);
    let mut failed = None;
    let complete = rereader.each(order, &mut |bytes| {
        if let Err(problem) = hash(bytes) {
            failed = Some(problem);
        }
        keep_going() && failed.is_none()
    })?;
    Ok(match failed {
        Some(problem) => Some(Err(problem)),
        None if complete => Some(Ok(builder)),
        None => None,
    })
}
