//! A value and the changes of it that count, in any order of their paths.
//!
//! A streamed answer is written again and again, so a change goes as soon as a later one makes it obsolete: what remains is about as long as
//! the value in the end.

use std::collections::BTreeMap;

use satchel_importer::{Arena, ErrorKind, ImportError, Parser};

use super::{
    MAX_REQUEST,
    node::{MAX_ITEMS, Node, Work},
    operation::{Change, Operation, Step},
    piece::{Piece, Source},
};

/// Changes of one value; the program rewrites a log after about a thousand lines.
const MAX_CHANGES: usize = 4_096;

/// A value with its changes.
#[derive(Debug)]
pub(super) struct Changed {
    base: Piece,
    /// By their paths inside the value. Those with the same path are in their order.
    changes: BTreeMap<Vec<Step>, Vec<Noted>>,
    count: usize,
    /// Bytes of all lines in `changes`.
    length: usize,
}

/// A change.
#[derive(Debug)]
struct Noted {
    line: Piece,
    number: u64,
    /// What it does to a list; none if it sets or deletes.
    push: Option<Push>,
}

/// What is certain about a change that extends a list.
#[derive(Clone, Copy, Debug)]
struct Push {
    /// Its items stand at this index, or behind it.
    start: usize,
    /// The list has at least this length afterwards.
    end: usize,
}

/// A value after its changes.
#[derive(Debug, Default)]
pub(crate) struct Restored<'a> {
    /// Its JSON text.
    pub(crate) text: &'a str,
    /// The changes that lead to nothing.
    pub(crate) failed: Vec<Failed>,
}

/// A line that cannot be applied.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Its number, from 0.
    pub(crate) line: u64,
    pub(crate) reason: String,
}

impl Changed {
    pub(super) fn new(base: Piece) -> Self {
        Self { base, changes: BTreeMap::new(), count: 0, length: 0 }
    }

    /// Bytes of the value and of the lines that change it.
    pub(super) fn len(&self) -> usize {
        self.base.len() + self.length
    }

    /// Notes the change in a line, and drops those that it makes obsolete. What is dropped could not have an effect whether this change can be
    /// applied or not: both need the same value above them, and nothing has replaced that since.
    pub(super) fn note(
        &mut self,
        path: &[Step],
        change: &Change<'_>,
        line: Piece,
        number: u64,
    ) -> Result<(), ImportError> {
        let push = match change {
            Change::Push { from, items } => Some(self.extend(path, *from, count_items(*items)?)?),
            Change::Set(_) | Change::Delete | Change::Initial(_) => {
                self.drop_from(path.to_vec(), path);
                None
            }
        };
        if self.count == MAX_CHANGES {
            return Err(ImportError::malformed("there are more changes of this value than the limit"));
        }
        (self.count, self.length) = (self.count + 1, self.length + line.len());
        self.changes.entry(path.to_vec()).or_default().push(Noted { line, number, push });
        Ok(())
    }

    /// Drops what the list loses when it is cut.
    fn extend(&mut self, path: &[Step], from: Option<usize>, items: usize) -> Result<Push, ImportError> {
        if from.unwrap_or_default().saturating_add(items) > MAX_ITEMS {
            return Err(ImportError::malformed("it makes a list longer than the limit"));
        }
        if let Some(from) = from {
            while let Some(cut) = self
                .changes
                .get_mut(path)
                .and_then(|same| same.pop_if(|last| last.push.is_some_and(|push| push.start >= from)))
            {
                self.forget(&cut);
            }
            let mut first = path.to_vec();
            first.push(Step::Index(from));
            self.drop_from(first, path);
        }
        let last = self.changes.get(path).and_then(|same| same.last()?.push);
        let start = from.unwrap_or_else(|| last.map_or(0, |last| last.end));
        Ok(Push { start, end: start.saturating_add(items) })
    }

    /// Drops the changes from the path `first` that are at `path` or inside it.
    fn drop_from(&mut self, first: Vec<Step>, path: &[Step]) {
        let inside = self.changes.range(first..).map(|(own, _)| own).take_while(|own| own.starts_with(path));
        for own in inside.cloned().collect::<Vec<_>>() {
            for dropped in self.changes.remove(&own).unwrap_or_default() {
                self.forget(&dropped);
            }
        }
    }

    fn forget(&mut self, dropped: &Noted) {
        (self.count, self.length) = (self.count - 1, self.length - dropped.line.len());
    }

    /// The value after all changes. Those that lead to nothing change nothing.
    pub(super) fn restore<'a>(
        &self,
        source: &mut Source,
        arena: &'a Arena,
    ) -> Result<Restored<'a>, ImportError> {
        if self.len() > MAX_REQUEST {
            return Err(ImportError::malformed(format!("it is longer than {MAX_REQUEST} bytes")));
        }
        if self.count == 0 {
            return Ok(Restored { text: source.text(&self.base, arena)?, failed: Vec::new() });
        }
        let mut changes: Vec<(&[Step], &Noted)> = Vec::with_capacity(self.count);
        for (path, same) in &self.changes {
            changes.extend(same.iter().map(|noted| (path.as_slice(), noted)));
        }
        changes.sort_unstable_by_key(|(_, noted)| noted.number);
        let pieces = Arena::new();
        let (mut node, mut work) = (Node::Raw(source.text(&self.base, &pieces)?), Work::new(&pieces));
        let mut failed = Vec::new();
        for (path, noted) in changes {
            let line = source.text(&noted.line, &pieces)?;
            let applied = Operation::read(&mut Parser::new(line, &pieces))
                .and_then(|operation| node.apply(path, operation.change(), &mut work));
            match applied {
                Ok(()) => {}
                Err(error) if error.kind == ErrorKind::Malformed => {
                    failed.push(Failed { line: noted.number, reason: error.message });
                }
                Err(error) => return Err(error),
            }
        }
        let mut json = String::with_capacity(self.base.len());
        node.write(&mut json);
        Ok(Restored { text: arena.alloc_str(&json), failed })
    }
}

/// The number of items that a line appends.
fn count_items(items: Option<&str>) -> Result<usize, ImportError> {
    let Some(raw) = items else { return Ok(0) };
    let (arena, mut count) = (Arena::new(), 0);
    let mut json = Parser::new(raw, &arena);
    if !json.enter_array()? {
        return Err(ImportError::malformed("what it appends is not a list"));
    }
    while json.item()? {
        json.skip_value()?;
        count += 1;
    }
    Ok(count)
}
