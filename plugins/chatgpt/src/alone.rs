//! Files that lie beside conversations, where they came without them: whose export it is, group chats, tasks.
//!
//! Their names are not enough, as other programs have such files. What they say is the same whether conversations are there or not, but
//! for the account, which only the two files that name it tell.

use satchel_importer::{
    AccountRecord, Bundle, Element, ImportError, JsonArray, JsonError, Parser, Sink, json::Kind as Json,
};

use crate::{
    layout::{self, Kind},
    sidecar,
    source::Source,
};

/// Bytes of a head in which the first record of a list stands whole, or says what it is.
const HEAD: usize = 256 * 1024;
/// What accounts' ids begin with.
const ACCOUNT: &str = "user-";

/// Whether the file `path`, whose name is `name`, is of ChatGPT whatever lies beside it.
pub(crate) fn is_ours(bundle: &Bundle, folder: &str, name: &str) -> bool {
    let path = format!("{folder}{name}");
    match layout::kind(name) {
        Kind::User | Kind::Settings => {
            sidecar::account_in(bundle, folder, name).is_some_and(|id| id.starts_with(ACCOUNT))
        }
        Kind::Groups => holds(bundle, &path, "/chats", &["members", "messages"]),
        Kind::Codex => holds(bundle, &path, "/tasks", &["turns"]),
        _ => false,
    }
}

/// Whether the first record of a list has all of these lists.
fn holds(bundle: &Bundle, path: &str, pointer: &'static str, lists: &[&str]) -> bool {
    let mut found = 0;
    let look = |element: Element<'_>| {
        // The head may end inside the record; what was seen before counts.
        found = count(&mut element.parser(), lists);
        false
    };
    let Ok(source) = Source::below(bundle, path, pointer) else { return false };
    let array: JsonArray<'_> = source.array();
    array.sample(bundle, HEAD, look).is_ok() && found == lists.len()
}

fn count(json: &mut Parser<'_>, lists: &[&str]) -> usize {
    let mut found = 0;
    let mut read = || -> Result<(), JsonError> {
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                found += usize::from(lists.contains(&key) && json.kind()? == Json::Array);
            }
        }
        Ok(())
    };
    read().unwrap_or_default();
    found
}

/// Says whose export it is, if a file of it names the account.
pub(crate) fn tell_account(bundle: &Bundle, folder: &str, sink: &mut Sink) -> Result<(), ImportError> {
    for name in sidecar::ACCOUNT_FILES {
        if let Some(id) = sidecar::account_in(bundle, folder, name) {
            return sink.account(&AccountRecord { id, name: None, locator: format!("{folder}{name}") });
        }
    }
    Ok(())
}
