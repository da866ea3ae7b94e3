//! Memory objects and the rows of `memory_contents`.

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, Value},
};

use super::{List, time_and_text};
use crate::record_type::{COLUMNS, LISTS};

/// Numbers of one vector; real ones have 1536.
const MAX_DIMENSIONS: usize = 65_536;

/// A memory object: all memories for one agent of one user.
#[derive(Debug, Default)]
pub(crate) struct Memory<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) agent: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    /// In the order of [`LISTS`].
    pub(crate) lists: [List<'a>; 3],
    /// The path of each list in the object, such as `data.profile_content`.
    pub(crate) places: [String; 3],
    /// With the texts of the times.
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Memory<'a> {
    /// Reads one element; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            it.field(key, json)?;
        }
        json.end()?;
        Ok(Some(it))
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "memory_id" => self.id = rest.nonempty_text(key, json)?,
            "agent_id" => self.agent = rest.nonempty_text(key, json)?,
            "user_id" => self.user = rest.nonempty_text(key, json)?,
            "created_at" => self.created = time_and_text(key, json, rest)?,
            "updated_at" => self.updated = time_and_text(key, json, rest)?,
            "data" => self.read_data(key, json)?,
            _ => match list_index(key) {
                Some(at) => self.read_list(at, key, key.to_owned(), json)?,
                None => rest.keep(key, json)?,
            },
        }
        Ok(())
    }

    /// Reads the lists in `data`, the argument of the constructor of the Python object.
    fn read_data(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !self.rest.object(key, json)? {
            return Ok(());
        }
        let outer = std::mem::take(&mut self.rest);
        while let Some(inner) = json.key()? {
            match list_index(inner) {
                Some(at) => self.read_list(at, inner, format!("{key}.{inner}"), json)?,
                None => self.rest.keep(inner, json)?,
            }
        }
        let kept = std::mem::replace(&mut self.rest, outer).into_json();
        if let Some(kept) = kept {
            self.rest.add_json(key, &kept);
        }
        Ok(())
    }

    fn read_list(
        &mut self,
        at: usize,
        key: &'a str,
        place: String,
        json: &mut Parser<'a>,
    ) -> Result<(), JsonError> {
        let read = List::read(key, json, &mut self.rest)?;
        if let (Some(list), Some(known)) = (self.lists.get_mut(at), self.places.get_mut(at)) {
            (*list, *known) = (read, place);
        }
        Ok(())
    }
}

/// The index in [`LISTS`] of a list or a column.
fn list_index(key: &str) -> Option<usize> {
    LISTS.iter().position(|name| *name == key).or_else(|| COLUMNS.iter().position(|name| *name == key))
}

/// A row of `memory_contents`: one list of a memory object, and the vector of its text.
#[derive(Debug, Default)]
pub(crate) struct Contents<'a> {
    pub(crate) memory: Option<&'a str>,
    /// `profile`, `event` or `mind`.
    pub(crate) kind: Option<&'a str>,
    pub(crate) list: List<'a>,
    pub(crate) text: Option<&'a str>,
    pub(crate) vector: Option<Vector>,
    pub(crate) rest: Leftover<'a>,
}

/// A vector of finite numbers, at least one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vector(pub(crate) Vec<f64>);

impl<'a> Contents<'a> {
    /// Reads one element; none if it is no object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "memory_id" => it.memory = rest.nonempty_text(key, json)?,
                "content_type" => it.kind = rest.nonempty_text(key, json)?,
                "content_data" => it.list = List::read(key, json, rest)?,
                "content_text" => it.text = rest.text(key, json)?,
                "content_vector" => it.vector = Vector::read(key, json, rest)?,
                _ => rest.keep(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }
}

impl Vector {
    /// Reads a list of numbers, or its text as the database writes it; anything else is kept.
    fn read<'a>(
        key: &'a str,
        json: &mut Parser<'a>,
        rest: &mut Leftover<'a>,
    ) -> Result<Option<Self>, JsonError> {
        if json.kind()? == Kind::Null {
            rest.keep(key, json)?;
            return Ok(None);
        }
        let raw = json.raw_value()?;
        let arena = json.arena();
        let vector = match Value::read(&mut Parser::new(raw, arena))? {
            Value::Text(text) => Self::of_json(text, arena),
            Value::Raw(raw) => Self::of_json(raw, arena),
            Value::Null => None,
        };
        if vector.is_none() {
            rest.add_json(key, raw);
        }
        Ok(vector)
    }

    fn of_json(text: &str, arena: &Arena) -> Option<Self> {
        let mut json = Parser::new(text, arena);
        if !json.enter_array().ok()? {
            return None;
        }
        let mut numbers = Vec::new();
        while json.item().ok()? {
            numbers.push(json.number().ok()?.as_f64());
            if numbers.len() > MAX_DIMENSIONS {
                return None;
            }
        }
        json.end().ok()?;
        let valid = !numbers.is_empty() && numbers.iter().all(|number| number.is_finite());
        valid.then_some(Self(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(text: &str) -> (Option<Vec<f64>>, bool) {
        let arena = Arena::new();
        let mut rest = Leftover::default();
        let found =
            Vector::read("content_vector", &mut Parser::new(text, &arena), &mut rest).expect("it is JSON");
        (found.map(|vector| vector.0), rest.is_empty())
    }

    #[test]
    fn a_vector_is_a_list_of_numbers_or_its_text() {
        assert_eq!(vector("[0.5,-1,2e-3]"), (Some(vec![0.5, -1.0, 0.002]), true));
        assert_eq!(vector("\"[0.5, -1]\""), (Some(vec![0.5, -1.0]), true));
        assert_eq!(vector("null"), (None, true));
        for odd in ["[]", "[1e999]", "[1,\"2\"]", "\"soon\"", "{}", "7", "\"[1] [2]\""] {
            assert_eq!(vector(odd), (None, false), "{odd}");
        }
    }
}
