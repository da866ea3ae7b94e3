//! Owners and access lists that change while a daemon runs: a file without access is reported by name and imported once
//! it is readable again.

#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use satchel_tests::nobody::superuser;

use crate::play::{LOOK, PATIENCE, Play, export};

/// Set in the child: the folder in which it leaves its requests to root.
const ASKS: &str = "SATCHEL_TEST_OWNERS_ASKS";
/// The id of the user `nobody` on every Linux.
const NOBODY: u32 = 65_534;

/// The requests of an unprivileged user to root.
struct Asks {
    folder: PathBuf,
    number: u32,
}

impl Asks {
    /// Requests that a path gets an owner and a mode, or a reader in its access list, and waits until that is done.
    async fn give(&mut self, to: &str, mode: u32, path: &Path) -> Result<()> {
        self.number += 1;
        let ask = self.folder.join(format!("{:04}", self.number));
        let text = format!("{to} {mode} {}", path.to_str().context("a path of text")?);
        fs::write(self.folder.join("new"), text)?;
        fs::rename(self.folder.join("new"), &ask)?;
        let end = Instant::now() + PATIENCE;
        while ask.exists() {
            ensure!(Instant::now() < end, "root does not answer");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}

/// Carries out the request in the file `ask` and removes the file.
fn answer(ask: &Path) -> Result<()> {
    let text = fs::read_to_string(ask)?;
    let [to, mode, path] = text.splitn(3, ' ').collect::<Vec<_>>()[..] else { anyhow::bail!("{text:?}") };
    if to == "readers" {
        let (name, flags) = ("system.posix_acl_access", rustix::fs::XattrFlags::empty());
        if let Err(error) = rustix::fs::setxattr(path, name, &access_list(NOBODY), flags) {
            eprintln!("access lists are not tried: this file system has none ({error})");
            chown(path, Some(NOBODY), None)?;
        }
    } else {
        let user = if to == "root" { 0 } else { NOBODY };
        chown(path, Some(user), Some(user))?;
        fs::set_permissions(path, Permissions::from_mode(mode.parse()?))?;
    }
    Ok(fs::remove_file(ask)?)
}

/// Returns a POSIX access list in the kernel's form: the owner reads and writes, user `reader` reads, all others have
/// no access.
fn access_list(reader: u32) -> Vec<u8> {
    const ANY: u32 = u32::MAX;
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in
        [(1_u16, 6_u16, ANY), (2, 4, reader), (4, 0, ANY), (0x10, 4, ANY), (0x20, 0, ANY)]
    {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// Waits until the problem named `wanted` is reported; with none, until there are no problems.
async fn problem(play: &Play, wanted: Option<&str>) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let problems = play.problems().await?;
        let fits = match wanted {
            None => problems.is_empty(),
            Some(name) => problems.iter().any(|one| one.message.contains(name) && !one.fix.is_empty()),
        };
        if fits {
            return Ok(());
        }
        ensure!(Instant::now() < end, "it never came: {wanted:?}: {problems:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Not a separate test: an unprivileged user runs it.
#[tokio::test(flavor = "multi_thread")]
async fn child_whose_files_change_owner() -> Result<()> {
    let Some(folder) = std::env::var_os(ASKS) else { return Ok(()) };
    let mut asks = Asks { folder: folder.into(), number: 0 };
    let play = Play::start().await?;
    let place = |name: &str| (play.at(&format!(".{name}")), play.at(name));
    // A file of another owner, and one whose access depends on an access list alone; other files are imported
    // meanwhile.
    for (number, name) in ["others.json", "listed.json"].into_iter().enumerate() {
        let (hidden, path) = place(name);
        fs::write(&hidden, export(number))?;
        asks.give("root", 0o600, &hidden).await?;
        fs::rename(hidden, path)?;
    }
    fs::write(play.at("mine.json"), export(2))?;
    play.until(|source| source.imported == 1).await?;
    problem(&play, Some("others.json")).await?;
    problem(&play, Some("listed.json")).await?;
    asks.give("nobody", 0o600, &play.at("others.json")).await?;
    play.until(|source| source.imported == 2).await?;
    problem(&play, Some("listed.json")).await?;
    asks.give("readers", 0, &play.at("listed.json")).await?;
    play.imported(3).await?;
    problem(&play, None).await?;
    // The watched folder itself.
    asks.give("root", 0o700, &play.downloads).await?;
    problem(&play, Some("may not be read")).await?;
    asks.give("nobody", 0o700, &play.downloads).await?;
    problem(&play, None).await?;
    fs::write(play.at("later.json"), export(3))?;
    play.imported(4).await?;
    // The data directory: the daemon keeps answering, reports the problem, and imports once it may write again.
    let data = play.daemon.data_dir();
    asks.give("root", 0o700, &data).await?;
    problem(&play, Some("the data directory")).await?;
    fs::write(play.at("last.json"), export(4))?;
    play.looks_again().await;
    ensure!(play.imports().await?.len() >= 4, "reads do not go on");
    asks.give("nobody", 0o700, &data).await?;
    // Failed writes in between may have stopped the daemon; everything confirmed is there.
    let play = play.restart().await?;
    play.imported(5).await?;
    problem(&play, None).await?;
    ensure!(play.conversations().await? == 5);
    play.daemon.stop().await?;
    Ok(())
}

#[test]
fn owners_and_access_lists_that_change_are_problems_by_name_until_they_change_back() -> Result<()> {
    if !superuser() {
        eprintln!("not run: only root gives files to others; `troubles` has it with modes");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (program, asks) = (folder.path().join("test"), folder.path().join("asks"));
    fs::copy(std::env::current_exe()?, &program)?;
    fs::create_dir(&asks)?;
    chown(&asks, Some(NOBODY), Some(NOBODY))?;
    for path in [folder.path(), &program, &asks] {
        fs::set_permissions(path, Permissions::from_mode(0o755))?;
    }
    let mut command = Command::new(&program);
    command.args(["--exact", "owners::child_whose_files_change_owner", "--test-threads", "1"]);
    command.env(ASKS, &asks).env("HOME", "/").uid(NOBODY).gid(NOBODY).current_dir("/");
    let told = fs::File::create(folder.path().join("told"))?;
    let mut child = command.stdin(Stdio::null()).stdout(told.try_clone()?).stderr(told).spawn()?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        for entry in fs::read_dir(&asks)? {
            let ask = entry?.path();
            if ask.file_name().is_some_and(|name| name != "new") {
                answer(&ask)?;
            }
        }
        std::thread::park_timeout(LOOK);
    };
    let told = fs::read_to_string(folder.path().join("told"))?;
    ensure!(status.success() && told.contains("1 passed"), "{told}");
    Ok(())
}
