//! Who sends the messages: the person, or an AI.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, ImportError, JsonArray, Leftover, Parser, Role, address::unsigned_json, json::quote,
};

use crate::{
    contact::{is_contact, is_private},
    raw::Identifier,
    run::absent_is_empty,
};

/// Senders of one history that are told apart. Real ones have two.
const MAX_SENDERS: usize = 1000;
/// The sender of the messages of the only AI, which needs no identifier.
const AI: &str = "AI";
/// The type of identifiers that are mail addresses.
const EMAIL: &str = "email";

/// The sender of a message, as far as the file identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sender {
    /// The only AI.
    Ai,
    /// The one of `identifiers` at this index of [`Senders`].
    Identified(usize),
    /// A mail address or a telephone number that is not among the identifiers.
    UnknownContact,
    /// A word for the person, such as `user`, that is not among the identifiers.
    UnknownUser,
    /// A word for the AI, such as `assistant`, that is not among the identifiers.
    UnknownAssistant,
    /// Anything else that is not among the identifiers.
    Unknown,
    /// The message names none.
    Absent,
}

/// The people and AIs in `identifiers`.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    list: Vec<Person>,
    /// By identifier and by name; the first one with it.
    index: BTreeMap<String, usize>,
    /// One of them is stated to be a person.
    has_user: bool,
    /// One of them is stated to be an AI.
    has_assistant: bool,
    /// How many were more than fit.
    pub(crate) beyond_limit: usize,
    /// The fields of items that have no other place: a JSON array, if there are any.
    rest: Vec<String>,
}

