//! The file beside a folder of sessions that names their workspace.

use satchel_importer::{
    Arena, Bundle,
    json::{Object, Value},
    names,
};

use crate::uri;

/// The folder of a workspace's sessions.
const SESSIONS: &str = "chatSessions/";
/// The file in the folder above it.
const FILE: &str = "workspace.json";
/// Bytes of that file; real ones have about a hundred.
const MAX_BYTES: u64 = 64 * 1024;

/// Where a session took place.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// The path of the folder.
    pub(crate) folder: Option<String>,
    /// What the file says, as JSON text.
    pub(crate) json: Option<String>,
}

/// The path of the file that names the workspace of the sessions in `folder`.
pub(crate) fn file_of(folder: &str) -> Option<String> {
    let above = folder.strip_suffix(SESSIONS).filter(|above| above.is_empty() || above.ends_with('/'))?;
    Some(format!("{above}{FILE}"))
}

/// The folder for the sessions of the workspace to which the database at `path` belongs.
pub(crate) fn sessions_beside(path: &str) -> String {
    format!("{}{SESSIONS}", names::split(path).0)
}

/// Reads the file for the sessions in `folder`. Without one, or if it is not an object, nothing is known: people import single sessions.
pub(crate) fn read(bundle: &Bundle, folder: &str) -> Workspace {
    let path = file_of(folder).filter(|path| bundle.entry(path).is_some());
    let Some(bytes) = path.and_then(|path| bundle.read(&path, MAX_BYTES).ok()) else {
        return Workspace::default();
    };
    let (text, arena) = (String::from_utf8_lossy(&bytes), Arena::new());
    let fields = Object::parse(text.trim_start_matches('\u{feff}'), &arena);
    if fields.is_empty() {
        return Workspace::default();
    }
    let folder = uri::of(fields.get("folder"), &arena).map(|address| uri::path(&address));
    let mut json = String::from("{");
    for (key, value) in fields.fields().filter(|(_, value)| *value != Value::Null) {
        json.push_str(if json.len() > 1 { "," } else { "" });
        json.push_str(&format!("{}:{}", Value::Text(key).json(), value.json()));
    }
    Workspace { folder, json: Some(json + "}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_stands_above_the_sessions() {
        assert_eq!(file_of("a1/chatSessions/").as_deref(), Some("a1/workspace.json"));
        assert_eq!(file_of("chatSessions/").as_deref(), Some("workspace.json"));
        for other in ["", "mychatSessions/", "a1/emptyWindowChatSessions/"] {
            assert_eq!(file_of(other), None, "{other}");
        }
    }

    #[test]
    fn broken_files_name_no_workspace() {
        for text in ["", "[]", "{", "{\"folder\":1"] {
            let bundle = Bundle::from_files([("workspace.json", text)]);
            assert_eq!(read(&bundle, "chatSessions/").folder, None, "{text}");
        }
    }
}
