//! Finds ChatGPT exports among files by the heads of those files.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{Bundle, Detection, ImportError, JsonError, Parser, json::Kind, names};

use crate::{
    layout::{self, FileKind},
    record_list::RecordList,
    saved_memories, sidecar,
};

/// Bytes of the heads that are read, one after the other until one decides. The host allows 16 MiB.
const HEADS: [usize; 3] = [64 * 1024, 1024 * 1024, 12 * 1024 * 1024];
/// Elements of one head that are read.
const MAX_ELEMENTS: u64 = 64;
/// Entries of one `mapping` that are read: the first ones may be roots and gaps.
const MAX_NODES: usize = 32;

/// Another program may write lists of the same structure.
const CONFIDENCE_ALONE: u8 = 80;

/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] =
    ["chatgpt-importer/2023.01", "chatgpt-importer/2026.02", "chatgpt-importer/2026.07"];

/// Counts over the head of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    /// Messages with ChatGPT's structure.
    ours: u32,
    /// Elements that another provider wrote.
    others: u32,
    /// Nodes without `children`, as exports have them since July 2026.
    slim: u32,
}

/// Finds every export among the files.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut folders: BTreeMap<&str, Vec<(&str, FileKind)>> = BTreeMap::new();
    for entry in bundle.entries() {
        let (folder, name) = names::split(&entry.path);
        let kind = layout::kind(name);
        if (kind == FileKind::Page || names::is_json(name)) && !names::is_junk(&entry.path) {
            folders.entry(folder).or_default().push((&entry.path, kind));
        }
    }
    let mut found = Vec::new();
    for (folder, files) in &folders {
        found.extend(detect_in_folder(bundle, folder, files)?);
    }
    assign_side_files(bundle, &mut found);
    Ok(found.into_iter().map(|export| export.detection).collect())
}

struct Export {
    folder: String,
    side_files: SideFiles,
    detection: Detection,
}

/// Which of the files beside it belong to an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SideFiles {
    All,
    /// Attachments, and the files that name them.
    Attachments,
    None,
}

fn detect_in_folder(
    bundle: &Bundle,
    folder: &str,
    files: &[(&str, FileKind)],
) -> Result<Vec<Export>, ImportError> {
    let listed: BTreeSet<String> = sidecar::manifest_files(bundle, folder).into_iter().collect();
    let (mut shards, mut single) = (Vec::new(), Vec::new());
    let mut all = Head::default();
    for &(path, kind) in files {
        let shard = kind == FileKind::Conversations || (kind == FileKind::Unknown && listed.contains(path));
        if !shard && kind != FileKind::Unknown {
            continue;
        }
        let head = inspect(bundle, path)?;
        if head.others > head.ours {
            continue;
        }
        if shard {
            shards.push(path.to_owned());
            all.ours += head.ours;
            all.others += head.others;
            all.slim += head.slim;
        } else if head.ours > 0 {
            single.push((path, head));
        }
    }
    let mut exports = Vec::new();
    if all.ours == 0 && single.is_empty() {
        exports.extend(page(bundle, folder, files)?);
    }
    if all.ours > 0 {
        let numbered = |path: &String| layout::shard_number(names::split(path).1) > Some(0);
        let sharded = shards.len() > 1 || shards.iter().any(numbered);
        exports.push(export(folder, shards, all, sharded, true));
    }
    let main = exports.is_empty() && single.len() == 1;
    let single = single.into_iter();
    exports.extend(single.map(|(path, head)| export(folder, vec![path.to_owned()], head, false, main)));
    if exports.is_empty() {
        exports.extend(side_files_alone(bundle, folder, files));
    }
    Ok(exports)
}

/// Files that usually accompany conversations, in a folder without any; only those that can be read alone.
fn side_files_alone(bundle: &Bundle, folder: &str, files: &[(&str, FileKind)]) -> Option<Export> {
    let found: Vec<_> = files.iter().filter(|(path, _)| sidecar::stands_alone(bundle, path)).collect();
    let chats = found.iter().any(|(_, kind)| *kind == FileKind::Groups);
    let detection = Detection {
        format: FORMATS[2].to_owned(),
        confidence: CONFIDENCE_ALONE,
        files: found.iter().map(|(path, _)| (*path).to_owned()).collect(),
        account: sidecar::account(bundle, folder).map(|account| account.id),
    };
    let side_files = if chats { SideFiles::Attachments } else { SideFiles::None };
    (!detection.files.is_empty()).then(|| Export { folder: folder.to_owned(), side_files, detection })
}

