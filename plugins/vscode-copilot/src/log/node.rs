//! A JSON value that is taken apart only where it changes.

use satchel_importer::{Arena, ImportError, Parser, json::quote};

use super::operation::{Change, Step};

/// Items of one list; answers of agents have thousands.
pub(super) const MAX_ITEMS: usize = 200_000;
/// Members and items that are taken apart or looked at for all changes of one value. Each takes up to 40 bytes.
const MAX_WORK: usize = 1_000_000;
/// Members that are compared in the time in which one is taken apart.
const COMPARED_AT_ONCE: usize = 16;

/// What the changes of one value may cost.
pub(super) struct Work<'a> {
    arena: &'a Arena,
    left: usize,
}

impl<'a> Work<'a> {
    pub(super) fn new(arena: &'a Arena) -> Self {
        Self { arena, left: MAX_WORK }
    }

    fn spend(&mut self, work: usize) -> Result<(), ImportError> {
        let left = self.left.checked_sub(work);
        self.left = left.ok_or_else(|| ImportError::malformed("the changes before it take too long"))?;
        Ok(())
    }
}

/// A value.
#[derive(Debug)]
pub(super) enum Node<'a> {
    /// Its JSON text.
    Raw(&'a str),
    /// An object whose members were needed.
    Object(Vec<(&'a str, Self)>),
    /// A list whose items were needed.
    List(Vec<Self>),
}

impl<'a> Node<'a> {
    /// Changes the value at the end of `path`.
    pub(super) fn apply(
        &mut self,
        path: &[Step],
        change: Change<'a>,
        work: &mut Work<'a>,
    ) -> Result<(), ImportError> {
        let Some((last, above)) = path.split_last() else { return self.change(change, work) };
        let mut node = self;
        for step in above {
            node = node.find(step, work)?.ok_or_else(nowhere)?;
        }
        if matches!(change, Change::Delete) {
            return node.remove(last, work);
        }
        node.find_or_add(last, work)?.change(change, work)
    }

    /// Appends the JSON text.
    pub(super) fn write(&self, json: &mut String) {
        match self {
            Self::Raw(raw) => json.push_str(raw),
            Self::Object(members) => {
                json.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    json.push_str(if at > 0 { "," } else { "" });
                    quote(key, json);
                    json.push(':');
                    value.write(json);
                }
                json.push('}');
            }
            Self::List(items) => {
                json.push('[');
                for (at, item) in items.iter().enumerate() {
                    json.push_str(if at > 0 { "," } else { "" });
                    item.write(json);
                }
                json.push(']');
            }
        }
    }

    fn change(&mut self, change: Change<'a>, work: &mut Work<'a>) -> Result<(), ImportError> {
        match change {
            Change::Initial(value) | Change::Set(value) => *self = Self::Raw(value),
            Change::Delete => *self = Self::Raw("null"),
            Change::Push { from, items } => {
                // What cannot be applied changes nothing.
                let new = Self::items(items.unwrap_or("[]"), work)?;
                self.expand(work)?;
                if matches!(self, Self::Raw("null")) {
                    *self = Self::List(Vec::new());
                }
                let Self::List(own) = self else {
                    return Err(ImportError::malformed("it extends what is no list"));
                };
                let length = from.unwrap_or(own.len());
                if length.saturating_add(new.len()) > MAX_ITEMS {
                    return Err(ImportError::malformed("it makes a list longer than the limit"));
                }
                work.spend(length.saturating_sub(own.len()))?;
                // As in the program, a list that is too short gets items without a value.
                own.resize_with(length, || Self::Raw("null"));
                own.extend(new);
            }
        }
        Ok(())
    }

    /// Takes the value apart.
    fn expand(&mut self, work: &mut Work<'a>) -> Result<(), ImportError> {
        let Self::Raw(raw) = *self else { return Ok(()) };
        if raw.starts_with('[') {
            *self = Self::List(Self::items(raw, work)?);
        } else if raw.starts_with('{') {
            *self = Self::Object(Self::members(raw, work)?);
        }
        Ok(())
    }

    fn items(raw: &'a str, work: &mut Work<'a>) -> Result<Vec<Self>, ImportError> {
        let (mut json, mut items) = (Parser::new(raw, work.arena), Vec::new());
        if !json.enter_array()? {
            return Err(ImportError::malformed("what it appends is not a list"));
        }
        while json.item()? {
            work.spend(1)?;
            items.push(Self::Raw(json.raw_value()?));
        }
        Ok(items)
    }

    fn members(raw: &'a str, work: &mut Work<'a>) -> Result<Vec<(&'a str, Self)>, ImportError> {
        let (mut json, mut members) = (Parser::new(raw, work.arena), Vec::new());
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                work.spend(1)?;
                members.push((key, Self::Raw(json.raw_value()?)));
            }
        }
        Ok(members)
    }

    /// The member or the item at `step`.
    fn find(&mut self, step: &Step, work: &mut Work<'a>) -> Result<Option<&mut Self>, ImportError> {
        self.expand(work)?;
        if let Self::Object(members) = self {
            work.spend(members.len() / COMPARED_AT_ONCE)?;
        }
        Ok(match (self, step) {
            (Self::Object(members), Step::Key(key)) => {
                members.iter_mut().rev().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            (Self::List(items), Step::Index(at)) => items.get_mut(*at),
            (Self::Raw(_) | Self::Object(_) | Self::List(_), _) => None,
        })
    }

    /// The same; adds null if it is a new member, or the item behind the last one.
    fn find_or_add(&mut self, step: &Step, work: &mut Work<'a>) -> Result<&mut Self, ImportError> {
        if self.find(step, work)?.is_none() {
            match (&mut *self, step) {
                (Self::Object(members), Step::Key(key)) => {
                    members.push((work.arena.alloc_str(key), Self::Raw("null")));
                }
                (Self::List(items), Step::Index(at)) if *at == items.len() && *at < MAX_ITEMS => {
                    items.push(Self::Raw("null"));
                }
                (Self::Raw(_) | Self::Object(_) | Self::List(_), _) => return Err(nowhere()),
            }
        }
        self.find(step, work)?.ok_or_else(nowhere)
    }

    /// Removes a member. An item becomes null, so that the others keep their numbers.
    fn remove(&mut self, step: &Step, work: &mut Work<'a>) -> Result<(), ImportError> {
        self.find(step, work)?;
        match (self, step) {
            (Self::Object(members), Step::Key(key)) => members.retain(|(name, _)| name != key),
            (Self::List(items), Step::Index(at)) if *at < items.len() => {
                items.iter_mut().skip(*at).take(1).for_each(|item| *item = Self::Raw("null"));
            }
            (Self::Raw(_) | Self::Object(_) | Self::List(_), _) => return Err(nowhere()),
        }
        Ok(())
    }
}

fn nowhere() -> ImportError {
    ImportError::malformed("its path leads to nothing")
}
