//! Finds ChatGPT exports among files, by what their heads hold.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Bundle, Detection, Element, ImportError, JsonError, Parser, json::Kind as Json, names,
};

use crate::{
    alone,
    layout::{self, Kind},
    sidecar,
    source::Source,
    stored,
};

/// Bytes of a head that are looked at first, and where those do not decide. The host allows 16 MiB.
const HEADS: [usize; 3] = [64 * 1024, 1024 * 1024, 12 * 1024 * 1024];
/// Elements after which a head has said what it can.
const MAX_ELEMENTS: u64 = 64;
/// Entries of one `mapping` that are looked at: the first ones may be roots and gaps.
const MAX_NODES: usize = 32;

/// Lists of such a shape may be another program's.
const CONFIDENCE_ALONE: u8 = 80;

/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] =
    ["chatgpt-importer/2023.01", "chatgpt-importer/2026.02", "chatgpt-importer/2026.07"];

/// What a file's head shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    /// Nodes with messages of ChatGPT's shape.
    ours: u32,
    /// Elements that another provider wrote.
    others: u32,
    /// Conversations without a `mapping` to judge by.
    shells: u32,
    /// Nodes without `children`, as exports have them since July 2026.
    slim: u32,
}

/// Every export among the files.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in bundle.entries() {
        let (folder, name) = names::split(&entry.path);
        let page = layout::kind(name) == Kind::Page;
        if (page || names::is_json(name)) && !names::is_junk(&entry.path) {
            folders.entry(folder).or_default().push(&entry.path);
        }
    }
    let mut found = Vec::new();
    for (folder, paths) in &folders {
        found.extend(detect_in_folder(bundle, folder, paths)?);
    }
    share_out(bundle, &mut found);
    Ok(found.into_iter().map(|export| export.detection).collect())
}

/// A detection in the making.
struct Export {
    folder: String,
    takes: Takes,
    detection: Detection,
}

/// Which of the files that lie beside it belong to an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    All,
    /// Those that hold attachments, and those that name them.
    Attachments,
    Nothing,
}

fn detect_in_folder(bundle: &Bundle, folder: &str, paths: &[&str]) -> Result<Vec<Export>, ImportError> {
    let listed: BTreeSet<String> = sidecar::manifest_files(bundle, folder).into_iter().collect();
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    let mut all = Head::default();
    for path in paths {
        let kind = layout::kind(names::split(path).1);
        let shard = kind == Kind::Conversations || (kind == Kind::Stranger && listed.contains(*path));
        if !shard && kind != Kind::Stranger {
            continue;
        }
        let head = look(bundle, path)?;
        if head.others > head.ours {
            continue;
        }
        if shard {
            together.push((*path).to_owned());
            all = all.and(head);
        } else if head.ours > 0 {
            alone.push((*path, head));
        }
    }
    let mut exports = Vec::new();
    if all.ours == 0 && alone.is_empty() {
        exports.extend(page(bundle, folder, paths)?);
    }
    if all.ours > 0 {
        let sharded =
            together.len() > 1 || together.iter().any(|path| layout::shard(names::split(path).1) > Some(0));
        exports.push(export(folder, together, all, sharded, true));
    }
    let main = exports.is_empty() && alone.len() == 1;
    exports.extend(
        alone.into_iter().map(|(path, head)| export(folder, vec![path.to_owned()], head, false, main)),
    );
    if exports.is_empty() {
        exports.extend(beside_nothing(bundle, folder, paths));
    }
    Ok(exports)
}

/// Files that mostly lie beside conversations, and came without them. What only conversations explain is not taken.
fn beside_nothing(bundle: &Bundle, folder: &str, paths: &[&str]) -> Option<Export> {
    let ours = |path: &&&str| alone::is_ours(bundle, folder, names::split(path).1);
    let files: Vec<String> = paths.iter().filter(ours).map(|path| (*path).to_owned()).collect();
    let detection = Detection {
        format: FORMATS[2].to_owned(),
        confidence: CONFIDENCE_ALONE,
        files,
        account: sidecar::account(bundle, folder),
    };
    let chats = detection.files.iter().any(|path| layout::kind(names::split(path).1) == Kind::Groups);
    let takes = if chats { Takes::Attachments } else { Takes::Nothing };
    (!detection.files.is_empty()).then(|| Export { folder: folder.to_owned(), takes, detection })
}

/// Whether a file is one that is read without conversations.
pub(crate) fn stands_alone(bundle: &Bundle, path: &str) -> bool {
    let (folder, name) = names::split(path);
    alone::is_ours(bundle, folder, name)
}

