//! Packs a folder as one file, so that it can be sent.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use zip::{CompressionMethod, DateTime, ZipWriter, result::ZipError, write::SimpleFileOptions};

use crate::cli::error::CliError;

/// The fastest level of deflate: what is sent to a machine nearby is not worth more time.
const LEVEL: i64 = 1;
/// Folders inside each other.
const MAX_DEPTH: usize = 64;

/// A folder that was packed.
pub(super) struct ZippedFolder {
    pub(super) file: NamedTempFile,
    /// What is neither a file nor a folder.
    pub(super) left_out: Vec<PathBuf>,
}

/// Writes a ZIP of the folder. The same files give the same bytes, so that an upload which was interrupted can go on, and the
/// daemon recognizes what it has already imported.
///
/// # Errors
/// Fails if a file cannot be read, or the temporary file cannot be written.
pub(super) fn zip(root: &Path) -> Result<ZippedFolder, CliError> {
    let file =
        NamedTempFile::with_suffix(".zip").map_err(CliError::file("write to", &std::env::temp_dir()))?;
    let mut packer = Packer { zip: ZipWriter::new(file), left_out: Vec::new() };
    packer.folder(root, "", MAX_DEPTH)?;
    let file = packer.zip.finish().map_err(|error| written(error, root))?;
    Ok(ZippedFolder { file, left_out: packer.left_out })
}

struct Packer {
    zip: ZipWriter<NamedTempFile>,
    left_out: Vec<PathBuf>,
}

impl Packer {
    /// Adds what is in a folder. `name` is the folder's name in the ZIP, empty or with a slash at the end.
    fn folder(&mut self, path: &Path, name: &str, depth: usize) -> Result<(), CliError> {
        if depth == 0 {
            return Err(CliError::Usage(format!(
                "{path:?} is more than {MAX_DEPTH} folders deep; import the folder with the export itself"
            )));
        }
        let unreadable = || CliError::file("read", path);
        let mut entries =
            fs::read_dir(path).map_err(unreadable())?.collect::<io::Result<Vec<_>>>().map_err(unreadable())?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type().map_err(CliError::file("read", &path))?;
            let Some(last) = path.file_name().and_then(|last| last.to_str()) else {
                return Err(CliError::Usage(format!("{path:?} has a name that is not UTF-8; rename it")));
            };
            let name = format!("{name}{last}");
            if kind.is_dir() {
                self.folder(&path, &format!("{name}/"), depth - 1)?;
            } else if kind.is_file() {
                self.file(&path, &name)?;
            } else {
                self.left_out.push(path);
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &str) -> Result<(), CliError> {
        let mut file = File::open(path).map_err(CliError::file("read", path))?;
        let length = file.metadata().map_err(CliError::file("read", path))?.len();
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(LEVEL))
            .last_modified_time(DateTime::default())
            .unix_permissions(0o600)
            .large_file(length >= u64::from(u32::MAX));
        self.zip.start_file(name, options).map_err(|error| written(error, path))?;
        io::copy(&mut file, &mut self.zip).map_err(CliError::file("pack", path))?;
        Ok(())
    }
}

fn written(error: ZipError, path: &Path) -> CliError {
    CliError::step(format!("cannot pack {path:?}"), error)
}
