//! Conversations that the export has as a list of turns instead of a tree.

use std::borrow::Cow;

use satchel_importer::{
    Conversation, Element, JsonError, Leftover, Message, Parser, Participant,
    address::unsigned_json,
    order::{SORTED, sort_by_time},
};

use crate::map::{self, Context, Records};

/// One conversation with turns of the type `T`.
#[derive(Debug, Default)]
pub(crate) struct TurnList<'a, T> {
    pub(crate) id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) participants: Vec<Participant<'a>>,
    pub(crate) turns: Vec<T>,
    /// Indices of the list items that are no objects.
    malformed: Vec<usize>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a, T> TurnList<'a, T> {
    /// Reads the list. `read` gets the index of an item, and returns none if it is no object.
    pub(crate) fn read_turns(
        &mut self,
        json: &mut Parser<'a>,
        read: impl Fn(&mut Parser<'a>, usize) -> Result<Option<T>, JsonError>,
    ) -> Result<(), JsonError> {
        (self.turns, self.malformed) = (Vec::new(), Vec::new());
        let mut index = 0;
        while json.item()? {
            match read(json, index)? {
                Some(turn) => self.turns.push(turn),
                None => self.malformed.push(index),
            }
            index += 1;
        }
        Ok(())
    }

    /// Sorts the turns by time if their order contradicts it. Returns records with the warning about that, and with the malformed
    /// items of the list called `list`.
    pub(crate) fn sort(
        &mut self,
        locator: &str,
        list: &str,
        role_and_time: impl Fn(&T) -> (Option<&'a str>, Option<i64>),
    ) -> Records<'a> {
        let sorted = sort_by_time(&mut self.turns, |turn| {
            let (role, time) = role_and_time(turn);
            (map::role(role), time)
        });
        let place = |index: &usize| format!("{locator}.{list}[{index}]");
        Records {
            warnings: sorted.then(|| (locator.to_owned(), SORTED)).into_iter().collect(),
            skipped: self.malformed.iter().map(|index| (place(index), "it is not an object")).collect(),
            ..Records::default()
        }
    }

    /// The conversation with the mapped turns.
    pub(crate) fn conversation(
        mut self,
        id: Cow<'a, str>,
        tag: &'static str,
        messages: &[Message<'a>],
        element: &Element<'a>,
        context: &Context<'a>,
    ) -> Conversation<'a> {
        Conversation {
            id,
            provider_conversation_id: self.id.map(Cow::Borrowed),
            account: context.account.map(Cow::Borrowed),
            export_format_version: Some(Cow::Borrowed(context.version)),
            title: self.title.map(Cow::Borrowed),
            created_at: self.created,
            updated_at: self.updated,
            participants: self.participants,
            tags: vec![tag.into()],
            current: messages.last().map(|last| last.id.clone()),
            raw_metadata: self.rest.take_json(element.arena()).map(unsigned_json),
            locator: Cow::Owned(element.locator()),
            ..Conversation::default()
        }
    }
}
