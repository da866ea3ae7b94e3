//! Walks a folder without ever leaving it: symbolic links, devices and sockets are listed, but not followed.

use std::{ffi::OsString, path::Path};

use rustix::fs::FileType;

use super::{
    Limits, SourceError, beneath,
    builder::BundleBuilder,
    downloads,
    names::{DATABASE_INDEX, system_file},
};

/// Adds every file below `root` to `builder`, with `prefix` before their names.
pub(super) fn walk(
    (root, prefix): (&Path, &str),
    limits: &Limits,
    builder: &mut BundleBuilder,
) -> Result<(), SourceError> {
    let mut folders = vec![(root.to_owned(), prefix.to_owned(), 0_usize)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        let children = match beneath::list(&builder.base, &folder) {
            Ok(children) => children,
            Err(error) if depth > 0 => {
                builder.add_unread(prefix, format!("it cannot be read: {error}"));
                continue;
            }
            Err(error) => return Err(SourceError::read(&folder)(error)),
        };
        let base = builder.base.clone();
        let here =
            downloads::WalkedFolder::new(&base, &folder, children.iter().map(|(name, _)| name.as_os_str()));
        for (name, kind) in &children {
            let (path, kind) = (folder.join(name), *kind);
            builder.check_cancelled(&path)?;
            let waits = if builder.skip_downloads { here.skip_reason(name, kind) } else { None };
            let Some(name) = name.to_str().map(str::to_owned) else {
                builder.add_unread(format!("{prefix}{}", name.to_string_lossy()), "its name is not UTF-8");
                continue;
            };
            if system_file(&name) || is_log_index(&name, &children) {
                continue;
            }
            let key = format!("{prefix}{name}");
            if let Some(reason) = waits {
                builder.add_downloading(key, reason);
            } else if kind == FileType::Symlink {
                builder.add_unread(key, "symbolic links are not followed");
            } else if kind == FileType::Directory && depth >= limits.depth {
                builder.add_unread(key, "it lies too many folders deep");
            } else if kind == FileType::Directory {
                folders.push((path, format!("{key}/"), depth + 1));
            } else if kind == FileType::RegularFile {
                builder.add_file(key, path, limits)?;
            } else {
                builder.add_unread(key, "it is neither a file nor a folder");
            }
        }
    }
    Ok(())
}

/// Returns whether a file is the index that SQLite keeps beside a database for its log: it has nothing of its own, and changes even when
/// the database is only read.
fn is_log_index(name: &str, siblings: &[(OsString, FileType)]) -> bool {
    name.strip_suffix(DATABASE_INDEX).is_some_and(|database| {
        siblings.binary_search_by(|(other, _)| other.as_os_str().cmp(database.as_ref())).is_ok()
    })
}
