//! Who sends the messages: the person, or an AI.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, ImportError, JsonArray, Leftover, Parser, Role, address::unsigned_json, json::quote,
};

use crate::{raw::Identifier, run::absent_is_empty};

/// Senders of one history that are told apart. Real ones have two.
const MAX_SENDERS: usize = 1000;
/// The sender of the messages of the only AI, which needs no identifier.
const AI: &str = "AI";
/// The type of identifiers that are mail addresses.
const EMAIL: &str = "email";

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sender {
    /// The only AI.
    Ai,
    /// The one of `identifiers` at this index of [`Senders`].
    Known(usize),
    /// A mail address that is not among the identifiers.
    UnknownAddress,
    /// Anything else that is not among the identifiers.
    Unknown,
    /// The message names none.
    Absent,
}

/// Everybody in `identifiers`.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    list: Vec<Person>,
    /// By identifier and by name; the first one with it.
    index: BTreeMap<String, usize>,
    /// How many were more than fit.
    pub(crate) beyond_limit: usize,
    /// The fields of items that have no other place: a JSON array, if there are any.
    rest: Vec<String>,
}

/// One of `identifiers`.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) name: Option<String>,
    /// Its identifier, unless that is private.
    pub(crate) id: Option<String>,
    /// It has a mail address or a telephone number.
    by_contact: bool,
}

impl Senders {
    /// Reads the list of a file; without one nobody is known.
    pub(crate) fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut senders = Self::default();
        let read = JsonArray::new(path).pointer("/identifiers").survey(bundle, |element| {
            if let Ok(Ok(item)) = Identifier::read(&mut Parser::new(element.text(), element.arena())) {
                senders.add(item);
            }
            Ok(true)
        });
        absent_is_empty(read)?;
        Ok(senders)
    }

    fn add(&mut self, item: Identifier<'_>) {
        if self.list.len() == MAX_SENDERS {
            self.beyond_limit += 1;
            return;
        }
        for key in [item.identifier, item.name].into_iter().flatten() {
            self.index.entry(key.to_owned()).or_insert(self.list.len());
        }
        let by_contact = item.kind.is_some_and(|kind| kind.eq_ignore_ascii_case(EMAIL))
            || item.identifier.is_some_and(is_private);
        let mut rest = item.rest;
        if let Some(kind) = item.kind.filter(|kind| !kind.eq_ignore_ascii_case(EMAIL)) {
            rest.add_text("type", kind);
        }
        self.keep(item.name, rest);
        self.list.push(Person {
            name: item.name.map(ToOwned::to_owned),
            id: item.identifier.filter(|_| !by_contact).map(ToOwned::to_owned),
            by_contact,
        });
    }

    /// Keeps the fields that have no place, with the name that they belong to.
    fn keep(&mut self, name: Option<&str>, rest: Leftover<'_>) {
        let Some(rest) = rest.into_json() else { return };
        let mut named = String::from("{\"name\":");
        quote(name.unwrap_or_default(), &mut named);
        named.push(',');
        named.push_str(rest.get(1..).unwrap_or("}"));
        self.rest.push(unsigned_json(named.into()).into_owned());
    }

    /// The items of which fields are kept, as a JSON array.
    pub(crate) fn rest(&self) -> Option<String> {
        (!self.rest.is_empty()).then(|| format!("[{}]", self.rest.join(",")))
    }

    /// Everybody, each with the role of the messages.
    pub(crate) fn people(&self, has_ai: bool) -> impl Iterator<Item = (Role, &Person)> {
        self.list.iter().enumerate().map(move |(at, person)| (self.role(Sender::Known(at), has_ai).0, person))
    }

    /// The one whom a message names.
    pub(crate) fn find(&self, name: Option<&str>) -> Sender {
        let Some(name) = name else { return Sender::Absent };
        match self.index.get(name).or_else(|| self.index.get(name.trim())) {
            // The schema reserves this name, so an identifier of it belongs to the AI too.
            _ if name.trim().eq_ignore_ascii_case(AI) => Sender::Ai,
            Some(at) => Sender::Known(*at),
            None if is_address(name) => Sender::UnknownAddress,
            None => Sender::Unknown,
        }
    }

    /// The role of a sender, and whether it is certain. `has_ai`: the name of the only AI occurs in the history.
    pub(crate) fn role(&self, sender: Sender, has_ai: bool) -> (Role, bool) {
        match sender {
            Sender::Ai => (Role::Assistant, true),
            Sender::UnknownAddress => (Role::User, false),
            Sender::Unknown | Sender::Absent => (Role::Assistant, false),
            Sender::Known(at) => match self.list.get(at) {
                Some(person) if person.by_contact => (Role::User, true),
                // If only one AI takes part, it needs no identifier, so all who have one are people.
                _ if has_ai || self.list.len() == 1 => (Role::User, true),
                // Of several AIs each has an identifier.
                _ => (Role::Assistant, self.list.iter().any(|person| person.by_contact)),
            },
        }
    }

    /// The name to keep with a message, if the role does not say who sent it. Private identifiers are not kept.
    pub(crate) fn label<'n>(&'n self, sender: Sender, name: Option<&'n str>) -> Option<&'n str> {
        match sender {
            Sender::Known(at) if self.list.len() > 1 => {
                let person = self.list.get(at)?;
                person.name.as_deref().or(person.id.as_deref())
            }
            Sender::Unknown => name.filter(|name| !is_private(name)),
            Sender::Ai | Sender::Known(_) | Sender::UnknownAddress | Sender::Absent => None,
        }
    }
}

