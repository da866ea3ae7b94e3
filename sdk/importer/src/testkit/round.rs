//! The round trip: what is stored of a conversation, and nothing else, tells what the provider's file told.
//!
//! Each importer brings a small reader of its own that knows nothing of the importer: `told` draws a [`Chat`] from the raw file, and
//! `rebuilt` draws the same from a [`Stored`] conversation. Both must be equal, conversation by conversation.

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
pub use source::{SourceFile, text_of, time_of, time_told};
pub use stored::{Stored, StoredMessage};

/// A conversation as its provider tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chat {
    /// The provider's id; where it gives none, what tells the conversation from others.
    pub key: String,
    /// The title.
    pub title: Option<String>,
    /// As [`time_told`] writes it.
    pub created: Option<String>,
    /// The same.
    pub updated: Option<String>,
    /// Id of the turn that the person last saw, where the provider says so.
    pub current: Option<String>,
    /// In the provider's order; so siblings stand in their order.
    pub turns: Vec<Turn>,
}

/// One turn as its provider tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The provider's id; else its number.
    pub id: String,
    /// Id of the turn that it answers.
    pub parent: Option<String>,
    /// In the provider's word.
    pub role: String,
    /// As [`time_told`] writes it.
    pub time: Option<String>,
    /// What is said, in order: the kind of each piece, and its words.
    pub said: Vec<(String, String)>,
}

impl Chat {
    fn to_json(&self) -> Value {
        let Self { key, title, created, updated, current, turns } = self;
        let turn = |turn: &Turn| {
            let Turn { id, parent, role, time, said } = turn;
            json!({ "id": id, "parent": parent, "role": role, "time": time, "said": said })
        };
        let turns: Vec<Value> = turns.iter().map(turn).collect();
        json!({ "key": key, "title": title, "created": created, "updated": updated, "current": current, "turns": turns })
    }
}

