//! The names of folders, which exports do not have.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{ImportError, Sink};

use super::{Source, text, unless_damaged};

/// Folders of all people.
const MAX_FOLDERS: usize = 50_000;
/// Bytes of an id or a name of a folder.
const MAX_TEXT: usize = 1024;

/// The name and the parent of each folder.
#[derive(Debug, Default)]
pub(super) struct Folders(BTreeMap<String, (String, Option<String>)>);

impl Folders {
    pub(super) fn read(source: &Source<'_>, sink: &mut Sink) -> Result<Self, ImportError> {
        let mut folders = Self::default();
        let table = source.database.table("folder").filter(|table| table.has(&["id", "parent_id", "name"]));
        let Some(table) = table else { return Ok(folders) };
        let mut unread = 0_u64;
        for row in source.database.rows(table) {
            let read =
                row.and_then(|row| Ok((text(&row, "id")?, text(&row, "name")?, text(&row, "parent_id")?)));
            match unless_damaged(read)? {
                Some((Some(id), Some(name), parent))
                    if id.len().max(name.len()) <= MAX_TEXT && folders.0.len() < MAX_FOLDERS =>
                {
                    folders.0.insert(id, (name, parent.filter(|parent| parent.len() <= MAX_TEXT)));
                }
                _ => unread += 1,
            }
        }
        if unread > 0 {
            sink.warn(source.path, &format!("folders whose names cannot be read: {unread}"));
        }
        Ok(folders)
    }

    /// The names from the outermost folder to this one. Folders that contain themselves end the path.
    pub(super) fn path(&self, id: &str) -> Vec<&str> {
        let (mut names, mut known, mut next) = (Vec::new(), BTreeSet::new(), Some(id));
        while let Some((name, parent)) = next.filter(|id| known.insert(*id)).and_then(|id| self.0.get(id)) {
            names.push(name.as_str());
            next = parent.as_deref();
        }
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_has_every_folder_once() {
        let folder = |name: &str, parent: Option<&str>| (name.to_owned(), parent.map(ToOwned::to_owned));
        let folders = Folders(
            [
                ("a", folder("Home", None)),
                ("b", folder("Papers", Some("a"))),
                ("c", folder("Round", Some("d"))),
                ("d", folder("And round", Some("c"))),
                ("e", folder("Alone", Some("deleted"))),
            ]
            .map(|(id, folder)| (id.to_owned(), folder))
            .into(),
        );
        for (id, path) in [
            ("b", vec!["Home", "Papers"]),
            ("c", vec!["And round", "Round"]),
            ("e", vec!["Alone"]),
            ("f", vec![]),
        ] {
            assert_eq!(folders.path(id), path, "{id}");
        }
    }
}
