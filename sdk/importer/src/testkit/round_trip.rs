//! Checks that the stored conversations have everything that the provider's files say about their structure.
//!
//! Each importer's tests have a small reader that shares no code with the importer. It reads a [`Chat`] from the raw file and the same
//! [`Chat`] from the [`Stored`] conversation; the two must be equal.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use satchel_pam::record::ConversationRecord;
use serde_json::{Value, json};

use super::{
    FixtureError, Produced, conversations, first_difference, fixtures, produce_folder,
    samples::sample_folders,
};
use crate::{Importer, tree::SIBLING_NUMBER};

mod nodes;
mod source;
mod stored;

pub use nodes::Nodes;
pub use source::{SourceFile, text_of, time_of, time_text};
pub use stored::{Stored, StoredMessage};

/// A conversation in the provider's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chat {
    /// The provider's id, or else anything that identifies the conversation.
    pub key: String,
    /// The title.
    pub title: Option<String>,
    /// As written by [`time_text`].
    pub created: Option<String>,
    /// As written by [`time_text`].
    pub updated: Option<String>,
    /// Id of the turn that the person viewed last, if the provider records it.
    pub current: Option<String>,
    /// In the provider's order, so siblings are in order too.
    pub turns: Vec<Turn>,
}

/// One turn in the provider's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The provider's id, or else its number.
    pub id: String,
    /// Id of the turn that it answers.
    pub parent: Option<String>,
    /// The provider's word for the role.
    pub role: String,
    /// As written by [`time_text`].
    pub time: Option<String>,
    /// The kind and text of each part, in order.
    pub parts: Vec<(String, String)>,
}

impl Chat {
    fn to_json(&self) -> Value {
        let Self { key, title, created, updated, current, turns } = self;
        let turn = |turn: &Turn| {
            let Turn { id, parent, role, time, parts } = turn;
            json!({ "id": id, "parent": parent, "role": role, "time": time, "parts": parts })
        };
        let turns: Vec<Value> = turns.iter().map(turn).collect();
        json!({ "key": key, "title": title, "created": created, "updated": updated, "current": current, "turns": turns })
    }
}

/// Reads a provider's files and its stored conversations.
#[derive(Clone, Copy)]
pub struct RoundTrip {
    /// Name of the platform.
    pub platform: &'static str,
    /// Reads the conversations of a file; none if it contains something else.
    pub read_file: fn(&SourceFile<'_>) -> Vec<Chat>,
    /// Files that are not compared: `fixture/file`, and the reason.
    pub ignored: &'static [(&'static str, &'static str)],
    /// Reads the same conversations from a stored one; none if it does not come from a file of conversations.
    pub read_stored: fn(&Stored) -> Vec<Chat>,
}

/// A name, and a change that damages a stored conversation.
type Fault = (&'static str, fn(&mut Stored));

/// The changes of [`RoundTrip::undetected_changes`].
const FAULTS: [Fault; 6] = [
    ("title", |stored| stored.title = Some("another".to_owned())),
    ("time", |stored| {
        // To the whole second before, also if it is a whole second already.
        let times = stored.messages.iter_mut().filter_map(|message| message.time.as_mut());
        times.for_each(|time| *time -= (*time - 1).rem_euclid(1_000_000) + 1);
    }),
    ("role", |stored| stored.messages.iter_mut().for_each(|message| "tool".clone_into(&mut message.role))),
    ("text", |stored| stored.messages.iter_mut().for_each(|message| drop(message.parts.pop()))),
    ("parent", |stored| stored.messages.iter_mut().for_each(|message| message.parent = None)),
    ("order", |stored| {
        let raw = stored.messages.iter_mut().filter_map(|message| message.raw.as_object_mut());
        raw.for_each(|raw| drop(raw.remove(SIBLING_NUMBER)));
    }),
];

/// How many conversations and turns were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Conversations.
    pub chats: usize,
    /// Their turns.
    pub turns: usize,
}

impl RoundTrip {
    /// Compares the files and the stored conversations of every fixture in `folder`.
    ///
    /// # Errors
    /// One line for each difference, or if fewer conversations or turns than `least` were compared.
    pub fn check<T: Importer>(&self, folder: impl AsRef<Path>, least: Compared) -> Result<(), FixtureError> {
        let inputs = fixtures(folder.as_ref())?.into_iter().map(|fixture| fixture.join("input"));
        let (compared, mut faults) = self.compare::<T>(inputs)?;
        if compared.chats < least.chats || compared.turns < least.turns {
            faults.push(format!("only {compared:?}, at least {least:?} is expected"));
        }
        FixtureError::of_faults(faults)
    }

    /// Does the same with the sample exports of `provider` beside the repository; does nothing if there are none.
    pub fn check_samples<T: Importer>(&self, crate_folder: &str, provider: &str) -> Result<(), FixtureError> {
        FixtureError::of_faults(self.compare::<T>(sample_folders(Path::new(crate_folder), provider))?.1)
    }

    fn compare<T: Importer>(
        &self,
        inputs: impl Iterator<Item = PathBuf>,
    ) -> Result<(Compared, Vec<String>), FixtureError> {
        let (mut compared, mut faults) = (Compared::default(), Vec::new());
        for input in inputs {
            let produced = produce_folder::<T>(&input)?;
            let expected = self.chats_of_files(&input, &produced)?;
            let stored = records(&produced).map(|record| Stored::of_record(self.platform, record));
            let actual: Vec<Chat> = stored.flat_map(|stored| (self.read_stored)(&stored)).collect();
            compared.chats += expected.len();
            compared.turns += expected.iter().map(|chat| chat.turns.len()).sum::<usize>();
            let name = input.display().to_string();
            faults.extend(differences(expected, actual).into_iter().map(|fault| format!("{name}: {fault}")));
        }
        Ok((compared, faults))
    }

