//! The entry for this server: the program, and the arguments that lead to the same daemon as this command.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::cli::{
    Environment,
    args::Global,
    error::CliError,
    location::{line_safe, location_words},
    mcp::config_edit::ServerEntry,
    path::absolute,
};

/// Returns the path of this program.
///
/// # Errors
/// Fails if the path is unknown, or the file was replaced since it was started.
pub(super) fn executable(environment: &Environment) -> Result<PathBuf, CliError> {
    let path = environment.executable.clone().filter(|path| path.is_file());
    path.ok_or_else(|| CliError::Usage("cannot determine the path of this program; run it again".to_owned()))
}

/// Returns the entry with which a program starts this one as `device`.
///
/// # Errors
/// Fails if the path of this program is unknown, or a path is not text.
pub(super) fn of(
    global: &Global,
    environment: &Environment,
    device: Option<&str>,
) -> Result<ServerEntry, CliError> {
    let executable = executable(environment)?;
    let command = stable_path(&executable, environment.search_path.as_deref()).unwrap_or(executable);
    let mut args = Vec::new();
    if let Some(server) = &global.server {
        let server = match server.strip_prefix("unix:") {
            Some(socket) => format!("unix:{}", line_safe(&absolute(Path::new(socket))?)?),
            None => server.clone(),
        };
        args.extend(["--server".to_owned(), server]);
    }
    args.extend(location_words(global, environment)?);
    if let Some(file) = &global.data_passphrase_file {
        args.extend(["--data-passphrase-file".to_owned(), line_safe(&absolute(file)?)?]);
    }
    args.push("mcp".to_owned());
    args.extend(device.into_iter().flat_map(|device| ["--as".to_owned(), device.to_owned()]));
    Ok(ServerEntry { command: line_safe(&command)?, args })
}

/// Returns the path under which a shell finds this program, if it is a link: package managers keep each version in a folder of
/// its own, which vanishes with the next one.
fn stable_path(executable: &Path, search_path: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    let name = executable.file_name()?;
    let mut found =
        env::split_paths(search_path?).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    found.find(|path| fs::canonicalize(path).is_ok_and(|real| real == executable))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_the_search_path_outlives_the_folder_of_a_version() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in ["bin", "versions", "other"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let executable = root.join("versions/satchel");
        fs::write(&executable, "").unwrap();
        fs::write(root.join("other/satchel"), "").unwrap();
        symlink(&executable, root.join("bin/satchel")).unwrap();
        let search = env::join_paths([root.join("other"), "relative".into(), root.join("bin")]).unwrap();
        assert_eq!(stable_path(&executable, Some(&search)), Some(root.join("bin/satchel")));
        let search = env::join_paths([root.join("other")]).unwrap();
        assert_eq!(stable_path(&executable, Some(&search)), None);
    }
}
