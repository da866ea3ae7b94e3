//! Compiled importers cached between starts: whatever is in the cache, only entries sealed with this user's key are
//! run.

#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    thread,
};

use anyhow::{Context as _, Result, ensure};
use satchel_host::{CacheUse, CodeCache, Host, HostOptions};
use satchel_tests::{guests, nobody};
use tempfile::TempDir;

/// The id of the user `nobody` on every Linux.
const NOBODY: u32 = 65_534;
/// A component that reads nothing.
const PLAIN: &str = "(func $run (result i32) (global.get $ok))";
/// The name of this component.
const NAME: &str = "hostile";
/// Number of positions at which entries are damaged, spread over all their bytes.
const FLIPS: usize = 24;

struct Play {
    folder: TempDir,
    cache: CodeCache,
    wasm: Vec<u8>,
}

impl Play {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        let cache = CodeCache { folder: at("cache/importers"), key_file: at("state/code-cache.key") };
        Ok(Self { cache, folder, wasm: guests::from_text(PLAIN, 1)? })
    }

    /// Loads the component as a newly started process would; returns how the cache was used.
    fn load(&self) -> Result<CacheUse> {
        let host = Host::new(HostOptions { cache: Some(self.cache.clone()), ..HostOptions::default() })?;
        let plugin = host.load(&self.wasm)?;
        ensure!(plugin.info().name == NAME, "another component: {}", plugin.info().name);
        Ok(host.cache())
    }

    fn rejected(&self) -> Result<usize> {
        match self.load()? {
            CacheUse::On { rejected, .. } => Ok(rejected),
            other => anyhow::bail!("the cache is not used: {other:?}"),
        }
    }

    fn entry(&self) -> Result<PathBuf> {
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
fn a_damaged_or_forged_entry_is_compiled_anew() -> Result<()> {
    let play = Play::new()?;
    ensure!(play.rejected()? == 0);
    let entry = play.entry()?;
    let whole = fs::read(&entry)?;
    let step = (whole.len() * 8 / FLIPS).max(1);
    for bit in (0..whole.len() * 8).step_by(step) {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&entry, &flipped)?;
        ensure!(play.rejected()? == 1, "bit {bit} is not seen");
        ensure!(play.rejected()? == 0, "bit {bit}: the entry was not written anew");
    }
    for length in [0, 7, 40, 41, whole.len() - 1] {
        fs::write(&entry, &whole[..length])?;
        ensure!(play.rejected()? == 1, "{length} bytes are taken");
    }
    // An intact entry that was sealed with another user's key.
    let other = Play { cache: play.cache.clone(), ..Play::new()? };
    fs::write(&play.cache.key_file, [7; 32])?;
    ensure!(other.rejected()? == 1);
    fs::write(&entry, &whole)?;
    ensure!(other.rejected()? == 1, "what another key sealed is taken");
    Ok(())
}

#[test]
fn an_entry_of_another_component_is_not_taken_for_this_one() -> Result<()> {
    let play = Play::new()?;
    play.load()?;
    let entry = play.entry()?;
    let sealed = fs::read(&entry)?;
    fs::remove_file(&entry)?;
    let other = Play { wasm: guests::from_text(PLAIN, 2)?, ..play };
    other.load()?;
    fs::write(other.entry()?, sealed)?;
    ensure!(other.rejected()? == 1);
    Ok(())
}

