//! A watched folder with sessions: files to which programs append for hours, in folders for projects or days.
//!
//! Its names are paths below it. Each file that an importer might read is a name of its own, so that a session that grows
//! is read without the others. What is in a folder with the name of a session, without its extension, belongs to that
//! session. Notes in Markdown beside sessions, such as the memories of a project, say what they mean only together with
//! the sessions: the name for them is that of the folder with the sessions. The notes of a project that has a file with its folder say so
//! themselves, and are a name of their own.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    time::Instant,
};

use rustix::{
    fd::OwnedFd,
    fs::{FileType, Stat},
    io::Errno,
};
use satchel_source::names;

use super::{
    FolderWalk, MAX_BELOW, MAX_DEPTH, MAX_NAMES, OsFolder, file_complete, for_each_entry, inspect_file,
    open_folder, stat_at,
};
use crate::{
    folder_fs::{FolderFs, Inspection},
    settle::{Observation, Stamp},
};

/// Extensions of notes.
const NOTES: &str = "md";
/// The notes of a project of Gemini CLI, below the folder that has [`names::PROJECT_FILE`].
const PROJECT_NOTES: [&str; 2] = ["memory", "MEMORY.md"];

/// Why a folder cannot be opened if it is not there, or is a file or a link.
const NO_FOLDER: [Errno; 3] = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];

/// A watched folder with sessions on a real file system.
#[derive(Debug)]
pub(crate) struct SessionFolder(pub(crate) OsFolder);

/// The entries of a folder that are not ignored, sorted.
struct Listing {
    files: Vec<OsString>,
    folders: Vec<OsString>,
}

impl FolderFs for SessionFolder {
    fn identity(&self) -> io::Result<(u64, u64)> {
        self.0.identity()
    }

    fn reports_changes(&self) -> bool {
        self.0.reports_changes()
    }

    /// Lists the sessions, and all folders: changes in them matter too.
    fn list(&self) -> io::Result<(Vec<OsString>, bool)> {
        let mut names = Vec::new();
        self.list_below(&self.0.open_root()?, Path::new(""), Depth::default(), &mut names)?;
        let truncated = names.len() > MAX_NAMES;
        names.truncate(MAX_NAMES);
        names.sort();
        Ok((names, truncated))
    }

    fn inspect(&self, name: &OsStr) -> io::Result<Inspection> {
        let begun = Instant::now();
        let Some(place) = self.find(Path::new(name))? else { return Ok(Inspection::default()) };
        if let Some(session) = place.session {
            return Ok(Inspection { related: vec![session], ..Inspection::default() });
        }
        let Some(stat) = stat_at(&place.folder, &place.name)? else { return Ok(Inspection::default()) };
        let observed = |(stamp, hold)| Observation { stamp, hold, took: begun.elapsed() };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if names::importable(&place.name) => {
                let below = self.below_session(&place, name)?;
                let found = inspect_file(&place.folder, &place.name, &stat);
                let observation = found.map(|(stamp, hold)| {
                    observed((Stamp { below: below.wrapping_add(stamp.below), ..stamp }, hold))
                });
                Ok(Inspection { observation, ..Inspection::default() })
            }
            FileType::RegularFile if self.is_project_notes(Path::new(name))? => {
                let observation =
                    Observation { stamp: super::stamp(&stat), hold: None, took: begun.elapsed() };
                Ok(Inspection { observation: Some(observation), ..Inspection::default() })
            }
            FileType::RegularFile if is_note(&place.name) => {
                let related = self.folder_of_note(Path::new(name))?.into_iter().collect();
                Ok(Inspection { related, ..Inspection::default() })
            }
            FileType::Directory if !self.0.is_data_dir(&stat) => {
                let folder = open_folder(&place.folder, &place.name)?;
                let stamp = self.notes_stamp(&folder, name, &stat)?;
                let Listing { files, folders } = self.entries(&folder)?;
                let related = files
                    .into_iter()
                    .chain(folders)
                    .map(|entry| Path::new(name).join(entry).into())
                    .collect();
                let folders = vec![self.0.root().join(name)];
                Ok(Inspection { observation: stamp.map(|stamp| observed((stamp, None))), folders, related })
            }
            _ => Ok(Inspection::default()),
        }
    }

    /// Files with lines need no check, as only their whole lines are read.
    fn check_complete(&self, name: &OsStr) -> io::Result<Result<(), String>> {
        let Some(place) = self.find(Path::new(name))? else {
            return Ok(Err("it no longer exists".to_owned()));
        };
        let Some(stat) = stat_at(&place.folder, &place.name)? else {
            return Ok(Err("it no longer exists".to_owned()));
        };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_file && !names::has_lines(&place.name) {
            return file_complete(&place.folder, &place.name);
        }
        Ok(Ok(()))
    }
}

