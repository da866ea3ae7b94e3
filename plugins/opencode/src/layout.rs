//! The names of the files in the program's storage, which say what a file is and to which session it belongs.

use satchel_importer::names;

/// How the ids of sessions, messages and parts begin.
const SESSION: &str = "ses_";
const MESSAGE: &str = "msg_";
const PART: &str = "prt_";

/// What a file of the storage is. `root` is the folder with `message/` and `part/`, with its last `/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'p> {
    /// The project is empty in the older layout, which has a storage for each project.
    Session {
        root: &'p str,
        project: &'p str,
        id: &'p str,
    },
    Message {
        root: &'p str,
        session: &'p str,
        id: &'p str,
    },
    Part {
        root: &'p str,
        message: &'p str,
        id: &'p str,
    },
    Project {
        root: &'p str,
        id: &'p str,
    },
    /// The list of tasks of a session.
    Tasks {
        root: &'p str,
        session: &'p str,
    },
    /// The files that a session changed.
    Changes {
        root: &'p str,
        session: &'p str,
    },
}

/// What the file at `path` is by its name; none if it is something else.
pub(crate) fn place(path: &str) -> Option<Place<'_>> {
    let (above, id) = up(path.strip_suffix(".json")?)?;
    let (root, folder) = up(above)?;
    match folder {
        "project" => return Some(Place::Project { root: with_slash(path, root), id }),
        "todo" if is_session(id) => {
            return Some(Place::Tasks { root: with_slash(path, root), session: id });
        }
        "session_diff" if is_session(id) => {
            return Some(Place::Changes { root: with_slash(path, root), session: id });
        }
        _ => {}
    }
    let (above, kind) = up(root)?;
    let root = with_slash(path, above);
    match kind {
        "message" if is_session(folder) && is_message(id) => {
            return Some(Place::Message { root, session: folder, id });
        }
        "part" if is_message(folder) && id.starts_with(PART) => {
            return Some(Place::Part { root, message: folder, id });
        }
        // The storage of one project, where all folders are inside of `session`.
        "session" if folder == "info" && is_session(id) => {
            let root = path.get(..root.len() + "session/".len())?;
            return Some(Place::Session { root, project: "", id });
        }
        "session" if is_session(id) => return Some(Place::Session { root, project: folder, id }),
        _ => {}
    }
    // `part/<session>/<message>/<part>.json` of that layout.
    let (above, kind) = up(above)?;
    let root = with_slash(path, above);
    (kind == "part" && is_message(folder) && id.starts_with(PART)).then_some(Place::Part {
        root,
        message: folder,
        id,
    })
}

/// Whether a text can be the id of a session.
pub(crate) fn is_session(id: &str) -> bool {
    id.starts_with(SESSION)
}

/// Whether a text can be the id of a message.
pub(crate) fn is_message(id: &str) -> bool {
    id.starts_with(MESSAGE)
}

/// The path of the file with the session's project.
pub(crate) fn project_file(root: &str, project: &str) -> String {
    format!("{root}project/{project}.json")
}

/// The path of the file with the files that a session changed.
pub(crate) fn changes_file(root: &str, session: &str) -> String {
    format!("{root}session_diff/{session}.json")
}

/// Whether a file may be the output of `opencode export` by its name.
pub(crate) fn may_be_export(path: &str) -> bool {
    names::is_json(path) && !names::is_junk(path) && place(path).is_none()
}

/// Splits the last name off a path: the folder without its last `/`, and the name.
fn up(path: &str) -> Option<(&str, &str)> {
    if path.is_empty() {
        return None;
    }
    Some(path.rsplit_once('/').unwrap_or(("", path)))
}

/// The folder, a beginning of `path`, with its last `/`.
fn with_slash<'p>(path: &'p str, folder: &str) -> &'p str {
    if folder.is_empty() { "" } else { path.get(..=folder.len()).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognised_by_their_folders() {
        let session = Place::Session { root: "storage/", project: "a1b2", id: "ses_1" };
        assert_eq!(place("storage/session/a1b2/ses_1.json"), Some(session));
        let message = Place::Message { root: "", session: "ses_1", id: "msg_1" };
        assert_eq!(place("message/ses_1/msg_1.json"), Some(message));
        let part = Place::Part { root: "x/storage/", message: "msg_1", id: "prt_1" };
        assert_eq!(place("x/storage/part/msg_1/prt_1.json"), Some(part));
        assert_eq!(place("project/a1b2.json"), Some(Place::Project { root: "", id: "a1b2" }));
        assert_eq!(place("s/todo/ses_1.json"), Some(Place::Tasks { root: "s/", session: "ses_1" }));
    }

    #[test]
    fn the_storage_of_one_project_has_its_own_folders() {
        let root = "project/home-rosa-garden/storage/session/";
        let session = Place::Session { root, project: "", id: "ses_1" };
        assert_eq!(place(&format!("{root}info/ses_1.json")), Some(session));
        let message = Place::Message { root, session: "ses_1", id: "msg_1" };
        assert_eq!(place(&format!("{root}message/ses_1/msg_1.json")), Some(message));
        let part = Place::Part { root, message: "msg_1", id: "prt_1" };
        assert_eq!(place(&format!("{root}part/ses_1/msg_1/prt_1.json")), Some(part));
    }

    #[test]
    fn other_files_have_no_place() {
        for path in [
            "session/a1b2/notes.json",
            "share/ses_1.json",
            "session_share/ses_1.json",
            "message/ses_1/.oc-msg_1.json.17.1.tmp",
            "message/msg_1.json",
            "part/prt_1.json",
            "ses_1.json",
            ".json",
            "",
        ] {
            assert_eq!(place(path), None, "{path}");
        }
    }
}