    /// Damages the stored conversations of the fixtures in `folder` in six ways, one by one: `title`, `time`, `role`, `text`, `parent`,
    /// `order`. Returns those that the comparison does not detect in any fixture. Some are expected: a provider without titles has none
    /// to lose.
    pub fn undetected_changes<T: Importer>(
        &self,
        folder: impl AsRef<Path>,
    ) -> Result<Vec<&'static str>, FixtureError> {
        let mut found = BTreeSet::new();
        for fixture in fixtures(folder.as_ref())? {
            for record in records(&produce_folder::<T>(&fixture.join("input"))?) {
                let stored = Stored::of_record(self.platform, record);
                let whole = (self.read_stored)(&stored);
                let faulty = FAULTS.iter().filter(|(_, plant)| {
                    let mut faulty = stored.clone();
                    plant(&mut faulty);
                    !differences(whole.clone(), (self.read_stored)(&faulty)).is_empty()
                });
                found.extend(faulty.map(|(fault, _)| *fault));
            }
        }
        Ok(FAULTS.iter().map(|(fault, _)| *fault).filter(|fault| !found.contains(fault)).collect())
    }

    fn chats_of_files(&self, input: &Path, produced: &Produced) -> Result<Vec<Chat>, FixtureError> {
        let skipped = produced.skipped();
        let names: Vec<String> =
            produced.exports.iter().flat_map(|export| export.detection.files.clone()).collect();
        let fixture = input.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let ignored =
            |name: &&String| self.ignored.iter().any(|(file, _)| **file == format!("{fixture}/{name}"));
        let mut chats = Vec::new();
        for name in names.iter().filter(|name| !ignored(name)) {
            let path = input.join(name);
            let bytes = fs::read(&path).map_err(FixtureError::at(&path))?;
            chats.extend((self.read_file)(&SourceFile::new(name, &bytes, &names, &skipped)));
        }
        Ok(chats)
    }
}

/// Sorts the turns of a tree: parents first, siblings by their number in the provider's order if all have one, otherwise by time and id.
/// Turns in a cycle come last. Ids that are numbers (`#…`) are renumbered in that order.
pub fn arrange(turns: Vec<(Turn, Option<usize>)>) -> Vec<Turn> {
    let ids: BTreeSet<String> = turns.iter().map(|(turn, _)| turn.id.clone()).collect();
    let above = |turn: &Turn| turn.parent.clone().filter(|parent| ids.contains(parent)).unwrap_or_default();
    // An order that does not have all siblings does not count.
    let placeless: BTreeSet<String> =
        turns.iter().filter(|(_, place)| place.is_none()).map(|(turn, _)| above(turn)).collect();
    let mut left = turns;
    left.sort_by_key(|(turn, place)| {
        let time = turn.time.as_ref().and_then(|time| time.parse::<i64>().ok());
        (place.filter(|_| !placeless.contains(&above(turn))), time, turn.id.clone())
    });
    let (mut arranged, mut stack): (Vec<Turn>, Vec<String>) = (Vec::new(), vec![String::new()]);
    while let Some(id) = stack.pop() {
        arranged.extend(left.iter().position(|(turn, _)| turn.id == id).map(|at| left.remove(at).0));
        let below = left.iter().filter(|(turn, _)| above(turn) == id && turn.id != id);
        stack.extend(below.map(|(turn, _)| turn.id.clone()).rev());
        if stack.is_empty() {
            // The rest are cycles.
            stack.extend(left.iter().map(|(turn, _)| turn.id.clone()).min());
        }
    }
    let names = arranged.iter().enumerate().filter(|(_, turn)| turn.id.starts_with('#'));
    let names: BTreeMap<String, String> =
        names.map(|(at, turn)| (turn.id.clone(), format!("#{at}"))).collect();
    for turn in &mut arranged {
        let name = |id: &String| names.get(id).unwrap_or(id).clone();
        let (id, parent) = (name(&turn.id), turn.parent.as_ref().map(name));
        (turn.id, turn.parent) = (id, parent);
    }
    arranged
}

fn records(produced: &Produced) -> impl Iterator<Item = &ConversationRecord> {
    produced.exports.iter().flat_map(|export| conversations(&export.lines))
}

/// All differences between the conversations of files and the stored ones. Those with the same key are compared in their order.
pub fn differences(expected: Vec<Chat>, actual: Vec<Chat>) -> Vec<String> {
    let mut pairs: BTreeMap<String, (Vec<Chat>, Vec<Chat>)> = BTreeMap::new();
    for chat in expected {
        pairs.entry(chat.key.clone()).or_default().0.push(chat);
    }
    for chat in actual {
        pairs.entry(chat.key.clone()).or_default().1.push(chat);
    }
    let mut faults = Vec::new();
    for (key, (expected, actual)) in pairs {
        let (in_file, stored) = (expected.len(), actual.len());
        if in_file != stored {
            faults.push(format!("{key:?}: the file has it {in_file} times, {stored} are stored"));
            continue;
        }
        for (expected, actual) in expected.iter().zip(&actual) {
            faults.extend(difference(expected, actual).map(|fault| format!("{key:?}: {fault}")));
        }
    }
    faults
}

/// The first difference between two views of a conversation.
pub fn difference(expected: &Chat, actual: &Chat) -> Option<String> {
    first_difference(&expected.to_json(), &actual.to_json())
}

#[cfg(test)]
mod tests;
