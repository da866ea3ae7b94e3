//! Finds what an export has of My AI: by the members of its own file, and the files beside it.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Detection, Element, ErrorKind, ImportError, JsonArray, JsonError, Parser,
    json::{Kind, Object},
    names::{has_extension, is_json, is_junk, split},
};

use crate::{chats, page};

/// The format of exports since 2023.
pub(crate) const FORMAT: &str = "snapchat-importer/2024.07";

/// The lists in the file of My AI.
pub(crate) const CONTENT: &str = "My AI Content";
pub(crate) const MEMORY: &str = "My AI Memory";
/// The chats with people, and perhaps one with My AI.
const CHATS: &str = "chat_history.json";
/// The file that names the account.
const ACCOUNT: &str = "account.json";
/// The folders of the files and of the pages, inside that of the export.
const FOLDERS: [&str; 2] = ["json/", "html/"];
/// How the names of photos in the chat with My AI begin; a number follows.
const PHOTO: &str = "snap_";

/// Bytes of a head that are sampled.
const SAMPLE: usize = 256 * 1024;
/// Bytes of the chats that are sampled: the one with My AI can be behind others. The host allows 16 MiB.
const CHATS_SAMPLE: usize = 8 * 1024 * 1024;
/// The longest account file, in bytes.
const ACCOUNT_LIMIT: u64 = 8 * 1024 * 1024;

/// The files of one export.
#[derive(Debug, Default)]
pub(crate) struct Export {
    /// The files of My AI.
    pub(crate) own: Vec<String>,
    /// The page of My AI, if there is no file.
    pub(crate) page: Option<String>,
    pub(crate) chats: Option<String>,
    pub(crate) account_file: Option<String>,
    /// The user name.
    pub(crate) account: Option<String>,
    pub(crate) photos: Vec<String>,
}

/// Every export among the files, for the host.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let detection = |export: Export| {
        let confidence = if export.own.is_empty() && export.page.is_none() { 80 } else { 95 };
        let Export { own, page, chats, account_file, account, photos } = export;
        let files = own.into_iter().chain(page).chain(chats).chain(account_file).chain(photos).collect();
        Detection { format: FORMAT.to_owned(), confidence, files, account }
    };
    Ok(exports(bundle)?.into_iter().map(detection).collect())
}

/// Every export among the files, ordered by folder.
pub(crate) fn exports(bundle: &Bundle) -> Result<Vec<Export>, ImportError> {
    let mut found: BTreeMap<&str, Export> = BTreeMap::new();
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        if is_junk(path) || !is_json(path) {
            continue;
        }
        if split(path).1 != CHATS && is_own(bundle, path)? {
            found.entry(folder(path)).or_default().own.push(path.to_owned());
        }
    }
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        // A page beside the file says the same.
        let known = || found.keys().any(|folder| root(folder) == root(self::folder(path)));
        if has_extension(path, "html") && !is_junk(path) && !known() && page::is_page(bundle, path)? {
            found.entry(folder(path)).or_default().page = Some(path.to_owned());
        }
    }
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        if split(path).1 == CHATS && !is_junk(path) {
            let heads = chats::sample(bundle, path, CHATS_SAMPLE)?;
            // Chats with people alone concern nobody's AI, and are read only to tell how many they are.
            if heads.with_ai || (heads.are_chats && found.contains_key(folder(path))) {
                found.entry(folder(path)).or_default().chats = Some(path.to_owned());
            }
        }
    }
    for (folder, export) in &mut found {
        add_account(bundle, folder, export)?;
        export.photos = photos(bundle, root(folder));
    }
    Ok(found.into_values().collect())
}

fn folder(path: &str) -> &str {
    split(path).0
}

/// The folder of the whole export.
fn root(folder: &str) -> &str {
    FOLDERS.iter().find_map(|name| folder.strip_suffix(name)).unwrap_or(folder)
}

fn add_account(bundle: &Bundle, folder: &str, export: &mut Export) -> Result<(), ImportError> {
    let path = format!("{folder}{ACCOUNT}");
    if bundle.entry(&path).is_none_or(|entry| entry.size > ACCOUNT_LIMIT) {
        return Ok(());
    }
    let read = JsonArray::new(&path).members().survey(bundle, |element| {
        if element.key() == Some("Basic Information") {
            let fields = Object::parse(element.text(), element.arena());
            let name = fields.text("Username").filter(|name| !name.contains('@'));
            export.account = name.map(ToOwned::to_owned);
        }
        Ok(export.account.is_none())
    });
    ignore_other_formats(read)?;
    export.account_file = export.account.is_some().then_some(path);
    Ok(())
}

/// The photos of the chat below the folder of an export.
fn photos(bundle: &Bundle, root: &str) -> Vec<String> {
    let is_photo = |path: &str| {
        let number = split(path).1.strip_prefix(PHOTO).and_then(|rest| rest.split_once('.'));
        number.is_some_and(|(number, _)| number.len() > 3 && number.bytes().all(|b| b.is_ascii_digit()))
    };
    let paths = bundle.entries().iter().map(|entry| entry.path.as_str());
    paths.filter(|path| path.starts_with(root) && is_photo(path)).map(ToOwned::to_owned).collect()
}

/// Whether a file has the lists of My AI.
fn is_own(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    let mut own = false;
    let sampled = JsonArray::new(path).members().sample(bundle, SAMPLE, |element| {
        own |= matches!(element.key(), Some(CONTENT | MEMORY)) && fits(&element).unwrap_or_default();
        !own
    });
    ignore_other_formats(sampled)?;
    Ok(own)
}

/// Whether it is a list that is empty or begins with an object that has a time.
fn fits(element: &Element<'_>) -> Result<bool, JsonError> {
    let json = &mut element.parser();
    if !json.enter_array()? {
        return Ok(false);
    }
    if !json.item()? {
        return Ok(true);
    }
    has_time(json)
}

fn has_time(json: &mut Parser<'_>) -> Result<bool, JsonError> {
    // An item that is not an object is reported by the run.
    if json.kind()? != Kind::Object {
        return Ok(true);
    }
    json.enter_object()?;
    let mut known = false;
    while let Some(key) = json.key()? {
        known |= matches!(key, "Timestamp" | "Content" | "Memory" | "Type");
    }
    Ok(known)
}

/// Errors other than of reading only say that the file is of another format.
pub(crate) fn ignore_other_formats(read: Result<(), ImportError>) -> Result<(), ImportError> {
    match read {
        Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
