//! The text of `memories`, for the checksum that it declares.

use std::io;

use super::{ChecksumReading, MAX_DEPTH, Text, again::Again, store::member};
use crate::{
    checksum::Builder,
    jcs::{self, JcsError},
    json::tree::{self, Node, Notes},
    normal::normal_node,
};

/// Entries without an id that are counted among the others.
const MOST_NAMELESS: usize = 1 << 20;

/// The memories as they stand: hashed on the way as long as they come in id order.
#[derive(Default)]
pub(super) struct RawMemories {
    builder: Builder,
    count: u64,
    /// Where each stands, for a second look.
    places: Places,
    nameless: usize,
    unordered: bool,
    problem: Option<JcsError>,
    buffer: Vec<u8>,
}

/// Ids and places in the text, packed: a document may hold millions.
#[derive(Default)]
struct Places {
    ids: String,
    rows: Vec<Row>,
}

#[derive(Clone, Copy)]
struct Row {
    /// Where its id ends in `ids`; it begins where that before it ends.
    end: u32,
    length: u32,
    offset: usize,
}

impl Places {
    /// False where there is no room for more.
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

    /// The places in the order of their ids; memories with one id stay as written.
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

impl RawMemories {
    /// Entries, readable or not.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Counts an entry that is no JSON.
    pub(super) fn push_broken(&mut self) {
        self.push(&Node::Null, 0);
    }

    /// `offset`: bytes of the text before the entry.
    pub(super) fn push(&mut self, node: &Node<'_>, offset: usize) {
        self.count += 1;
        let Node::Object(object) = node else {
            // No memory, so no checksum that could be right; the issue is reported where it is read.
            return self.give_up("an entry is not an object");
        };
        let id = member(node, "id").unwrap_or_default();
        self.nameless += usize::from(id.is_empty());
        if self.nameless > MOST_NAMELESS {
            return self.give_up("too many entries have no id");
        }
        if self.problem.is_some() {
            return;
        }
        self.unordered |= self.places.last().is_some_and(|previous| previous > id.as_str());
        if !self.places.push(&id, offset, object.text.len()) {
            return self.give_up("the ids are too long");
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

    /// The memory that came last has a key twice: RFC 8785 knows no form of it, so that no checksum and no signature is about it.
    pub(super) fn refuse_duplicate_keys(&mut self) {
        self.give_up("a memory has a key twice");
    }

    fn give_up(&mut self, reason: &str) {
        self.problem.get_or_insert_with(|| JcsError::Value(reason.to_owned()));
        self.places = Places::default();
    }

    /// Which reading of the memories a declared checksum fits; none once that is not wanted any more. `skipped`: bytes at the start of
    /// `text` that offsets do not count.
    pub(super) fn judge(
        self,
        declared: Option<&str>,
        (text, skipped): (&dyn Text, usize),
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<Option<ChecksumReading>> {
        let Some(declared) = declared else { return Ok(Some(ChecksumReading::Absent)) };
        let Self { mut builder, places, unordered, problem, .. } = self;
        if let Some(problem) = problem {
            return Ok(Some(ChecksumReading::NotCanonical(problem.to_string())));
        }
        let order = places.in_order(!unordered);
        if unordered {
            match again(&order, (text, skipped), |node| node, wanted)? {
                None => return Ok(None),
                Some(Ok(read)) => builder = read,
                Some(Err(problem)) => return Ok(Some(ChecksumReading::NotCanonical(problem.to_string()))),
            }
        }
        let computed = builder.finish();
        if computed.to_string() == declared {
            return Ok(Some(ChecksumReading::Spec));
        }
        let Some(normal) = again(&order, (text, skipped), normal_node, wanted)? else { return Ok(None) };
        if normal.is_ok_and(|normal| normal.finish().to_string() == declared) {
            return Ok(Some(ChecksumReading::SdkNormalForm));
        }
        Ok(Some(ChecksumReading::Mismatch { computed }))
    }
}

/// Hashes the memories that stand in these places, each after `change`, as long as that is wanted.
fn again(
    order: &[(usize, u32)],
    (text, skipped): (&dyn Text, usize),
    change: fn(Node<'_>) -> Node<'_>,
    wanted: &dyn Fn() -> bool,
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
    let mut again = Again::new(text, skipped);
    let mut failed = None;
    let whole = again.each(order, &mut |bytes| {
        if let Err(problem) = hash(bytes) {
            failed = Some(problem);
        }
        wanted() && failed.is_none()
    })?;
    Ok(match failed {
        Some(problem) => Some(Err(problem)),
        None if whole => Some(Ok(builder)),
        None => None,
    })
}
