//! Small exports of every provider: the inputs of the importers' fixtures, as folders or packed as they are downloaded.

use std::{
    fs::{self, File},
    io::{self, Cursor, Seek, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};
use zip::{ZipWriter, write::SimpleFileOptions};

/// An export and its provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleExport {
    /// The name of the importer.
    pub provider: &'static str,
    /// The name of the fixture, which says what it tests.
    pub behaviour: String,
    /// The folder with the files of the export.
    pub input: PathBuf,
}

/// Returns the samples of all importers.
///
/// # Errors
/// If an importer has no samples.
pub fn samples() -> Result<Vec<SampleExport>> {
    let mut all = Vec::new();
    for built_in in satchel_plugins::BUILT_IN {
        for fixture in satchel_importer::testkit::fixtures(&fixtures(built_in.name))? {
            let behaviour = fixture.file_name().context("a name")?.to_string_lossy().into_owned();
            all.push(SampleExport { provider: built_in.name, behaviour, input: fixture.join("input") });
        }
    }
    Ok(all)
}

/// Returns the input of one fixture.
#[must_use]
pub fn sample(provider: &str, behaviour: &str) -> PathBuf {
    fixtures(provider).join(behaviour).join("input")
}

fn fixtures(provider: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(provider).join("fixtures")
}

/// Packs the content of `folder` into the archive `zip`. A folder whose name is that of an archive becomes an archive
/// inside it.
///
/// # Errors
/// If a file cannot be read or written.
pub fn pack(folder: &Path, zip: &Path) -> Result<()> {
    let mut writer = ZipWriter::new(File::create(zip)?);
    add_folder(folder, "", &mut writer)?;
    writer.finish()?;
    Ok(())
}

/// Copies the content of `folder` into the folder `to`. A folder whose name is that of an archive becomes an archive
/// there.
///
/// # Errors
/// If a file cannot be read or written.
pub fn copy(folder: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for child in children(folder)? {
        let place = to.join(child.file_name().context("a name")?);
        if is_archive(&child) {
            pack(&child, &place)?;
        } else if child.is_dir() {
            copy(&child, &place)?;
        } else {
            fs::copy(&child, &place)?;
        }
    }
    Ok(())
}

/// Makes all files below `folder` an hour old. A file that was written recently and is incomplete could be a running
/// download.
///
/// # Errors
/// If a file cannot be changed.
pub fn backdate(folder: &Path) -> Result<()> {
    let then = SystemTime::now().checked_sub(Duration::from_hours(1)).context("an hour ago")?;
    for child in children(folder)? {
        if child.is_dir() {
            backdate(&child)?;
        } else {
            let times = fs::FileTimes::new().set_modified(then);
            File::options().write(true).open(&child)?.set_times(times)?;
        }
    }
    Ok(())
}

fn add_folder<W: Write + Seek>(folder: &Path, prefix: &str, writer: &mut ZipWriter<W>) -> Result<()> {
    for child in children(folder)? {
        let name = format!("{prefix}{}", child.file_name().context("a name")?.to_string_lossy());
        if is_archive(&child) {
            let mut inner = ZipWriter::new(Cursor::new(Vec::new()));
            add_folder(&child, "", &mut inner)?;
            writer.start_file(name, SimpleFileOptions::default())?;
            writer.write_all(inner.finish()?.get_ref())?;
        } else if child.is_dir() {
            add_folder(&child, &format!("{name}/"), writer)?;
        } else {
            writer.start_file(name, SimpleFileOptions::default())?;
            io::copy(&mut File::open(&child)?, writer)?;
        }
    }
    Ok(())
}

fn is_archive(path: &Path) -> bool {
    path.is_dir() && path.extension().is_some_and(|extension| extension == "zip")
}

fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut children: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    children.sort();
    Ok(children)
}
