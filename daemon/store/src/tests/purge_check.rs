//! An erasure that could not be completed is refused before anything has changed.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    os::unix::{
        fs::{PermissionsExt as _, chown, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use satchel_seal::{DataKey, Seal};

use super::{
    disk::CrashDisk,
    fixture::open_real,
    purge::{EraseAll, make_planted, planted_in_journal},
};
use crate::{
    Health, StoreError,
    blob::blob_path,
    disk::{Disk, OsDisk},
    encrypt::stage_encryption,
    erase::erase,
    journal::segments::Segments,
    purge::{check, check_purge, purge},
};

/// Set in the child process: the path that it erases.
const ERASED: &str = "SATCHEL_TEST_ERASED";
/// The user without permissions.
const NOBODY: u32 = 65_534;

/// A file that cannot be written until this value is dropped: its owner lacks the permission, and even root cannot write it.
struct UnwritableFile(PathBuf, u32);

impl UnwritableFile {
    /// Returns `None` if the file system does not support such files and this user may write everything.
    fn new(path: &Path) -> Option<Self> {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        let mut file = Some(Self(path.to_owned(), mode));
        fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
        if rustix::process::geteuid().is_root() && !immutable(path, true) {
            writeln!(std::io::stderr(), "not run: the file system keeps no file from root").unwrap();
            file = None;
        }
        file
    }
}

impl Drop for UnwritableFile {
    fn drop(&mut self) {
        if rustix::process::geteuid().is_root() {
            immutable(&self.0, false);
        }
        fs::set_permissions(&self.0, fs::Permissions::from_mode(self.1)).unwrap();
    }
}

fn immutable(path: &Path, on: bool) -> bool {
    let file = fs::File::open(path).unwrap();
    let Ok(mut flags) = ioctl_getflags(&file) else { return false };
    flags.set(IFlags::IMMUTABLE, on);
    ioctl_setflags(&file, flags).is_ok()
}

/// Checks that the erasure is refused with the name of the obstacle, and that the store is unchanged.
fn check_refused(dir: &Path, all: &mut EraseAll, obstacle: &str) {
    let message = |error: StoreError| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error}: {}", source.unwrap_or_default())
    };
    let attachments = all.attachments.clone();
    let first = message(check_purge(dir, None, &attachments).expect_err(obstacle));
    assert!(first.contains(obstacle) && first.contains("nothing was changed"), "{obstacle}: {first}");
    let second = message(purge(dir, None, all, &mut |_| {}).expect_err(obstacle));
    assert!(second.contains(obstacle), "{obstacle}: {second}");
    let seal = Seal::new(&DataKey::from_bytes(&[42; 32]));
    let third = message(stage_encryption(dir, &seal, &|| false, &mut |_| {}).expect_err(obstacle));
    assert!(third.contains(obstacle), "{obstacle}: {third}");
    for made in ["purging", "purging.new", "encrypting"] {
        assert!(!dir.join(made).exists(), "{obstacle}: {made} stands");
    }
    assert!(planted_in_journal(dir), "{obstacle}: it was erased in part");
}

#[test]
fn links_are_refused_before_anything_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut all) = make_planted(dir.path());
    fs::create_dir(dir.path().join("db.broken-1")).unwrap();
    let blob = blob_path(dir.path(), all.attachments.first().unwrap());
    let below: Vec<PathBuf> = ["journal", "db", "db.state", "blobs", "db.broken-1", "journal/00000001.seg"]
        .iter()
        .map(|name| dir.path().join(name))
        .chain([blob.parent().unwrap().to_owned(), blob])
        .collect();
    for path in below {
        let large = tempfile::tempdir().unwrap();
        let there = large.path().join("there");
        fs::rename(&path, &there).unwrap();
        symlink(&there, &path).unwrap();
        check_refused(dir.path(), &mut all, path.to_str().unwrap());
        fs::remove_file(&path).unwrap();
        fs::rename(&there, &path).unwrap();
    }
    // A link to the whole store is not a link inside it.
    let above = tempfile::tempdir().unwrap();
    let link = above.path().join("data");
    symlink(dir.path(), &link).unwrap();
    check_purge(&link, None, &all.attachments).unwrap();
    purge(&link, None, &mut all, &mut |_| {}).unwrap();
    assert!(!planted_in_journal(dir.path()));
}

#[test]
fn unwritable_files_are_refused_before_anything_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut all) = make_planted(dir.path());
    let blob = blob_path(dir.path(), all.attachments.first().unwrap());
    let folder = blob.parent().unwrap().to_owned();
    let names =
        ["journal/00000001.seg", "journal", "db/db", "db", "db.state"].map(|name| dir.path().join(name));
    for path in names.into_iter().chain([folder, blob]) {
        let Some(unwritable) = UnwritableFile::new(&path) else { return };
        check_refused(dir.path(), &mut all, path.to_str().unwrap());
        drop(unwritable);
        let (store, _) = open_real(dir.path(), "boot").unwrap();
        assert_eq!(store.health(), Health::Good, "{}", path.display());
        store.close().unwrap();
    }
    // Other files among the attachments do not matter.
    fs::write(dir.path().join("blobs/other"), "").unwrap();
    let other = UnwritableFile::new(&dir.path().join("blobs/other"));
    purge(dir.path(), None, &mut all, &mut |_| {}).unwrap();
    drop(other);
    assert!(!planted_in_journal(dir.path()));
}

#[test]
fn missing_space_is_reported_with_figures_before_anything_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (_, all) = make_planted(dir.path());
    let real: Arc<dyn Disk> = Arc::new(OsDisk);
    let old = Segments::list(&real, dir.path().join("journal"), None).unwrap().unwrap();
    let disk = CrashDisk::default();
    let ask = |free: u64| {
        disk.lock().free = Some(free);
        check::check(dir.path(), &old, &all.attachments, &disk)
    };
    let refused = ask(60_000_000).unwrap_err();
    let StoreError::NoRoom { needed, free, .. } = &refused else { panic!("{refused}") };
    assert!(*free == 60_000_000 && *needed > 3 * old.bytes_from(Segments::beginning()), "{refused}");
    let message = refused.to_string();
    assert!(message.contains("60 MB free") && message.contains("68 MB are needed"), "{message}");
    ask(*needed).unwrap();
    assert!(ask(*needed - 1).is_err());
}

#[test]
fn a_folder_without_a_journal_passes_the_check() {
    let dir = tempfile::tempdir().unwrap();
    open_real(dir.path(), "boot").unwrap().0.close().unwrap();
    check_purge(dir.path(), None, &BTreeSet::new()).unwrap();
}

/// Not a test of its own, but the code that a user without permissions runs.
#[test]
fn child_that_erases() {
    if let Some(path) = std::env::var_os(ERASED) {
        erase(Path::new(&path)).unwrap();
    }
}

#[test]
fn erasing_grants_missing_permissions() {
    let above = tempfile::tempdir().unwrap();
    let (old, folder) = (above.path().join("old"), above.path().join("old/inner"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("file"), "plain").unwrap();
    let modes = [(folder.join("file"), 0o444), (folder, 0o555), (old.clone(), 0o500)];
    let root = rustix::process::geteuid().is_root();
    for (path, mode) in &modes {
        fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
        chown(path, root.then_some(NOBODY), None).unwrap();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tests::purge_check::child_that_erases"]).env(ERASED, &old);
    if root {
        chown(above.path(), Some(NOBODY), None).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let Ok(output) = command.output() else {
        writeln!(std::io::stderr(), "not run: a user without rights cannot start this program").unwrap();
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!old.exists());
}