#[test]
fn what_is_no_file_in_the_place_of_an_entry_or_of_the_key_is_not_waited_for() -> Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let play = Play::new()?;
    play.load()?;
    let entry = play.entry()?;
    let kept = fs::read(&entry)?;
    fs::remove_file(&entry)?;
    mknodat(CWD, &entry, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    ensure!(play.rejected()? == 1);
    fs::remove_file(&entry)?;
    let elsewhere = play.folder.path().join("elsewhere");
    fs::write(&elsewhere, kept)?;
    symlink(&elsewhere, &entry)?;
    ensure!(play.rejected()? == 1, "a link is followed");
    fs::remove_file(&play.cache.key_file)?;
    mknodat(CWD, &play.cache.key_file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let CacheUse::Unusable { reason } = play.load()? else { anyhow::bail!("a pipe is a key") };
    ensure!(reason.contains("no plain file"), "{reason}");
    Ok(())
}

#[test]
fn a_key_that_others_may_know_or_that_is_damaged_is_replaced() -> Result<()> {
    let play = Play::new()?;
    let key = &play.cache.key_file;
    play.load()?;
    for (content, mode) in [(Some(&b"short"[..]), 0o600), (None, 0o640), (None, 0o604)] {
        let before = fs::read(key)?;
        if let Some(content) = content {
            fs::write(key, content)?;
        }
        fs::set_permissions(key, Permissions::from_mode(mode))?;
        ensure!(play.rejected()? == 1, "{mode:o}");
        ensure!(fs::read(key)? != before && fs::read(key)?.len() == 32);
        ensure!(fs::metadata(key)?.permissions().mode() & 0o777 == 0o600);
        ensure!(play.rejected()? == 0);
    }
    Ok(())
}

#[test]
fn where_others_may_write_or_nothing_can_be_written_importers_are_compiled_in_memory() -> Result<()> {
    let play = Play::new()?;
    play.load()?;
    let unusable = |because: &str| -> Result<()> {
        let found = play.load()?;
        let CacheUse::Unusable { reason } = &found else { anyhow::bail!("{because}: {found:?}") };
        ensure!(reason.contains(because), "{because}: {reason}");
        Ok(())
    };
    let state = play.cache.key_file.parent().context("a folder")?;
    for folder in [play.cache.folder.as_path(), state] {
        fs::set_permissions(folder, Permissions::from_mode(0o770))?;
        unusable("others may write")?;
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        if nobody::superuser() {
            std::os::unix::fs::chown(folder, Some(NOBODY), None)?;
            unusable("belongs to another user")?;
            std::os::unix::fs::chown(folder, Some(0), None)?;
        }
    }
    fs::remove_dir_all(&play.cache.folder)?;
    fs::write(&play.cache.folder, "")?;
    unusable("no folder")?;
    let nowhere = CodeCache { folder: "/proc/satchel".into(), key_file: "/proc/satchel/key".into() };
    let nowhere = Play { cache: nowhere, ..play };
    ensure!(matches!(nowhere.load()?, CacheUse::Unusable { .. }));
    Ok(())
}

#[test]
fn root_leaves_nothing_in_the_home_of_another_user() -> Result<()> {
    if !nobody::superuser() {
        eprintln!("not run: only root can be in the home of somebody else");
        return Ok(());
    }
    let play = Play::new()?;
    std::os::unix::fs::chown(play.folder.path(), Some(NOBODY), None)?;
    let found = play.load()?;
    ensure!(matches!(&found, CacheUse::Unusable { reason } if reason.contains("another user")), "{found:?}");
    ensure!(fs::read_dir(play.folder.path())?.count() == 0);
    Ok(())
}

#[test]
fn processes_that_begin_at_once_agree_on_one_key() -> Result<()> {
    let play = Play::new()?;
    thread::scope(|scope| {
        let loads: Vec<_> = (0..6).map(|_| scope.spawn(|| play.rejected())).collect();
        loads.into_iter().try_for_each(|load| {
            let load = load.join().map_err(|_| anyhow::anyhow!("a load broke off"))?;
            ensure!(load? == 0, "an entry of another key");
            Ok(())
        })
    })?;
    ensure!(play.rejected()? == 0);
    // The next start removes leftovers of a killed process; no running process has the highest process id.
    fs::create_dir_all(play.cache.folder.join(".process-4194303-x/modules"))?;
    play.load()?;
    ensure!(!play.cache.folder.join(".process-4194303-x").exists());
    Ok(())
}
