//! Compiled importers cached between starts: whatever is in the cache, only entries sealed with this user's key are
//! run.

#![expect(clippy::print_stderr, reason = "a skipped test prints the reason")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    thread,
};

use anyhow::{Context as _, Result, ensure};
use satchel_host::{CacheStatus, CodeCache, Host, HostOptions};
use satchel_tests::{guests, unprivileged};
use tempfile::TempDir;

/// The id of the user `nobody` on every Linux.
const NOBODY_UID: u32 = 65_534;
/// A component that reads nothing.
const EMPTY_GUEST: &str = "(func $run (result i32) (global.get $ok))";
/// The name of this component.
const PLUGIN_NAME: &str = "hostile";
/// Number of positions at which entries are damaged, spread over all their bytes.
const DAMAGED_POSITIONS: usize = 24;

struct CacheFixture {
    folder: TempDir,
    cache: CodeCache,
    wasm: Vec<u8>,
}

impl CacheFixture {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        let cache = CodeCache { folder: at("cache/importers"), key_file: at("state/code-cache.key") };
        Ok(Self { cache, folder, wasm: guests::component_from_wat(EMPTY_GUEST, 1)? })
    }

    /// Loads the component as a newly started process would; returns how the cache was used.
    fn load(&self) -> Result<CacheStatus> {
        let host = Host::new(HostOptions { cache: Some(self.cache.clone()), ..HostOptions::default() })?;
        let plugin = host.load(&self.wasm)?;
        ensure!(plugin.info().name == PLUGIN_NAME, "another component: {}", plugin.info().name);
        Ok(host.cache())
    }

    fn load_and_count_rejected(&self) -> Result<usize> {
        match self.load()? {
            CacheStatus::On { rejected, .. } => Ok(rejected),
            other => anyhow::bail!("the cache is not used: {other:?}"),
        }
    }

    fn entry_path(&self) -> Result<PathBuf> {
        let mut entries = Vec::new();
        for found in fs::read_dir(&self.cache.folder)? {
            entries.push(found?.path());
        }
        entries.retain(|path| path.extension().is_some_and(|extension| extension == "code"));
        ensure!(entries.len() == 1, "{entries:?}");
        entries.pop().context("an entry")
    }
}

#[test]
fn a_damaged_or_forged_entry_is_recompiled() -> Result<()> {
    let fixture = CacheFixture::new()?;
    ensure!(fixture.load_and_count_rejected()? == 0);
    let entry = fixture.entry_path()?;
    let original = fs::read(&entry)?;
    let step = (original.len() * 8 / DAMAGED_POSITIONS).max(1);
    for bit in (0..original.len() * 8).step_by(step) {
        let mut flipped = original.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&entry, &flipped)?;
        ensure!(fixture.load_and_count_rejected()? == 1, "bit {bit}: the change was not detected");
        ensure!(fixture.load_and_count_rejected()? == 0, "bit {bit}: the entry was not rewritten");
    }
    for length in [0, 7, 40, 41, original.len() - 1] {
        fs::write(&entry, &original[..length])?;
        ensure!(fixture.load_and_count_rejected()? == 1, "{length} bytes were accepted");
    }
    // An intact entry that was sealed with another user's key.
    let other = CacheFixture { cache: fixture.cache.clone(), ..CacheFixture::new()? };
    fs::write(&fixture.cache.key_file, [7; 32])?;
    ensure!(other.load_and_count_rejected()? == 1);
    fs::write(&entry, &original)?;
    ensure!(other.load_and_count_rejected()? == 1, "an entry sealed with another key was accepted");
    Ok(())
}

#[test]
fn an_entry_of_another_component_is_rejected() -> Result<()> {
    let fixture = CacheFixture::new()?;
    fixture.load()?;
    let entry = fixture.entry_path()?;
    let sealed = fs::read(&entry)?;
    fs::remove_file(&entry)?;
    let other = CacheFixture { wasm: guests::component_from_wat(EMPTY_GUEST, 2)?, ..fixture };
    other.load()?;
    fs::write(other.entry_path()?, sealed)?;
    ensure!(other.load_and_count_rejected()? == 1);
    Ok(())
}

