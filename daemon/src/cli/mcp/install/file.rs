//! A configuration file that is read, shown, and replaced as a whole.

use std::{
    fs::{self, Permissions},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::cli::error::CliError;

/// The largest file that is read, in bytes. That of Claude Code holds the history of its prompts and has some megabytes.
const MAX_BYTES: u64 = 256 << 20;

/// The text of a configuration file.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// The file itself. Where the path was a link, as with files that are kept in a repository, it is the file behind it.
    pub(super) path: PathBuf,
    /// Empty if there is no file.
    pub(super) text: String,
    permissions: Option<Permissions>,
}

impl ConfigFile {
    /// Reads the file at `path`, if there is one.
    ///
    /// # Errors
    /// Fails if it is no text, or cannot be read.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let failed = CliError::file("read", path);
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                return Ok(Self { path: path.to_owned(), text: String::new(), permissions: None });
            }
            Err(error) => return Err(failed(error)),
        };
        let about = fs::metadata(&path).map_err(&failed)?;
        if !about.is_file() || about.len() > MAX_BYTES {
            return Err(CliError::Usage(format!("{path:?} is not a configuration file")));
        }
        if about.nlink() > 1 {
            return Err(CliError::Declined(format!(
                "{path:?} has {} names (hard links), and replacing it would leave the others as they are; make it a symbolic link, or edit it yourself",
                about.nlink()
            )));
        }
        let text = fs::read_to_string(&path).map_err(failed)?;
        Ok(Self { path, text, permissions: Some(about.permissions()) })
    }

    /// Writes the new text beside the file.
    ///
    /// # Errors
    /// Fails if the file is protected, or cannot be written.
    pub(super) fn prepare(&self, text: &str) -> Result<PreparedFile<'_>, CliError> {
        if self.permissions.as_ref().is_some_and(Permissions::readonly) {
            return Err(CliError::Declined(format!("{:?} is protected from writing", self.path)));
        }
        let failed = CliError::file("write", &self.path);
        let mut fresh = NamedTempFile::new_in(self.folder()).map_err(&failed)?;
        fresh.write_all(text.as_bytes()).map_err(&failed)?;
        if let Some(permissions) = &self.permissions {
            fresh.as_file().set_permissions(permissions.clone()).map_err(&failed)?;
        }
        fresh.as_file().sync_all().map_err(failed)?;
        Ok(PreparedFile { file: self, fresh })
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// The new text of a file, which is on the disk and not yet in its place.
#[derive(Debug)]
pub(super) struct PreparedFile<'a> {
    file: &'a ConfigFile,
    fresh: NamedTempFile,
}

impl PreparedFile<'_> {
    /// Replaces the file atomically, if it still has the text that was read.
    ///
    /// # Errors
    /// Fails if the file has changed, or cannot be replaced.
    pub(super) fn persist(self) -> Result<(), CliError> {
        let Self { file, fresh } = self;
        let failed = CliError::file("write", &file.path);
        // Programs write these files while they run. What they have written since would be lost.
        if ConfigFile::read(&file.path)?.text != file.text {
            return Err(CliError::Declined(format!(
                "{:?} was changed by another program meanwhile; run the command again",
                file.path
            )));
        }
        fresh.persist(&file.path).map_err(|error| failed(error.error))?;
        fs::File::open(file.folder()).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_keeps_its_permissions_and_a_link_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("kept.json"), folder.path().join("link.json"));
        fs::write(&file, "{}").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        ConfigFile::read(&link).unwrap().prepare("{1}").unwrap().persist().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "{1}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn a_new_file_is_readable_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        let file = ConfigFile::read(&path).unwrap();
        assert_eq!(file.text, "");
        file.prepare("{}").unwrap().persist().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_another_program_wrote_meanwhile_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        for before in [None, Some("{}")] {
            if let Some(before) = before {
                fs::write(&path, before).unwrap();
            }
            let file = ConfigFile::read(&path).unwrap();
            let prepared = file.prepare("{}").unwrap();
            fs::write(&path, "{\"theirs\": 1}").unwrap();
            assert!(matches!(prepared.persist(), Err(CliError::Declined(_))));
            assert_eq!(fs::read_to_string(&path).unwrap(), "{\"theirs\": 1}");
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn what_is_no_text_file_or_protected_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ConfigFile::read(folder.path()).is_err(), "a folder");
        let path = folder.path().join("x");
        fs::write(&path, b"\xff").unwrap();
        assert!(ConfigFile::read(&path).is_err());
        let (file, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&file, "{}").unwrap();
        fs::hard_link(&file, &other).unwrap();
        assert!(ConfigFile::read(&file).unwrap_err().to_string().contains("hard links"));
        fs::remove_file(other).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
        assert!(ConfigFile::read(&file).unwrap().prepare("").unwrap_err().to_string().contains("protected"));
        let dangling = folder.path().join("dangling");
        symlink(folder.path().join("nothing"), &dangling).unwrap();
        assert!(ConfigFile::read(&dangling).is_err(), "it would replace the link");
    }
}
