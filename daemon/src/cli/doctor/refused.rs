//! What to do if the store cannot be opened. Restoring a backup is the last resort, not the first.

use std::io;

use satchel_store::StoreError;

/// Returns the advice for `error`.
pub(super) fn remedy(error: &StoreError) -> String {
    match error {
        StoreError::Locked { pid, .. } => {
            format!("wait until process {pid} is done, or stop it, and run it again; the data is as it was")
        }
        StoreError::Full { .. } | StoreError::NoRoom { .. } => {
            "free some room on that disk, and run it again; the data is as it was".to_owned()
        }
        StoreError::Io { path, source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            format!("give your user the right to read and write {}, and run it again", path.display())
        }
        StoreError::Io { path, .. } => format!(
            "see that the disk with {} is there, whole and writable, and run it again; where it stays so, restore the data \
             directory from a backup",
            path.display()
        ),
        StoreError::NewerFormat { .. } | StoreError::Sealed { .. } => {
            "use the newer satchel that wrote it; the data is as it was".to_owned()
        }
        StoreError::NoKey { .. } | StoreError::WrongKey { .. } => {
            "put keys/data-key.json of this store back; a backup holds it".to_owned()
        }
        StoreError::NotEncrypted { .. } => "satchel keys encrypt".to_owned(),
        StoreError::Stopped { .. } | StoreError::Engine { .. } | StoreError::BadValue { .. } => {
            "satchel rebuild".to_owned()
        }
        _ => "restore the data directory from a backup".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_for_what_nothing_else_helps() {
        let io = |kind| StoreError::Io {
            action: "open",
            path: "/data/journal".into(),
            source: io::Error::from(kind),
        };
        let told = [
            (StoreError::Locked { dir: "/data".into(), pid: "412".to_owned() }, "process 412"),
            (StoreError::Full { path: "/data/journal".into() }, "free some room"),
            (StoreError::NoRoom { dir: "/data".into(), needed: 2, free: 1 }, "free some room"),
            (io(io::ErrorKind::PermissionDenied), "the right to read and write /data/journal"),
            (StoreError::NoKey { folder: "/data/journal".into() }, "data-key.json"),
        ];
        for (error, expected) in told {
            let said = remedy(&error);
            assert!(said.contains(expected) && !said.contains("restore"), "{error}: {said}");
        }
        assert!(remedy(&io(io::ErrorKind::NotConnected)).contains("see that the disk"));
        assert!(remedy(&StoreError::UnknownRelation("r".to_owned())).contains("restore the data directory"));
    }
}