/// The page, for a folder without files of conversations.
fn page(bundle: &Bundle, folder: &str, files: &[(&str, FileKind)]) -> Result<Option<Export>, ImportError> {
    let Some((path, _)) = files.iter().find(|(_, kind)| *kind == FileKind::Page) else { return Ok(None) };
    let head = inspect(bundle, path)?;
    let ours = head.ours > head.others;
    Ok(ours.then(|| export(folder, vec![(*path).to_owned()], head, false, true)))
}

fn export(folder: &str, files: Vec<String>, head: Head, sharded: bool, main: bool) -> Export {
    let format = match (head.slim > 0, sharded) {
        (true, _) => FORMATS[2],
        (false, true) => FORMATS[1],
        (false, false) => FORMATS[0],
    };
    let confidence = if head.others > 0 { 60 } else { 95 };
    let detection = Detection { format: format.to_owned(), confidence, files, account: None };
    let side_files = if main { SideFiles::All } else { SideFiles::None };
    Export { folder: folder.to_owned(), side_files, detection }
}

/// Assigns to each export the files beside its conversations.
fn assign_side_files(bundle: &Bundle, found: &mut [Export]) {
    let taken: BTreeSet<String> = found.iter().flat_map(|export| export.detection.files.clone()).collect();
    let folders: Vec<String> = found.iter().map(|export| export.folder.clone()).collect();
    for export in found.iter_mut().filter(|export| export.side_files != SideFiles::None) {
        let asset_names = sidecar::asset_names(bundle, &export.folder);
        for entry in bundle.entries() {
            let Some(path) = entry.path.strip_prefix(export.folder.as_str()) else { continue };
            // A folder of another export inside this one keeps its files.
            let inner =
                |other: &String| other.len() > export.folder.len() && entry.path.starts_with(other.as_str());
            if taken.contains(&entry.path) || folders.iter().any(inner) {
                continue;
            }
            let ours = match layout::kind(path) {
                FileKind::Unknown => asset_names.contains(path),
                kind if export.side_files == SideFiles::Attachments => {
                    matches!(kind, FileKind::Asset | FileKind::AssetNames | FileKind::Library)
                }
                FileKind::Memories => saved_memories::is_ours(bundle, &entry.path),
                _ => true,
            };
            if ours {
                export.detection.files.push(entry.path.clone());
            }
        }
        export.detection.account = sidecar::account(bundle, &export.folder).map(|account| account.id);
        export.detection.files.sort();
    }
}

/// Whether the head of a file contains conversations from ChatGPT.
pub(crate) fn is_ours(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    let head = inspect(bundle, path)?;
    Ok(head.ours > head.others)
}

/// Reads growing heads of a file until one shows whose it is.
fn inspect(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::default();
    let Some(list) = RecordList::find(bundle, path)? else { return Ok(head) };
    for bytes in HEADS {
        head = Head::default();
        list.array().sample(bundle, bytes, |element| {
            // The head may end inside the element; what was read before counts.
            head.read_element(&mut element.parser()).unwrap_or_default();
            element.index() < MAX_ELEMENTS
        })?;
        if head.ours + head.others > 0 || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

impl Head {
    fn read_element(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "mapping" => self.read_mapping(json)?,
                "chat_messages" | "responses" | "chunkedPrompt" | "conversation_turns" => self.others += 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_mapping(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if json.enter_object()? {
            let mut nodes = 0;
            while json.key()?.is_some() {
                nodes += 1;
                if nodes <= MAX_NODES {
                    self.read_node(json)?;
                }
            }
        }
        Ok(())
    }

    fn read_node(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        let (mut children, mut message) = (false, false);
        while let Some(key) = json.key()? {
            match key {
                "children" => children = true,
                "message" => message = self.read_message(json)?,
                _ => {}
            }
        }
        self.slim += u32::from(message && !children);
        Ok(())
    }

    /// True for a message from ChatGPT.
    fn read_message(&mut self, json: &mut Parser<'_>) -> Result<bool, JsonError> {
        if !json.enter_object()? {
            return Ok(false);
        }
        let (mut author, mut content, mut fragments) = (false, false, false);
        while let Some(key) = json.key()? {
            match key {
                "author" => author = json.kind()? == Kind::Object,
                "content" => content = json.kind()? != Kind::Null,
                "fragments" => fragments = true,
                _ => {}
            }
            // Counted here because the head may end inside the message.
            if author && content && !fragments {
                self.ours += 1;
                while json.key()?.is_some() {}
                return Ok(true);
            }
        }
        self.others += u32::from(fragments);
        Ok(false)
    }
}
