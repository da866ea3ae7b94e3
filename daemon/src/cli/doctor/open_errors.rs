//! What to do if the store cannot be opened. Restoring a backup is the last resort, not the first.

use std::io;

use satchel_store::StoreError;

/// Returns the advice for `error`.
pub(super) fn remedy(error: &StoreError) -> String {
    match error {
        StoreError::Locked { pid, .. } => {
            format!(
                "wait until process {pid} has ended, or stop it, and run the command again; the data is unchanged"
            )
        }
        StoreError::Full { .. } | StoreError::NoRoom { .. } => {
            "free some space on that disk, and run the command again; the data is unchanged".to_owned()
        }
        StoreError::Io { path, source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            format!("allow your user to read and write {}, and run the command again", path.display())
        }
        StoreError::Io { path, .. } => format!(
            "check that the disk with {} is connected, healthy and writable, and run the command again; if the error persists, \
             restore the data directory from a backup",
            path.display()
        ),
        StoreError::NewerFormat { .. } | StoreError::Sealed { .. } => {
            "use the newer version of satchel that wrote it; the data is unchanged".to_owned()
        }
        StoreError::NoKey { .. } | StoreError::WrongKey { .. } => {
            "put back keys/data-key.json of this store; a backup contains it".to_owned()
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
    fn restoring_a_backup_is_the_last_resort() {
        let io = |kind| StoreError::Io {
            action: "open",
            path: "/data/journal".into(),
            source: io::Error::from(kind),
        };
        let cases = [
            (StoreError::Locked { dir: "/data".into(), pid: "412".to_owned() }, "process 412"),
            (StoreError::Full { path: "/data/journal".into() }, "free some space"),
            (StoreError::NoRoom { dir: "/data".into(), needed: 2, free: 1 }, "free some space"),
            (io(io::ErrorKind::PermissionDenied), "to read and write /data/journal"),
            (StoreError::NoKey { folder: "/data/journal".into() }, "data-key.json"),
        ];
        for (error, expected) in cases {
            let advice = remedy(&error);
            assert!(advice.contains(expected) && !advice.contains("restore"), "{error}: {advice}");
        }
        assert!(remedy(&io(io::ErrorKind::NotConnected)).contains("check that the disk"));
        assert!(remedy(&StoreError::UnknownRelation("r".to_owned())).contains("restore the data directory"));
    }
}