/// Where only the page is left, it is the export.
fn page(bundle: &Bundle, folder: &str, paths: &[&str]) -> Result<Option<Export>, ImportError> {
    let Some(path) = paths.iter().find(|path| layout::kind(names::split(path).1) == Kind::Page) else {
        return Ok(None);
    };
    let head = look(bundle, path)?;
    let ours = head.ours > head.others;
    Ok(ours.then(|| export(folder, vec![(*path).to_owned()], head, false, true)))
}

fn export(folder: &str, files: Vec<String>, head: Head, sharded: bool, main: bool) -> Export {
    let format = match (head.slim > 0, sharded) {
        (true, _) => FORMATS[2],
        (false, true) => FORMATS[1],
        (false, false) => FORMATS[0],
    };
    let detection =
        Detection { format: format.to_owned(), confidence: head.confidence(), files, account: None };
    let takes = if main { Takes::All } else { Takes::Nothing };
    Export { folder: folder.to_owned(), takes, detection }
}

/// Gives each export the files that lie beside its conversations.
fn share_out(bundle: &Bundle, found: &mut [Export]) {
    let taken: BTreeSet<String> = found.iter().flat_map(|export| export.detection.files.clone()).collect();
    let folders: Vec<String> = found.iter().map(|export| export.folder.clone()).collect();
    for export in found.iter_mut().filter(|export| export.takes != Takes::Nothing) {
        let named = sidecar::asset_names(bundle, &export.folder);
        for entry in bundle.entries() {
            let Some(below) = entry.path.strip_prefix(export.folder.as_str()) else { continue };
            // Another export's folder inside this one keeps its files.
            let inner =
                |other: &String| other.len() > export.folder.len() && entry.path.starts_with(other.as_str());
            if taken.contains(&entry.path) || folders.iter().any(inner) {
                continue;
            }
            let ours = match layout::kind(below) {
                Kind::Stranger => named.contains(below),
                kind if export.takes == Takes::Attachments => {
                    matches!(kind, Kind::Asset | Kind::AssetNames | Kind::Library)
                }
                Kind::Memories => stored::is_ours(bundle, &entry.path),
                _ => true,
            };
            if ours {
                export.detection.files.push(entry.path.clone());
            }
        }
        export.detection.account = sidecar::account(bundle, &export.folder);
        export.detection.files.sort();
    }
}

/// Whether the head of a file holds conversations of ours.
pub(crate) fn is_ours(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    let head = look(bundle, path)?;
    Ok(head.ours > head.others)
}

/// Looks at growing heads of a file until they say something.
fn look(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::default();
    let Some(source) = Source::find(bundle, path)? else { return Ok(head) };
    for bytes in HEADS {
        head = Head::default();
        source.array().sample(bundle, bytes, |element| {
            head = head.and(Head::of(&element));
            element.index() < MAX_ELEMENTS
        })?;
        if head.ours + head.others > 0 || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

impl Head {
    fn and(self, other: Self) -> Self {
        Self {
            ours: self.ours + other.ours,
            others: self.others + other.others,
            shells: self.shells + other.shells,
            slim: self.slim + other.slim,
        }
    }

    /// A whole file of shells beside few messages is still ours, but less surely.
    fn confidence(self) -> u8 {
        if self.others > 0 { 60 } else { 95 }
    }

    fn of(element: &Element<'_>) -> Self {
        let mut head = Self::default();
        // A sample may break off inside the element; what was seen before counts.
        match head.read_element(&mut element.parser()) {
            Ok(()) | Err(_) => head,
        }
    }

    fn read_element(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        self.shells += 1;
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
        if !json.enter_object()? {
            return Ok(());
        }
        let mut nodes = 0;
        while json.key()?.is_some() {
            nodes += 1;
            if nodes > MAX_NODES {
                json.skip_value()?;
            } else {
                self.read_node(json)?;
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

    /// True for a message of ours.
    fn read_message(&mut self, json: &mut Parser<'_>) -> Result<bool, JsonError> {
        if !json.enter_object()? {
            return Ok(false);
        }
        let (mut author, mut content, mut fragments) = (false, false, false);
        while let Some(key) = json.key()? {
            match key {
                "author" => author = json.kind()? == Json::Object,
                "content" => content = json.kind()? != Json::Null,
                "fragments" => fragments = true,
                _ => {}
            }
            // Counted at once: the rest of the message may break off.
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
