//! Owners and access lists that change while a daemon runs: a file without access is reported by name and imported once
//! it is readable again.

#![expect(clippy::print_stderr, reason = "a skipped test prints the reason")]

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
use satchel_tests::unprivileged::is_root;

use crate::watch::fixture::{POLL_INTERVAL, WAIT_TIMEOUT, WatchFixture, chatgpt_file};

/// Set in the child: the folder in which it leaves its requests to root.
const REQUEST_FOLDER: &str = "SATCHEL_TEST_OWNERS_ASKS";
/// The id of the user `nobody` on every Linux.
const NOBODY_UID: u32 = 65_534;

/// The requests of an unprivileged user to root.
struct RootRequests {
    folder: PathBuf,
    number: u32,
}

impl RootRequests {
    /// Requests that a path gets an owner and a mode, or a reader in its access list, and waits until that is done.
    async fn change_access(&mut self, to: &str, mode: u32, path: &Path) -> Result<()> {
        self.number += 1;
        let request = self.folder.join(format!("{:04}", self.number));
        let text = format!("{to} {mode} {}", path.to_str().context("a path of text")?);
        fs::write(self.folder.join("new"), text)?;
        fs::rename(self.folder.join("new"), &request)?;
        let end = Instant::now() + WAIT_TIMEOUT;
        while request.exists() {
            ensure!(Instant::now() < end, "root did not carry out the request");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Carries out the request in the file `ask` and removes the file.
fn carry_out(request: &Path) -> Result<()> {
    let text = fs::read_to_string(request)?;
    let [to, mode, path] = text.splitn(3, ' ').collect::<Vec<_>>()[..] else { anyhow::bail!("{text:?}") };
    if to == "readers" {
        let (name, flags) = ("system.posix_acl_access", rustix::fs::XattrFlags::empty());
        if let Err(error) = rustix::fs::setxattr(path, name, &posix_acl(NOBODY_UID), flags) {
            eprintln!("access lists are not tested: this file system has none ({error})");
            chown(path, Some(NOBODY_UID), None)?;
        }
    } else {
        let user = if to == "root" { 0 } else { NOBODY_UID };
        chown(path, Some(user), Some(user))?;
        fs::set_permissions(path, Permissions::from_mode(mode.parse()?))?;
    }
    Ok(fs::remove_file(request)?)
}

/// Returns a POSIX access list in the kernel's form: the owner reads and writes, user `reader` reads, all others have
/// no access.
fn posix_acl(reader: u32) -> Vec<u8> {
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
async fn wait_for_problem(fixture: &WatchFixture, wanted: Option<&str>) -> Result<()> {
    let end = Instant::now() + WAIT_TIMEOUT;
    loop {
        let problems = fixture.problems().await?;
        let fits = match wanted {
            None => problems.is_empty(),
            Some(name) => problems.iter().any(|one| one.message.contains(name) && !one.fix.is_empty()),
        };
        if fits {
            return Ok(());
        }
        ensure!(Instant::now() < end, "timed out: {wanted:?}: {problems:?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Not a separate test: an unprivileged user runs it.
#[tokio::test(flavor = "multi_thread")]
async fn child_whose_files_change_owner() -> Result<()> {
    let Some(folder) = std::env::var_os(REQUEST_FOLDER) else { return Ok(()) };
    let mut requests = RootRequests { folder: folder.into(), number: 0 };
    let fixture = WatchFixture::start().await?;
    let paths = |name: &str| (fixture.path(&format!(".{name}")), fixture.path(name));
    // A file of another owner, and one whose access depends on an access list alone; other files are imported
    // meanwhile.
    for (number, name) in ["others.json", "listed.json"].into_iter().enumerate() {
        let (hidden, path) = paths(name);
        fs::write(&hidden, chatgpt_file(number))?;
        requests.change_access("root", 0o600, &hidden).await?;
        fs::rename(hidden, path)?;
    }
    fs::write(fixture.path("mine.json"), chatgpt_file(2))?;
    fixture.wait_until(|source| source.imported == 1).await?;
    wait_for_problem(&fixture, Some("others.json")).await?;
    wait_for_problem(&fixture, Some("listed.json")).await?;
    requests.change_access("nobody", 0o600, &fixture.path("others.json")).await?;
    fixture.wait_until(|source| source.imported == 2).await?;
    wait_for_problem(&fixture, Some("listed.json")).await?;
    requests.change_access("readers", 0, &fixture.path("listed.json")).await?;
    fixture.wait_for_imported(3).await?;
    wait_for_problem(&fixture, None).await?;
    // The watched folder itself.
    requests.change_access("root", 0o700, &fixture.downloads).await?;
    wait_for_problem(&fixture, Some("you may not read")).await?;
    requests.change_access("nobody", 0o700, &fixture.downloads).await?;
    wait_for_problem(&fixture, None).await?;
    fs::write(fixture.path("later.json"), chatgpt_file(3))?;
    fixture.wait_for_imported(4).await?;
    // The data directory: the daemon keeps answering, reports the problem, and imports once it may write again.
    let data = fixture.daemon.data_dir();
    requests.change_access("root", 0o700, &data).await?;
    wait_for_problem(&fixture, Some("the data directory")).await?;
    fs::write(fixture.path("last.json"), chatgpt_file(4))?;
    fixture.wait_for_rescans().await;
    ensure!(fixture.imports().await?.len() >= 4, "reads are blocked");
    requests.change_access("nobody", 0o700, &data).await?;
    // Failed writes in between may have stopped the daemon; everything confirmed is there.
    let fixture = fixture.restart().await?;
    fixture.wait_for_imported(5).await?;
    wait_for_problem(&fixture, None).await?;
    ensure!(fixture.conversation_count().await? == 5);
    fixture.daemon.stop().await?;
    Ok(())
}

#[test]
fn files_without_access_are_reported_by_name_until_access_returns() -> Result<()> {
    if !is_root() {
        eprintln!("not run: only root can change owners; `problems` tests the same with modes");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (program, requests) = (folder.path().join("test"), folder.path().join("requests"));
    fs::copy(std::env::current_exe()?, &program)?;
    fs::create_dir(&requests)?;
    chown(&requests, Some(NOBODY_UID), Some(NOBODY_UID))?;
    for path in [folder.path(), &program, &requests] {
        fs::set_permissions(path, Permissions::from_mode(0o755))?;
    }
    let mut command = Command::new(&program);
    command.args(["--exact", "watch::owners::child_whose_files_change_owner", "--test-threads", "1"]);
    command.env(REQUEST_FOLDER, &requests).env("HOME", "/").uid(NOBODY_UID).gid(NOBODY_UID).current_dir("/");
    let output = fs::File::create(folder.path().join("output"))?;
    let mut child = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn()?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        for entry in fs::read_dir(&requests)? {
            let request = entry?.path();
            if request.file_name().is_some_and(|name| name != "new") {
                carry_out(&request)?;
            }
        }
        std::thread::park_timeout(POLL_INTERVAL);
    };
    let output = fs::read_to_string(folder.path().join("output"))?;
    ensure!(status.success() && output.contains("1 passed"), "{output}");
    Ok(())
}