/// One of `identifiers`.
#[derive(Debug)]
pub(crate) struct Person {
    /// Its name, unless that is private.
    pub(crate) name: Option<String>,
    /// Its identifier, unless that is private.
    pub(crate) id: Option<String>,
    /// The role that a mail address, a telephone number or a word such as `assistant` gives it.
    stated: Option<Role>,
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
        let email = item.kind.is_some_and(|kind| kind.eq_ignore_ascii_case(EMAIL));
        let texts = || [item.identifier, item.name].into_iter().flatten();
        let contact = email || item.contact || texts().any(is_contact);
        // Some exporters repeat the address as the name.
        let repeated = contact && item.name == item.identifier;
        let name = item.name.filter(|name| !repeated && !is_private(name));
        let mut rest = item.rest;
        if let Some(kind) = item.kind.filter(|_| !email) {
            rest.add_text("type", kind);
        }
        self.keep(name, rest);
        let stated = if contact { Some(Role::User) } else { texts().find_map(role_of_word) };
        self.has_user |= stated == Some(Role::User);
        self.has_assistant |= stated == Some(Role::Assistant);
        self.list.push(Person {
            name: name.map(ToOwned::to_owned),
            id: item.identifier.filter(|id| !email && !is_private(id)).map(ToOwned::to_owned),
            stated,
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

    /// The items with fields that have no other place, as a JSON array.
    pub(crate) fn rest(&self) -> Option<String> {
        (!self.rest.is_empty()).then(|| format!("[{}]", self.rest.join(",")))
    }

    /// All of them, each with the role of its messages.
    pub(crate) fn people(&self, has_ai: bool) -> impl Iterator<Item = (Role, &Person)> {
        self.list
            .iter()
            .enumerate()
            .map(move |(at, person)| (self.role(Sender::Identified(at), has_ai).0, person))
    }

    /// The sender with the name or identifier that a message gives.
    pub(crate) fn find(&self, name: Option<&str>) -> Sender {
        let Some(name) = name else { return Sender::Absent };
        match self.index.get(name).or_else(|| self.index.get(name.trim())) {
            // The schema reserves this name, so an identifier of it belongs to the AI too.
            _ if name.trim().eq_ignore_ascii_case(AI) => Sender::Ai,
            Some(at) => Sender::Identified(*at),
            None if is_contact(name) => Sender::UnknownContact,
            None => match role_of_word(name) {
                Some(Role::User) => Sender::UnknownUser,
                Some(_) => Sender::UnknownAssistant,
                None => Sender::Unknown,
            },
        }
    }

    /// The role of a sender, and whether it is certain. `has_ai`: the name of the only AI occurs in the history.
    pub(crate) fn role(&self, sender: Sender, has_ai: bool) -> (Role, bool) {
        match sender {
            Sender::Ai => (Role::Assistant, true),
            Sender::UnknownContact | Sender::UnknownUser => (Role::User, false),
            // Everybody other than the only AI is a person.
            Sender::Unknown if has_ai => (Role::User, false),
            Sender::Unknown | Sender::UnknownAssistant | Sender::Absent => (Role::Assistant, false),
            Sender::Identified(at) => match self.list.get(at).and_then(|person| person.stated) {
                Some(stated) => (stated, true),
                // If only one AI takes part, it needs no identifier, so all others are people.
                None if has_ai || self.list.len() == 1 => (Role::User, true),
                // Of several AIs each has an identifier.
                None if self.has_user => (Role::Assistant, true),
                // Somebody talks to the AI.
                None if self.has_assistant => (Role::User, true),
                None => (Role::Assistant, false),
            },
        }
    }

    /// The name to keep with a message, if the role does not say who sent it. Private identifiers are not kept.
    pub(crate) fn label<'n>(&'n self, sender: Sender, name: Option<&'n str>) -> Option<&'n str> {
        match sender {
            Sender::Identified(at) if self.list.len() > 1 => {
                let person = self.list.get(at)?;
                person.name.as_deref().or(person.id.as_deref())
            }
            Sender::Unknown | Sender::UnknownUser | Sender::UnknownAssistant => {
                name.filter(|name| !is_private(name))
            }
            Sender::Ai | Sender::Identified(_) | Sender::UnknownContact | Sender::Absent => None,
        }
    }
}

/// The role that a word gives which exporters write in place of a name.
fn role_of_word(text: &str) -> Option<Role> {
    let is = |words: &[&str]| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
    if is(&["user", "human"]) {
        Some(Role::User)
    } else {
        is(&[AI, "assistant", "model", "bot", "chatbot"]).then_some(Role::Assistant)
    }
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
    fn a_sender_with_a_mail_address_is_a_person() {
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
        assert_eq!(role(&known, "+49 30 5550 117", false), (Role::User, false));
        // The schema names the only AI `AI`, so somebody else is a person.
        assert_eq!(role(&known, "somebody", true), (Role::User, false));
        assert_eq!(role(&known, "somebody", false), (Role::Assistant, false));
    }

    #[test]
    fn identifiers_that_say_nothing_are_uncertain() {
        let two = senders(r#"[{"name":"Mo","identifier":"u-1"},{"name":"Pi","identifier":"u-2"},4,{"x":1}]"#);
        assert_eq!(role(&two, "u-1", false), (Role::Assistant, false));
        let one = senders(r#"[{"name":"Mo","identifier":"user-1"}]"#);
        assert_eq!(role(&one, "user-1", false), (Role::User, true));
        assert_eq!(one.people(false).next().and_then(|(_, mo)| mo.id.clone()).as_deref(), Some("user-1"));
        let ids =
            senders(r#"[{"name":"a","identifier":"+49 30 12"},{"name":"b","identifier":"b@c.example"}]"#);
        assert!(ids.people(false).all(|(role, person)| role == Role::User && person.id.is_none()), "private");
    }

    #[test]
    fn short_numbers_and_versions_of_models_make_nobody_a_person() {
        let two = senders(r#"[{"name":"Mo","identifier":"1"},{"name":"Pi","identifier":"2"}]"#);
        assert_eq!(role(&two, "2", false), (Role::Assistant, false));
        assert_eq!(two.people(false).last().and_then(|(_, pi)| pi.id.clone()).as_deref(), Some("2"));
        let model = senders(
            r#"[{"name":"Mo","type":"email","identifier":"mo@example.org"},{"name":"Claude","identifier":"claude-opus-4@20250514"}]"#,
        );
        assert_eq!(role(&model, "claude-opus-4@20250514", false), (Role::Assistant, true));
    }

    #[test]
    fn words_for_the_two_sides_are_understood() {
        let both =
            senders(r#"[{"name":"User","identifier":"user"},{"name":"Assistant","identifier":"assistant"}]"#);
        assert_eq!(role(&both, "user", false), (Role::User, true));
        assert_eq!(role(&both, "Assistant", false), (Role::Assistant, true));
        let named = senders(r#"[{"name":"Mo","identifier":"u-1"},{"name":"Assistant","identifier":"a-1"}]"#);
        assert_eq!(role(&named, "u-1", false), (Role::User, true));
        let nobody = senders("[]");
        assert_eq!(role(&nobody, "human", false), (Role::User, false));
        assert_eq!(role(&nobody, "model", true), (Role::Assistant, false));
    }

    #[test]
    fn a_name_that_is_an_address_is_not_kept() {
        let known = senders(
            r#"[{"name":"mo@example.org","identifier":"mo@example.org","language":"en"},{"name":"li@intranet","type":"email","identifier":"li@intranet"}]"#,
        );
        assert!(known.people(false).all(|(role, person)| role == Role::User && person.name.is_none()));
        assert_eq!(known.label(known.find(Some("li@intranet")), Some("li@intranet")), None);
        assert_eq!(known.rest().as_deref(), Some(r#"[{"name":"","language":"en"}]"#));
    }

    #[test]
    fn addresses_in_other_fields_are_not_kept() {
        let known = senders(
            r#"[{"name":"Mo","identifier":"u-1","email":"mo@example.org","tel":"+49 30 5550 117"},{"name":"Pi","identifier":"p","made":"2026-06-01","support":["x@example.org"]}]"#,
        );
        assert_eq!(role(&known, "u-1", false), (Role::User, true));
        assert_eq!(role(&known, "p", false), (Role::Assistant, true));
        assert_eq!(known.rest().as_deref(), Some(r#"[{"name":"Pi","made":"2026-06-01"}]"#));
    }
}
