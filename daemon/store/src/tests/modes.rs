//! Only the owner can read the store's files.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use super::fixture::{Model, TestRng, open_real};

/// Collects every path below `folder` that others may access, with its mode.
fn open_to_others(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
        let right = if path.is_dir() { 0o700 } else { 0o600 };
        if mode != right {
            found.push(format!("{} {mode:o}", path.display()));
        }
        if path.is_dir() {
            open_to_others(&path, found);
        }
    }
}

#[test]
fn folders_are_0700_and_files_0600() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("store");
    let (mut model, mut rng) = (Model::default(), TestRng(13));
    let check_modes = |when: &str| {
        let mut found = Vec::new();
        open_to_others(above.path(), &mut found);
        assert_eq!(found, Vec::<String>::new(), "{when}");
    };
    for round in 0..3 {
        let (store, _) = open_real(&dir, "boot").unwrap();
        store.blob_put(&mut b"a picture of tea".as_slice()).unwrap();
        store.commit(model.batch(&mut rng)).unwrap();
        check_modes(&format!("after a commit of round {round}"));
        drop(store);
        check_modes(&format!("after round {round}"));
        // As in a store of an older version, or one that was copied.
        for name in ["db", "db/db", "db/conf", "store.lock"] {
            let path = dir.join(name);
            fs::set_permissions(&path, fs::Permissions::from_mode(if path.is_dir() { 0o755 } else { 0o644 }))
                .unwrap();
        }
    }
}