fn is_address(text: &str) -> bool {
    text.contains('@')
}

/// Whether it is a mail address or looks like a telephone number.
fn is_private(text: &str) -> bool {
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '(' | ')' | ' ' | '.' | '/');
    is_address(text) || (text.chars().all(numeric) && text.contains(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use satchel_importer::Bundle;

    use super::*;

    fn senders(identifiers: &str) -> Senders {
        let bundle = Bundle::from_files([("a.json", format!(r#"{{"identifiers":{identifiers}}}"#))]);
        Senders::read(&bundle, "a.json").expect("memory can be read")
    }

    fn role(senders: &Senders, name: &str, has_ai: bool) -> (Role, bool) {
        senders.role(senders.find(Some(name)), has_ai)
    }

    #[test]
    fn who_has_a_mail_address_is_a_person() {
        let known = senders(
            r#"[{"name":"Mo","type":"email","identifier":"mo@example.org"},{"name":"Pi","identifier":"pi"},{"name":"Ro","identifier":"ro"}]"#,
        );
        assert_eq!(role(&known, "mo@example.org", false), (Role::User, true));
        assert_eq!(role(&known, "Mo", false), (Role::User, true));
        assert_eq!(role(&known, "pi", false), (Role::Assistant, true));
        // With a sender that is the only AI, these two are people.
        assert_eq!(role(&known, "pi", true), (Role::User, true));
        assert_eq!(role(&known, " ai", true), (Role::Assistant, true));
        assert_eq!(role(&known, "li@example.org", true), (Role::User, false));
        assert_eq!(role(&known, "somebody", true), (Role::Assistant, false));
    }

    #[test]
    fn identifiers_that_say_nothing_are_uncertain() {
        let two = senders(r#"[{"name":"Mo","identifier":"u-1"},{"name":"Pi","identifier":"u-2"},4,{"x":1}]"#);
        assert_eq!(role(&two, "u-1", false), (Role::Assistant, false));
        let one = senders(r#"[{"name":"Mo","identifier":"user-1"}]"#);
        assert_eq!(role(&one, "user-1", false), (Role::User, true));
        assert_eq!(one.people(false).next().and_then(|(_, mo)| mo.id.clone()).as_deref(), Some("user-1"));
        let ids = senders(r#"[{"name":"a","identifier":"+49 30 12"},{"name":"b","identifier":"b@c"}]"#);
        assert!(ids.people(false).all(|(role, person)| role == Role::User && person.id.is_none()), "private");
    }
}
