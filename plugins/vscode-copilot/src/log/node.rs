//! A JSON value that is taken apart only where it changes.

use satchel_importer::{Arena, ImportError, JsonError, Parser, json::quote};

use super::operation::{Change, Step};

/// Items of one list; answers of agents have thousands.
const MAX_ITEMS: usize = 200_000;

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
        arena: &'a Arena,
    ) -> Result<(), ImportError> {
        let Some((last, above)) = path.split_last() else { return self.change(change, arena) };
        let mut node = self;
        for step in above {
            node = node.find(step, arena)?.ok_or_else(nowhere)?;
        }
        if matches!(change, Change::Delete) {
            return node.remove(last, arena);
        }
        node.find_or_add(last, arena)?.change(change, arena)
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

    fn change(&mut self, change: Change<'a>, arena: &'a Arena) -> Result<(), ImportError> {
        match change {
            Change::Initial(value) | Change::Set(value) => *self = Self::Raw(value),
            Change::Delete => *self = Self::Raw("null"),
            Change::Push { from, items } => {
                if matches!(self, Self::Raw("null")) {
                    *self = Self::List(Vec::new());
                }
                self.expand(arena)?;
                let Self::List(own) = self else {
                    return Err(ImportError::malformed("it extends what is no list"));
                };
                own.truncate(from.unwrap_or(usize::MAX));
                let new = Self::items(items.unwrap_or("[]"), arena)?;
                if own.len() + new.len() > MAX_ITEMS {
                    return Err(ImportError::malformed("it makes a list longer than the limit"));
                }
                own.extend(new);
            }
        }
        Ok(())
    }

    /// Takes the value apart.
    fn expand(&mut self, arena: &'a Arena) -> Result<(), ImportError> {
        let Self::Raw(raw) = *self else { return Ok(()) };
        if raw.starts_with('[') {
            *self = Self::List(Self::items(raw, arena)?);
        } else if raw.starts_with('{') {
            *self = Self::Object(Self::members(raw, arena)?);
        }
        Ok(())
    }

    fn items(raw: &'a str, arena: &'a Arena) -> Result<Vec<Self>, ImportError> {
        let (mut json, mut items) = (Parser::new(raw, arena), Vec::new());
        if !json.enter_array()? {
            return Err(ImportError::malformed("what it appends is not a list"));
        }
        while json.item()? {
            items.push(Self::Raw(json.raw_value()?));
        }
        Ok(items)
    }

    fn members(raw: &'a str, arena: &'a Arena) -> Result<Vec<(&'a str, Self)>, JsonError> {
        let (mut json, mut members) = (Parser::new(raw, arena), Vec::new());
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                members.push((key, Self::Raw(json.raw_value()?)));
            }
        }
        Ok(members)
    }

    /// The member or the item at `step`.
    fn find(&mut self, step: &Step, arena: &'a Arena) -> Result<Option<&mut Self>, ImportError> {
        self.expand(arena)?;
        Ok(match (self, step) {
            (Self::Object(members), Step::Key(key)) => {
                members.iter_mut().rev().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            (Self::List(items), Step::Index(at)) => items.get_mut(*at),
            (Self::Raw(_) | Self::Object(_) | Self::List(_), _) => None,
        })
    }

    /// The same; adds null if it is a new member, or the item behind the last one.
    fn find_or_add(&mut self, step: &Step, arena: &'a Arena) -> Result<&mut Self, ImportError> {
        if self.find(step, arena)?.is_none() {
            match (&mut *self, step) {
                (Self::Object(members), Step::Key(key)) => {
                    members.push((arena.alloc_str(key), Self::Raw("null")));
                }
                (Self::List(items), Step::Index(at)) if *at == items.len() && *at < MAX_ITEMS => {
                    items.push(Self::Raw("null"));
                }
                (Self::Raw(_) | Self::Object(_) | Self::List(_), _) => return Err(nowhere()),
            }
        }
        self.find(step, arena)?.ok_or_else(nowhere)
    }

    /// Removes a member. An item becomes null, so that the others keep their numbers.
    fn remove(&mut self, step: &Step, arena: &'a Arena) -> Result<(), ImportError> {
        self.expand(arena)?;
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