/// How a provider's files and its stored conversations are read.
#[derive(Clone, Copy)]
pub struct Round {
    /// Name of the platform.
    pub platform: &'static str,
    /// The conversations of a file; none if it holds something else.
    pub told: fn(&SourceFile<'_>) -> Vec<Chat>,
    /// Files that are told elsewhere: `fixture/file`, and why.
    pub aside: &'static [(&'static str, &'static str)],
    /// The same of what is stored; none if it is not from a file of conversations.
    pub rebuilt: fn(&Stored) -> Vec<Chat>,
}

/// What a fault takes away, and how it is planted into what is stored.
type Fault = (&'static str, fn(&mut Stored));

/// Faults to plant.
const FAULTS: [Fault; 6] = [
    ("title", |stored| stored.title = Some("another".to_owned())),
    ("time", |stored| {
        // To whole seconds, of which the next is another one.
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

/// How much was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Conversations.
    pub chats: usize,
    /// Their turns.
    pub turns: usize,
}

impl Round {
    /// Compares both sides of every fixture below `folder`. Fails with one line for each difference, or if fewer conversations or turns
    /// than `least` were compared.
    pub fn check<T: Importer>(&self, folder: impl AsRef<Path>, least: Compared) -> Result<(), FixtureError> {
        let inputs = fixtures(folder.as_ref())?.into_iter().map(|fixture| fixture.join("input"));
        let (compared, mut faults) = self.compare::<T>(inputs)?;
        if compared.chats < least.chats || compared.turns < least.turns {
            faults.push(format!("only {compared:?}, at least {least:?} is expected"));
        }
        FixtureError::of_faults(faults)
    }

    /// Compares both sides of the sample exports of `provider` beside the repository, as far as they are there: see
    /// [`super::renamed_samples`].
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
            let told = self.told(&input, &produced)?;
            let stored = records(&produced).map(|record| Stored::of_record(self.platform, record));
            let rebuilt: Vec<Chat> = stored.flat_map(|stored| (self.rebuilt)(&stored)).collect();
            compared.chats += told.len();
            compared.turns += told.iter().map(|chat| chat.turns.len()).sum::<usize>();
            let name = input.display().to_string();
            faults.extend(differences(told, rebuilt).into_iter().map(|fault| format!("{name}: {fault}")));
        }
        Ok((compared, faults))
    }

    /// The changes that the comparison would not find in anything below `folder`, when they are made one by one to what is stored:
    /// `title`, `time`, `role`, `text`, `parent`, `order`. There are reasons for some: a provider without titles has none to lose.
    pub fn undetected_changes<T: Importer>(
        &self,
        folder: impl AsRef<Path>,
    ) -> Result<Vec<&'static str>, FixtureError> {
        let mut found = BTreeSet::new();
        for fixture in fixtures(folder.as_ref())? {
            for record in records(&produce_folder::<T>(&fixture.join("input"))?) {
                let stored = Stored::of_record(self.platform, record);
                let whole = (self.rebuilt)(&stored);
                let faulty = FAULTS.iter().filter(|(_, plant)| {
                    let mut faulty = stored.clone();
                    plant(&mut faulty);
                    !differences(whole.clone(), (self.rebuilt)(&faulty)).is_empty()
                });
                found.extend(faulty.map(|(fault, _)| *fault));
            }
        }
        Ok(FAULTS.iter().map(|(fault, _)| *fault).filter(|fault| !found.contains(fault)).collect())
    }

    fn told(&self, input: &Path, produced: &Produced) -> Result<Vec<Chat>, FixtureError> {
        let skipped = produced.skipped();
        let names: Vec<String> =
            produced.exports.iter().flat_map(|export| export.detection.files.clone()).collect();
        let fixture = input.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let aside = |name: &&String| self.aside.iter().any(|(file, _)| **file == format!("{fixture}/{name}"));
        let mut told = Vec::new();
        for name in names.iter().filter(|name| !aside(name)) {
            let path = input.join(name);
            let bytes = fs::read(&path).map_err(FixtureError::at(&path))?;
            told.extend((self.told)(&SourceFile::new(name, &bytes, &names, &skipped)));
        }
        Ok(told)
    }
}

/// Puts the turns of a tree into one order: parents first, siblings by their place in the provider's order, where they have one, else by
/// time and id. Turns in a circle come last. Ids that are numbers (`#…`) are given anew in that order.
pub fn arrange(turns: Vec<(Turn, Option<usize>)>) -> Vec<Turn> {
    let ids: BTreeSet<String> = turns.iter().map(|(turn, _)| turn.id.clone()).collect();
    let above = |turn: &Turn| turn.parent.clone().filter(|parent| ids.contains(parent)).unwrap_or_default();
    // Of siblings, all have a place or none: an order that leaves one out is none.
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
            // What is left stands in circles.
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

/// Every difference between what files tell and what is rebuilt: conversations of one key are compared in their order.
pub fn differences(told: Vec<Chat>, rebuilt: Vec<Chat>) -> Vec<String> {
    let mut pairs: BTreeMap<String, (Vec<Chat>, Vec<Chat>)> = BTreeMap::new();
    for chat in told {
        pairs.entry(chat.key.clone()).or_default().0.push(chat);
    }
    for chat in rebuilt {
        pairs.entry(chat.key.clone()).or_default().1.push(chat);
    }
    let mut faults = Vec::new();
    for (key, (told, rebuilt)) in pairs {
        if told.len() != rebuilt.len() {
            let (told, rebuilt) = (told.len(), rebuilt.len());
            faults.push(format!("{key:?}: the file tells it {told} times, {rebuilt} are stored"));
            continue;
        }
        for (told, rebuilt) in told.iter().zip(&rebuilt) {
            faults.extend(difference(told, rebuilt).map(|fault| format!("{key:?}: {fault}")));
        }
    }
    faults
}

/// The first difference between two pictures of a conversation.
pub fn difference(told: &Chat, rebuilt: &Chat) -> Option<String> {
    first_difference(&told.to_json(), &rebuilt.to_json())
}

#[cfg(test)]
mod tests;
