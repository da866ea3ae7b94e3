//! The `memu` view of a store: the store's data in MemU's format, so that MemU data is exported the way it was
//! imported. Pure functions from facts to JSON; this module neither reads a store nor writes files.
//!
//! MemU data is taken from the evidence, which keeps each list whole and in its order. Memories of other assistants are
//! sorted into the same three lists by their type. The importer's `README.md` (`plugins/memu`) describes the other
//! direction, field by field.

mod conversations;
mod memories;

pub use conversations::{conversation, save_answer};
pub use memories::{MemuLists, MemuSources, OtherMemories, lists};

use serde_json::{Map, Value};

/// The platform whose fields are written back as they were read.
pub const PLATFORM: &str = "memu";

/// The lists of a memory object: as bare names, and as columns.
const LISTS: [(&str, &str); 3] =
    [("profile", "profile_content"), ("event", "event_content"), ("mind", "mind_content")];

/// A JSON object.
pub type Object = Map<String, Value>;

fn put(object: &mut Object, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}
