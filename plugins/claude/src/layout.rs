//! Which export a file belongs to and what it may hold, judged by its path. Its content confirms it.

use satchel_importer::names::{is_json, is_junk};

/// What a file may hold, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathKind {
    /// JSON of any kind.
    Json,
    /// Private data of an export of Claude: never opened.
    Private,
    /// The description of an artifact.
    Artifact,
    /// A file beside the description of an artifact.
    ArtifactFile,
    /// A person's feedback on an answer.
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

/// What the path of a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathInfo<'p> {
    /// The folder of its export, without the final `/`.
    pub(crate) root: &'p str,
    pub(crate) kind: PathKind,
    /// Exports use this name; a file of another name is only recognized by its content.
    pub(crate) known: bool,
    /// It is in a folder or an archive of one category.
    pub(crate) batched: bool,
}

/// Folders whose files are records of one kind.
const RECORD_FOLDERS: [&str; 4] = ["conversations", "projects", "memories", "design_chats"];
const KNOWN_FILES: [&str; 4] = ["conversations.json", "users.json", "projects.json", "memories.json"];
const CATEGORIES: [&str; 7] =
    ["conversations", "projects", "memories", "light_metadata", "design_chats", "frames", "feedback"];

/// Classifies a file by its path; none if no export holds such a file.
pub(crate) fn classify(path: &str) -> Option<PathInfo<'_>> {
    let (folder, name) = split(path);
    if is_junk(path) {
        return None;
    }
    if let Some(artifact) = artifact_folder(path) {
        let (above, _) = split(artifact.trim_end_matches('/'));
        let description = path.get(artifact.len()..) == Some("artifact.json");
        let kind = if description { PathKind::Artifact } else { PathKind::ArtifactFile };
        return Some(info(split(above).0, kind, true));
    }
    if name == "login_history.json" {
        return Some(info(folder, PathKind::Private, true));
    }
    if !is_json(name) {
        return None;
    }
    let (above, last) = split(folder);
    if last == "reflections" {
        return Some(info(above, PathKind::Reflection, true));
    }
    if RECORD_FOLDERS.contains(&last) {
        return Some(info(above, PathKind::Json, true));
    }
    let known = KNOWN_FILES.contains(&name) || name.starts_with("manifest-");
    Some(info(folder, PathKind::Json, known))
}

fn info(folder: &str, kind: PathKind, known: bool) -> PathInfo<'_> {
    let (above, last) = split(folder);
    let batched = is_category(last);
    let root = if batched || is_batch(last) { above } else { folder };
    PathInfo { root, kind, known, batched }
}

/// The folder of a path and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The name of a file without its folder and its extension.
pub(crate) fn stem(path: &str) -> &str {
    let (_, name) = split(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Whether the path is one that files of projects have.
pub(crate) fn is_of_projects(path: &str) -> bool {
    let (folder, name) = split(path);
    name == "projects.json" || (split(folder).1 == "projects" && is_json(name))
}

/// Whether it is a category such as `conversations-000`, `conversations-000.zip` or `conversations-000 (1).zip`.
fn is_category(part: &str) -> bool {
    part.split_once('-').is_some_and(|(name, number)| CATEGORIES.contains(&name) && starts_with_digit(number))
}

/// Whether it is one of the archives of a large flat export: `data-…-batch-0001.zip`.
fn is_batch(part: &str) -> bool {
    part.starts_with("data-")
        && part.rsplit_once("-batch-").is_some_and(|(_, number)| starts_with_digit(number))
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(path: &str) -> Option<(&str, bool)> {
        classify(path).map(|info| (info.root, info.batched))
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
    fn files_are_classified_by_path() {
        let kind = |path| classify(path).map(|info| (info.kind, info.known));
        assert_eq!(kind("My chat.JSON"), Some((PathKind::Json, false)));
        assert_eq!(kind("users.json"), Some((PathKind::Json, true)));
        assert_eq!(kind("light_metadata-000/login_history.json"), Some((PathKind::Private, true)));
        assert_eq!(kind("artifacts/a/artifact.json"), Some((PathKind::Artifact, true)));
        assert_eq!(kind("artifacts/a/versions/1/artifact.json"), Some((PathKind::ArtifactFile, true)));
        assert_eq!(kind("artifacts/a.json"), Some((PathKind::Json, false)));
        assert_eq!(kind("feedback-000/reflections/r.json"), Some((PathKind::Reflection, true)));
        assert_eq!(kind("holiday.jpg"), None);
        assert_eq!(kind("__MACOSX/conversations.json"), None);
        assert_eq!(kind("a/._conversations.json"), None);
        assert_eq!(kind(".json"), None);
    }
}
