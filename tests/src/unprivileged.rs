//! Reruns tests about unreadable files as an unprivileged user: under the superuser, who may read everything, they
//! prove nothing.

use std::{
    fs::Permissions,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

/// The id of the user `nobody` on every Linux.
const NOBODY_UID: u32 = 65_534;

/// Returns whether this process runs as the superuser.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs one test of the calling program as an unprivileged user in a separate process, and fails if the test fails. The
/// test must not read files of this repository, because it may be in a folder that this user cannot access.
///
/// # Errors
/// If the test fails, or the user may not run a program from the temporary folder.
pub fn run_test_as_nobody(test: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    let program = folder.path().join("test");
    std::fs::copy(std::env::current_exe()?, &program)?;
    std::fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let mut command = Command::new(&program);
    command.args(["--exact", test, "--test-threads", "1"]).uid(NOBODY_UID).gid(NOBODY_UID).current_dir("/");
    let output = command.env("HOME", "/").stdin(Stdio::null()).output().with_context(|| {
        format!("user {NOBODY_UID} cannot run {program:?}; name another folder by TMPDIR, or test as another user than root")
    })?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && stdout.contains("1 passed"), "as user {NOBODY_UID}: {stdout}{stderr}");
    Ok(())
}
