//! Sorts the files of a storage: which belong to which session, by their names alone.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::Bundle;

use crate::layout::{self, Place};

/// A folder with `message/` and `part/`, and the id of a session or a message in it.
pub(crate) type Key<'b> = (&'b str, &'b str);

/// The files of one session.
#[derive(Debug, Default)]
pub(crate) struct SessionFiles<'b> {
    /// The project and the path, if the session has a file of its own.
    pub(crate) file: Option<(&'b str, &'b str)>,
    /// The paths of more files of the same session, in folders of other projects.
    pub(crate) others: Vec<&'b str>,
    /// The id and the path of each message, sorted by path.
    pub(crate) messages: Vec<(&'b str, &'b str)>,
    pub(crate) tasks: Option<&'b str>,
    pub(crate) changes: Option<&'b str>,
}

/// The files of all storages in a bundle.
#[derive(Debug, Default)]
pub(crate) struct StorageIndex<'b> {
    pub(crate) sessions: BTreeMap<Key<'b>, SessionFiles<'b>>,
    /// The parts of each message: the ids in their names and their paths, sorted.
    parts: BTreeMap<Key<'b>, Vec<(&'b str, &'b str)>>,
    projects: BTreeSet<&'b str>,
}

impl<'b> StorageIndex<'b> {
    pub(crate) fn read(bundle: &'b Bundle) -> Self {
        let mut index = Self::default();
        let mut beside = Vec::new();
        for entry in bundle.entries() {
            let path = entry.path.as_str();
            match layout::place(path) {
                Some(Place::Session { root, project, id }) => {
                    let files = index.session(root, id);
                    match files.file {
                        Some(_) => files.others.push(path),
                        None => files.file = Some((project, path)),
                    }
                }
                Some(Place::Message { root, session, id }) => {
                    index.session(root, session).messages.push((id, path));
                }
                Some(Place::Part { root, message, id }) => {
                    index.parts.entry((root, message)).or_default().push((id, path));
                }
                Some(Place::Project { .. }) => {
                    index.projects.insert(path);
                }
                Some(place @ (Place::Tasks { .. } | Place::Changes { .. })) => beside.push((place, path)),
                None => {}
            }
        }
        for (place, path) in beside {
            // A list alone is no session.
            match place {
                Place::Tasks { root, session } => {
                    index.sessions.entry((root, session)).and_modify(|files| files.tasks = Some(path));
                }
                Place::Changes { root, session } => {
                    index.sessions.entry((root, session)).and_modify(|files| files.changes = Some(path));
                }
                _ => {}
            }
        }
        for parts in index.parts.values_mut() {
            parts.sort_unstable();
        }
        index
    }

    fn session(&mut self, root: &'b str, id: &'b str) -> &mut SessionFiles<'b> {
        self.sessions.entry((root, id)).or_default()
    }

    /// The parts of a message, sorted by their ids.
    pub(crate) fn parts(&self, root: &'b str, message: &'b str) -> &[(&'b str, &'b str)] {
        self.parts.get(&(root, message)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The parts of messages that are not there, by their folders.
    pub(crate) fn lost_parts(&self) -> impl Iterator<Item = (&'b str, &'b str)> {
        let known: BTreeSet<Key<'b>> = self
            .sessions
            .iter()
            .flat_map(|((root, _), files)| files.messages.iter().map(move |(id, _)| (*root, *id)))
            .collect();
        let lost: Vec<_> = self.parts.iter().filter(|(key, _)| !known.contains(*key)).collect();
        lost.into_iter().flat_map(|((root, _), parts)| {
            let root = *root;
            parts.iter().map(move |(_, path)| (root, *path)).collect::<Vec<_>>()
        })
    }

    /// The path of the file of a project.
    pub(crate) fn project(&self, root: &str, project: &str) -> Option<&'b str> {
        self.projects.get(layout::project_file(root, project).as_str()).copied()
    }

    /// The paths of all files of a session.
    pub(crate) fn paths(&self, key: Key<'b>) -> Vec<&'b str> {
        let Some(files) = self.sessions.get(&key) else { return Vec::new() };
        let mut paths: Vec<&str> = files.file.iter().map(|(_, path)| *path).collect();
        paths.extend(files.tasks.iter().chain(&files.changes).chain(&files.others));
        for (message, path) in &files.messages {
            paths.push(path);
            paths.extend(self.parts(key.0, message).iter().map(|(_, path)| *path));
        }
        paths
    }
}