/// Where a name is.
struct NameLocation {
    /// The folder that contains it, and its name there.
    folder: OwnedFd,
    name: OsString,
    /// The session to which it belongs, if it is in the folder of one.
    session: Option<OsString>,
}

impl SessionFolder {
    /// Opens the folder that contains `path`, without following links; none if there is none, or a name is ignored.
    fn find(&self, path: &Path) -> io::Result<Option<NameLocation>> {
        let Some(name) = path.file_name() else { return Ok(None) };
        let (mut folder, mut above) = (self.0.open_root()?, PathBuf::new());
        let mut session = None;
        for step in path.parent().unwrap_or(Path::new("")) {
            if session.is_none() {
                session = session_beside(&folder, step).map(|file| above.join(file).into_os_string());
            }
            let Some(opened) = self.open_below(&folder, step)? else { return Ok(None) };
            folder = opened;
            above.push(step);
        }
        Ok((!self.0.is_ignored(name)).then(|| NameLocation { folder, name: name.to_owned(), session }))
    }

    /// Opens a folder in `folder`; none if it is ignored, or is not a folder.
    fn open_below(&self, folder: &OwnedFd, name: &OsStr) -> io::Result<Option<OwnedFd>> {
        if self.0.is_ignored(name) {
            return Ok(None);
        }
        match open_folder(folder, name) {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if Errno::from_io_error(&error).is_some_and(|errno| NO_FOLDER.contains(&errno)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether these are the notes of a project that say by themselves to which one they belong.
    fn is_project_notes(&self, path: &Path) -> io::Result<bool> {
        let [folder, file] = PROJECT_NOTES;
        if !path.ends_with(Path::new(folder).join(file)) {
            return Ok(false);
        }
        let mut project = self.0.open_root()?;
        for step in path.parent().and_then(Path::parent).unwrap_or(Path::new("")) {
            let Some(opened) = self.open_below(&project, step)? else { return Ok(false) };
            project = opened;
        }
        let found = stat_at(&project, OsStr::new(names::PROJECT_FILE))?;
        Ok(found.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile))
    }

    /// Returns the closest folder above a note that has sessions.
    fn folder_of_note(&self, note: &Path) -> io::Result<Option<OsString>> {
        let (mut folder, mut above, mut found) = (self.0.open_root()?, PathBuf::new(), None);
        for step in note.parent().unwrap_or(Path::new("")) {
            let Some(opened) = self.open_below(&folder, step)? else { return Ok(None) };
            folder = opened;
            above.push(step);
            if self.entries(&folder)?.has_sessions() {
                found = Some(above.clone().into_os_string());
            }
        }
        Ok(found)
    }

    fn entries(&self, folder: &OwnedFd) -> io::Result<Listing> {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        // A duplicate of the descriptor would go on where the listing before it ended.
        let listing = open_folder(folder, OsStr::new("."))?;
        for_each_entry(listing, &mut |name, kind| {
            if files.len() + folders.len() >= MAX_BELOW {
                return Err(io::Error::other(format!("it contains more than {MAX_BELOW} files")));
            }
            if !self.0.is_ignored(name) {
                match kind {
                    FileType::Directory => folders.push(name.to_owned()),
                    FileType::RegularFile | FileType::Unknown => files.push(name.to_owned()),
                    _ => {}
                }
            }
            Ok(true)
        })?;
        files.sort();
        folders.sort();
        Ok(Listing { files, folders })
    }

    /// Returns a hash over the files in the folder of the session `name`; 0 if it has none.
    fn below_session(&self, place: &NameLocation, name: &OsStr) -> io::Result<u64> {
        if !names::has_lines(&place.name) {
            return Ok(0);
        }
        let folder = Path::new(&place.name).with_extension("");
        let Ok(opened) = open_folder(&place.folder, folder.as_os_str()) else { return Ok(0) };
        let mut walk = FolderWalk::new(&self.0);
        walk.walk_folder(opened, Path::new(name).with_extension(""), 0)?;
        Ok(walk.below)
    }

    /// Returns the stamp of the notes that belong to the sessions in a folder; none if there are no notes, or no
    /// sessions.
    fn notes_stamp(&self, folder: &OwnedFd, name: &OsStr, stat: &Stat) -> io::Result<Option<Stamp>> {
        if !self.entries(folder)?.has_sessions() {
            return Ok(None);
        }
        let mut walk = FolderWalk::new(&self.0);
        let notes = self.add_notes(folder, Path::new(name), 0, &mut walk)?;
        Ok((notes > 0).then(|| walk.stamp(stat)))
    }

    /// Adds the notes below a folder to `walk`; returns how many there are. Only the folders above one are open.
    fn add_notes(
        &self,
        folder: &OwnedFd,
        path: &Path,
        depth: usize,
        walk: &mut FolderWalk<'_>,
    ) -> io::Result<usize> {
        let Listing { files, folders } = self.entries(folder)?;
        let mut notes = 0;
        for note in files.iter().filter(|name| is_note(name)) {
            notes += 1;
            walk.add_file(folder, note, path)?;
        }
        for inner in folders.iter().filter(|_| depth < MAX_DEPTH) {
            // A session has no notes, and the sessions of a folder below have their own.
            if session_beside(folder, inner).is_none()
                && let Ok(opened) = open_folder(folder, inner)
                && !self.entries(&opened)?.has_sessions()
            {
                notes += self.add_notes(&opened, &path.join(inner), depth + 1, walk)?;
            }
        }
        Ok(notes)
    }

    /// Adds the sessions and folders below a folder to `names`, until there are too many. Only the folders above one are
    /// open.
    fn list_below(
        &self,
        folder: &OwnedFd,
        path: &Path,
        depth: Depth,
        names: &mut Vec<OsString>,
    ) -> io::Result<()> {
        let Listing { files, folders } = self.entries(folder)?;
        let sessions = files.iter().filter(|name| !depth.in_session && names::importable(name));
        names.extend(sessions.map(|name| path.join(name).into_os_string()));
        let notes = path.join(PROJECT_NOTES[1]);
        if files.iter().any(|name| name == PROJECT_NOTES[1]) && self.is_project_notes(&notes)? {
            names.push(notes.into_os_string());
        }
        for name in &folders {
            if names.len() > MAX_NAMES {
                return Ok(());
            }
            // A folder that was removed in the meantime, or may not be read, has no names.
            let Ok(opened) = open_folder(folder, name) else { continue };
            if self.0.is_data_dir(&rustix::fs::fstat(&opened)?) {
                continue;
            }
            let below = path.join(name);
            names.push(below.clone().into_os_string());
            let in_session = depth.in_session || session_beside(folder, name).is_some();
            if depth.folders < MAX_DEPTH {
                let depth = Depth { folders: depth.folders + 1, in_session };
                self.list_below(&opened, &below, depth, names)?;
            }
        }
        Ok(())
    }
}

/// How deep a folder is.
#[derive(Clone, Copy, Default)]
struct Depth {
    folders: usize,
    /// Whether it belongs to a session.
    in_session: bool,
}

impl Listing {
    fn has_sessions(&self) -> bool {
        self.files.iter().any(|file| names::has_lines(file))
    }
}

/// Returns the file of the session to which `name` in `folder` belongs if it is a folder.
fn session_beside(folder: &OwnedFd, name: &OsStr) -> Option<OsString> {
    names::with_lines(name).find(|file| {
        // A name that is too long with the extension has no file.
        let stat = stat_at(folder, file).ok().flatten();
        stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    })
}

fn is_note(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case(NOTES))
}

#[cfg(test)]
mod tests;
