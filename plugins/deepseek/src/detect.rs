//! Finds DeepSeek exports among files, by their heads.

use satchel_importer::{
    Bundle, Detection, ErrorKind, ImportError, JsonArray, JsonError, Parser, RecordKind,
    json::{Kind, Object},
    names::{is_json, is_junk, split},
};

/// Messages with a role and one text.
pub(crate) const PLAIN: &str = "deepseek-importer/2025.01";
/// Messages made of fragments.
pub(crate) const FRAGMENTS: &str = "deepseek-importer/2026.01";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 2] = [PLAIN, FRAGMENTS];

/// The conversations in a wrapper object.
const WRAPPER: &str = "/conversations";
/// The file with the user's account, in the folder of the conversations.
const USER: &str = "user.json";
/// The fields of that file, sorted.
const USER_FIELDS: [&str; 3] = ["email", "mobile", "user_id"];
/// The longest such file, in bytes.
const USER_LIMIT: usize = 1024 * 1024;
/// The confidence in such a file alone: another program could write the same fields.
const CONFIDENCE_ALONE: u8 = 60;
/// Bytes of a head that are sampled: first, and if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [256 * 1024, 8 * 1024 * 1024];
/// Elements of one head that are sampled.
const MAX_ELEMENTS: u64 = 32;
/// Nodes of one conversation that are sampled.
const MAX_NODES: usize = 64;

/// One file of conversations and its account.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) path: String,
    /// An RFC 6901 pointer to the list.
    pub(crate) pointer: &'static str,
    /// The file that names the account.
    pub(crate) user: Option<String>,
    pub(crate) account: Option<String>,
    head: Head,
}

/// Every export among the files, for the host.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let detection = |export: Export| {
        let format = if export.head.fragments > 0 { FRAGMENTS } else { PLAIN };
        let confidence = if export.head.foreign > 0 { 60 } else { 95 };
        let mut files = vec![export.path];
        files.extend(export.user);
        Detection { format: format.to_owned(), confidence, files, account: export.account }
    };
    let exports = find_exports(bundle)?;
    let taken: Vec<String> = exports.iter().filter_map(|export| export.user.clone()).collect();
    let mut found: Vec<Detection> = exports.into_iter().map(detection).collect();
    for (path, account) in lone_users(bundle)?.into_iter().filter(|(path, _)| !taken.contains(path)) {
        let format = FRAGMENTS.to_owned();
        let (confidence, files) = (CONFIDENCE_ALONE, vec![path]);
        found.push(Detection { format, confidence, files, account: Some(account) });
    }
    Ok(found)
}

/// User files that have exactly DeepSeek's fields, each with its account.
pub(crate) fn lone_users(bundle: &Bundle) -> Result<Vec<(String, String)>, ImportError> {
    let mut found = Vec::new();
    for entry in bundle.entries() {
        if split(&entry.path).1 != USER || is_junk(&entry.path) {
            continue;
        }
        let user = read_user(bundle, &entry.path)?;
        if let Some(account) = user.account.filter(|_| user.fields == USER_FIELDS) {
            found.push((entry.path.clone(), account));
        }
    }
    Ok(found)
}

/// Every export among the files, ordered by path.
pub(crate) fn find_exports(bundle: &Bundle) -> Result<Vec<Export>, ImportError> {
    let mut exports: Vec<Export> = Vec::new();
    for entry in bundle.entries() {
        let (folder, name) = split(&entry.path);
        if is_junk(&entry.path) || !is_json(name) || name == USER {
            continue;
        }
        let head = sample_head(bundle, &entry.path)?;
        if !head.is_export() {
            continue;
        }
        let user = format!("{folder}{USER}");
        // In a folder with several files only the first gets the account: those of the others are unknown.
        let taken = exports.iter().any(|export| export.user.as_deref() == Some(&user));
        let account = if taken { None } else { read_user(bundle, &user)?.account };
        exports.push(Export {
            path: entry.path.clone(),
            pointer: if head.wrapped { WRAPPER } else { "" },
            user: account.is_some().then_some(user),
            account,
            head,
        });
    }
    Ok(exports)
}

/// A user file; its mail address and telephone number are not read.
#[derive(Default)]
struct User {
    /// `user_id`.
    account: Option<String>,
    /// The names of its fields, sorted.
    fields: Vec<String>,
}

fn read_user(bundle: &Bundle, path: &str) -> Result<User, ImportError> {
    let mut user = User::default();
    if bundle.entry(path).is_none_or(|entry| entry.size > USER_LIMIT as u64) {
        return Ok(user);
    }
    let sampled = JsonArray::new(path).kind(RecordKind::File).sample(bundle, USER_LIMIT, |element| {
        let fields = Object::parse(element.text(), element.arena());
        user.account = fields.text("user_id").filter(|id| !id.is_empty()).map(ToOwned::to_owned);
        user.fields = fields.fields().map(|(key, _)| key.to_owned()).collect();
        user.fields.sort();
        false
    });
    match sampled {
        Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
        Ok(()) | Err(_) => Ok(user),
    }
}

/// The contents of the head of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    /// Messages made of fragments.
    fragments: u32,
    /// Messages with a role and a text.
    plain: u32,
    /// Messages and conversations of other providers.
    foreign: u32,
    /// The conversations are below [`WRAPPER`].
    wrapped: bool,
}

/// Samples growing heads of a file until one decides.
fn sample_head(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::default();
    for bytes in SAMPLE_SIZES {
        head = Head::default();
        head.sample(bundle, path, "", bytes)?;
        if head.wrapped {
            head.sample(bundle, path, WRAPPER, bytes)?;
        }
        if head.fragments + head.plain + head.foreign > 0 || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

impl Head {
    fn is_export(self) -> bool {
        self.fragments > 0 || (self.plain > 0 && self.foreign == 0)
    }

    fn sample(
        &mut self,
        bundle: &Bundle,
        path: &str,
        pointer: &str,
        bytes: usize,
    ) -> Result<(), ImportError> {
        let sampled = JsonArray::new(path).pointer(pointer).sample(bundle, bytes, |element| {
            // A sample may end inside the element; what was read before counts.
            let (Ok(()) | Err(_)) = self.read_element(&mut element.parser(), pointer.is_empty());
            element.index() < MAX_ELEMENTS && !(self.wrapped && pointer.is_empty())
        });
        match sampled {
            // Other errors only say that the file is not of this format.
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn read_element(&mut self, json: &mut Parser<'_>, root: bool) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "mapping" => self.read_mapping(json)?,
                "conversations" if root => {
                    self.wrapped = json.kind()? == Kind::Array;
                    return Ok(());
                }
                "chat_messages" | "responses" | "chunkedPrompt" | "conversation_turns" => self.foreign += 1,
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
            if nodes <= MAX_NODES && json.enter_object()? {
                while let Some(key) = json.key()? {
                    if key == "message" {
                        self.read_message(json)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn read_message(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        let (mut role, mut content, mut dated) = (false, false, false);
        while let Some(key) = json.key()? {
            match key {
                "fragments" if json.kind()? == Kind::Array => self.fragments += 1,
                "author" => self.foreign += 1,
                "role" => role = json.kind()? == Kind::String,
                "content" => content = json.kind()? == Kind::String,
                "inserted_at" => dated = true,
                _ => {}
            }
        }
        self.plain += u32::from(role && content && dated);
        Ok(())
    }
}
