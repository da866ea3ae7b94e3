//! Which files make one export, judged by their names: a hint, which their heads confirm.

use satchel_importer::names::{is_json, is_junk};

/// What a file's name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// JSON of any kind; its head must tell.
    Json,
    /// Belongs to an export of Claude and is private: never opened.
    Private,
    /// Describes an artifact; its head must tell.
    Artifact,
    /// Lies beside the description of an artifact.
    ArtifactFile,
    /// What a person said about an answer.
    Reflection,
}

/// The folder of an artifact's files, with its final `/`; none if the file is not one.
pub(crate) fn artifact_folder(path: &str) -> Option<&str> {
    let start = match path.strip_prefix("artifacts/") {
        Some(_) => "artifacts/".len(),
        None => path.find("/artifacts/")? + "/artifacts/".len(),
    };
    let end = start + path.get(start..)?.find('/')? + 1;
    path.get(..end)
}

/// Where a file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place<'p> {
    /// The folder of its export, without the final `/`.
    pub(crate) root: &'p str,
    pub(crate) promise: Promise,
    /// Whether its name alone is one that exports use; other names need a head that tells.
    pub(crate) known: bool,
    /// Whether it stands in a folder or an archive of one category.
    pub(crate) batched: bool,
}

/// Folders whose files are records of one kind.
const RECORD_FOLDERS: [&str; 4] = ["conversations", "projects", "memories", "design_chats"];
const KNOWN_FILES: [&str; 4] = ["conversations.json", "users.json", "projects.json", "memories.json"];
const CATEGORIES: [&str; 7] =
    ["conversations", "projects", "memories", "light_metadata", "design_chats", "frames", "feedback"];

/// Where the file `path` stands; none if no export holds such a file.
pub(crate) fn place(path: &str) -> Option<Place<'_>> {
    let (folder, name) = split(path);
    if is_junk(path) {
        return None;
    }
    if let Some(artifact) = artifact_folder(path) {
        let (above, _) = split(artifact.trim_end_matches('/'));
        let described = path.get(artifact.len()..) == Some("artifact.json");
        let promise = if described { Promise::Artifact } else { Promise::ArtifactFile };
        return Some(placed(split(above).0, promise, true));
    }
    if name == "login_history.json" {
        return Some(placed(folder, Promise::Private, true));
    }
    if !is_json(name) {
        return None;
    }
    let (above, last) = split(folder);
    if last == "reflections" {
        return Some(placed(above, Promise::Reflection, true));
    }
    if RECORD_FOLDERS.contains(&last) {
        return Some(placed(above, Promise::Json, true));
    }
    let known = KNOWN_FILES.contains(&name) || name.starts_with("manifest-");
    Some(placed(folder, Promise::Json, known))
}

fn placed(folder: &str, promise: Promise, known: bool) -> Place<'_> {
    let (above, last) = split(folder);
    let batched = category(last).is_some();
    let root = if batched || batch(last) { above } else { folder };
    Place { root, promise, known, batched }
}

/// The folder of a path and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The name of a file without its folder and its ending.
pub(crate) fn stem(path: &str) -> &str {
    let (_, name) = split(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Whether a file is called as those with projects are.
pub(crate) fn is_of_projects(path: &str) -> bool {
    let (folder, name) = split(path);
    name == "projects.json" || (split(folder).1 == "projects" && is_json(name))
}

/// The category of `conversations-000`, `conversations-000.zip` or `conversations-000 (1).zip`.
fn category(part: &str) -> Option<&'static str> {
    let (name, number) = part.split_once('-')?;
    let known = CATEGORIES.into_iter().find(|category| *category == name)?;
    number.starts_with(|first: char| first.is_ascii_digit()).then_some(known)
}

/// One of the archives that a large flat export has: `data-…-batch-0001.zip`.
fn batch(part: &str) -> bool {
    let number = part.rsplit_once("-batch-").map(|(_, number)| number);
    part.starts_with("data-")
        && number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(path: &str) -> Option<(&str, bool)> {
        place(path).map(|place| (place.root, place.batched))
    }

    #[test]
    fn files_of_one_export_have_one_root() {
        for path in ["conversations.json", "projects/p.json", "design_chats/d.json", "login_history.json"] {
            assert_eq!(root(path), Some(("", false)), "{path}");
        }
        for path in [
            "september/manifest-demo.json",
            "september/conversations-000.zip/conversations.json",
            "september/conversations-001 (1).zip/conversations.json",
            "september/projects-000/projects/p.json",
            "september/frames-000.zip/artifacts/a/versions/1.html",
            "september/light_metadata-000/users.json",
        ] {
            assert_eq!(root(path).map(|(root, _)| root), Some("september"), "{path}");
        }
        assert_eq!(root("data-1-2-batch-0001.zip/conversations.json"), Some(("", false)));
        assert_eq!(root("projects/mine/conversations.json"), Some(("projects/mine", false)));
    }

    #[test]
    fn names_promise_what_a_file_is() {
        let promise = |path| place(path).map(|place| (place.promise, place.known));
        assert_eq!(promise("My chat.JSON"), Some((Promise::Json, false)));
        assert_eq!(promise("users.json"), Some((Promise::Json, true)));
        assert_eq!(promise("light_metadata-000/login_history.json"), Some((Promise::Private, true)));
        assert_eq!(promise("artifacts/a/artifact.json"), Some((Promise::Artifact, true)));
        assert_eq!(promise("artifacts/a/versions/1/artifact.json"), Some((Promise::ArtifactFile, true)));
        assert_eq!(promise("artifacts/a.json"), Some((Promise::Json, false)));
        assert_eq!(promise("feedback-000/reflections/r.json"), Some((Promise::Reflection, true)));
        assert_eq!(promise("holiday.jpg"), None);
        assert_eq!(promise("__MACOSX/conversations.json"), None);
        assert_eq!(promise("a/._conversations.json"), None);
        assert_eq!(promise(".json"), None);
    }
}