#[test]
fn pipes_and_links_in_place_of_an_entry_or_the_key_are_rejected_without_blocking() -> Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let fixture = CacheFixture::new()?;
    fixture.load()?;
    let entry = fixture.entry_path()?;
    let entry_bytes = fs::read(&entry)?;
    fs::remove_file(&entry)?;
    mknodat(CWD, &entry, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    ensure!(fixture.load_and_count_rejected()? == 1);
    fs::remove_file(&entry)?;
    let elsewhere = fixture.folder.path().join("elsewhere");
    fs::write(&elsewhere, entry_bytes)?;
    symlink(&elsewhere, &entry)?;
    ensure!(fixture.load_and_count_rejected()? == 1, "a link was followed");
    fs::remove_file(&fixture.cache.key_file)?;
    mknodat(CWD, &fixture.cache.key_file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let CacheStatus::Unusable { reason } = fixture.load()? else {
        anyhow::bail!("a pipe was used as the key")
    };
    ensure!(reason.contains("not a regular file"), "{reason}");
    Ok(())
}

#[test]
fn a_damaged_key_or_one_that_others_may_read_is_replaced() -> Result<()> {
    let fixture = CacheFixture::new()?;
    let key = &fixture.cache.key_file;
    fixture.load()?;
    for (content, mode) in [(Some(&b"short"[..]), 0o600), (None, 0o640), (None, 0o604)] {
        let before = fs::read(key)?;
        if let Some(content) = content {
            fs::write(key, content)?;
        }
        fs::set_permissions(key, Permissions::from_mode(mode))?;
        ensure!(fixture.load_and_count_rejected()? == 1, "{mode:o}");
        ensure!(fs::read(key)? != before && fs::read(key)?.len() == 32);
        ensure!(fs::metadata(key)?.permissions().mode() & 0o777 == 0o600);
        ensure!(fixture.load_and_count_rejected()? == 0);
    }
    Ok(())
}

#[test]
fn an_unsafe_or_unwritable_cache_is_not_used() -> Result<()> {
    let fixture = CacheFixture::new()?;
    fixture.load()?;
    let unusable = |because: &str| -> Result<()> {
        let found = fixture.load()?;
        let CacheStatus::Unusable { reason } = &found else { anyhow::bail!("{because}: {found:?}") };
        ensure!(reason.contains(because), "{because}: {reason}");
        Ok(())
    };
    let state = fixture.cache.key_file.parent().context("a folder")?;
    for folder in [fixture.cache.folder.as_path(), state] {
        fs::set_permissions(folder, Permissions::from_mode(0o770))?;
        unusable("other users may write")?;
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        if unprivileged::is_root() {
            std::os::unix::fs::chown(folder, Some(NOBODY_UID), None)?;
            unusable("belongs to another user")?;
            std::os::unix::fs::chown(folder, Some(0), None)?;
        }
    }
    fs::remove_dir_all(&fixture.cache.folder)?;
    fs::write(&fixture.cache.folder, "")?;
    unusable("it is not a folder")?;
    let nowhere = CodeCache { folder: "/proc/satchel".into(), key_file: "/proc/satchel/key".into() };
    let nowhere = CacheFixture { cache: nowhere, ..fixture };
    ensure!(matches!(nowhere.load()?, CacheStatus::Unusable { .. }));
    Ok(())
}

#[test]
fn root_writes_nothing_into_the_home_of_another_user() -> Result<()> {
    if !unprivileged::is_root() {
        eprintln!("not run: only root can write to another user's home");
        return Ok(());
    }
    let fixture = CacheFixture::new()?;
    std::os::unix::fs::chown(fixture.folder.path(), Some(NOBODY_UID), None)?;
    let found = fixture.load()?;
    ensure!(
        matches!(&found, CacheStatus::Unusable { reason } if reason.contains("another user")),
        "{found:?}"
    );
    ensure!(fs::read_dir(fixture.folder.path())?.count() == 0);
    Ok(())
}

#[test]
fn processes_that_start_at_once_agree_on_one_key() -> Result<()> {
    let fixture = CacheFixture::new()?;
    thread::scope(|scope| {
        let loads: Vec<_> = (0..6).map(|_| scope.spawn(|| fixture.load_and_count_rejected())).collect();
        loads.into_iter().try_for_each(|load| {
            let load = load.join().map_err(|_| anyhow::anyhow!("a loading thread panicked"))?;
            ensure!(load? == 0, "an entry of another key");
            Ok(())
        })
    })?;
    ensure!(fixture.load_and_count_rejected()? == 0);
    // The next start removes the residue of a killed process; no running process has the highest process id.
    fs::create_dir_all(fixture.cache.folder.join(".process-4194303-x/modules"))?;
    fixture.load()?;
    ensure!(!fixture.cache.folder.join(".process-4194303-x").exists());
    Ok(())
}
