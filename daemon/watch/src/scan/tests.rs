//! Tests with folders that contain everything that must not be read.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    fs,
    os::unix::{ffi::OsStringExt, fs::symlink, net::UnixListener},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use glob::Pattern;
use tempfile::TempDir;

use super::*;

fn os_folder(root: &Path) -> OsFolder {
    OsFolder::new(root, true, &[], Path::new("/nonexistent"))
}

fn observation(folder: &OsFolder, name: impl AsRef<OsStr>) -> Option<Observation> {
    folder.inspect(name.as_ref()).unwrap().observation
}

fn write_zip(path: &Path) {
    let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
    zip.start_file("a.json", zip::write::SimpleFileOptions::default()).unwrap();
    io::Write::write_all(&mut zip, b"[]").unwrap();
    zip.finish().unwrap();
}

fn temp_folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn only_exports_are_inspected() {
    let dir = temp_folder();
    for name in ["a.zip", "b.json", "photo.jpg", ".hidden.zip", "c.txt~"] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    let folder = os_folder(dir.path());
    let (names, more) = folder.list().unwrap();
    assert_eq!((names, more), (["a.zip", "b.json", "photo.jpg"].map(OsString::from).into(), false));
    assert!(observation(&folder, "a.zip").is_some() && observation(&folder, "b.json").is_some());
    for name in ["photo.jpg", ".hidden.zip", "c.txt~", "absent.zip"] {
        assert_eq!(observation(&folder, name), None, "{name}");
    }
}

#[test]
fn symbolic_links_are_not_followed() {
    let dir = temp_folder();
    let (root, out) = (dir.path().join("root"), dir.path().join("out"));
    fs::create_dir_all(root.join("export")).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("secret.json"), "[]").unwrap();
    fs::write(root.join("export/mine.json"), "[]").unwrap();
    let folder = os_folder(&root);
    let before = observation(&folder, "export").unwrap();
    symlink(out.join("secret.json"), root.join("file.json")).unwrap();
    symlink(&out, root.join("folder")).unwrap();
    symlink("loop.json", root.join("loop.json")).unwrap();
    symlink("gone", root.join("dangling.json")).unwrap();
    symlink(&root, root.join("export/self")).unwrap();
    symlink(&out, root.join("export/out")).unwrap();
    symlink("/dev/zero", root.join("zero.json")).unwrap();
    for name in ["file.json", "folder", "loop.json", "dangling.json", "zero.json"] {
        assert_eq!(observation(&folder, name), None, "{name}");
    }
    let after = observation(&folder, "export").unwrap();
    assert_eq!(after.stamp.bytes, before.stamp.bytes);
    assert!(folder.check_complete(OsStr::new("file.json")).unwrap().is_err());
}

#[test]
fn pipes_and_sockets_are_skipped_without_blocking() {
    let dir = temp_folder();
    fs::create_dir(dir.path().join("export")).unwrap();
    for place in ["pipe.json", "export/pipe.json"] {
        let path = dir.path().join(place);
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
    }
    let _socket = UnixListener::bind(dir.path().join("socket.json")).unwrap();
    let folder = os_folder(dir.path());
    for name in ["pipe.json", "socket.json", "export"] {
        assert_eq!(observation(&folder, name), None, "{name}");
    }
    assert!(folder.check_complete(OsStr::new("pipe.json")).unwrap().is_err());
}

#[test]
fn a_folder_swapped_for_a_link_is_not_followed() {
    let dir = temp_folder();
    let (root, out) = (dir.path().join("root"), dir.path().join("out"));
    fs::create_dir_all(root.join("real")).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("secret.json"), "[1, 2, 3]").unwrap();
    fs::write(root.join("real/mine.json"), "[]").unwrap();
    symlink(&out, root.join("link")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for from in ["real", "link"] {
                    fs::rename(root.join(from), root.join("swapped")).unwrap();
                    fs::rename(root.join("swapped"), root.join(from)).unwrap();
                }
            }
        });
        let folder = os_folder(&root);
        for _ in 0..1_000 {
            if let Ok(Inspection { observation: Some(observation), .. }) =
                folder.inspect(OsStr::new("swapped"))
            {
                assert_eq!(observation.stamp.bytes, 2);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn unusual_names_are_inspected() {
    let dir = temp_folder();
    let mut long = vec![b'x'; 251];
    long.extend_from_slice(b".zip");
    let names = [
        b"a\xff\xfe.json".to_vec(),
        long,
        b"new\nline.json".to_vec(),
        " trailing .json".into(),
        "😀.json".into(),
    ];
    let folder = os_folder(dir.path());
    for name in names.map(OsString::from_vec) {
        fs::write(dir.path().join(&name), "[]").unwrap();
        assert!(observation(&folder, &name).is_some(), "{name:?}");
    }
    assert_eq!(folder.list().unwrap().0.len(), 5);
}

#[test]
fn names_and_partners_of_downloads_hold_a_file() {
    let dir = temp_folder();
    let write = |name: &str, bytes: &str| fs::write(dir.path().join(name), bytes).unwrap();
    for name in ["a.zip", "a.zip.part", "b.json", "b.json.aria2", "c.zip.crdownload", "d.json"] {
        write(name, "x");
    }
    write("e.zip", "");
    fs::create_dir(dir.path().join("f.zip.download")).unwrap();
    write("f.zip.download/f.zip", "x");
    let folder = os_folder(dir.path());
    let hold = |name: &str| observation(&folder, name).unwrap().hold;
    assert!(matches!(hold("a.zip"), Some(Hold::Partner(_))));
    assert!(matches!(hold("b.json"), Some(Hold::Partner(_))));
    assert_eq!(hold("c.zip.crdownload"), Some(Hold::Name));
    assert_eq!(hold("a.zip.part"), Some(Hold::Name));
    assert_eq!(hold("f.zip.download"), Some(Hold::Name));
    assert_eq!(hold("e.zip"), Some(Hold::Empty));
    assert_eq!(hold("d.json"), None);
}

#[test]
fn a_folder_is_one_source_and_changes_with_each_file_below() {
    let dir = temp_folder();
    let inner = dir.path().join("export/a/b");
    fs::create_dir_all(&inner).unwrap();
    let folder = os_folder(dir.path());
    let empty = folder.inspect(OsStr::new("export")).unwrap();
    assert_eq!((empty.observation, empty.folders.len()), (None, 3));
    fs::write(inner.join("c.json"), "[]").unwrap();
    let first = observation(&folder, "export").unwrap();
    assert_eq!(observation(&folder, "export").unwrap().stamp, first.stamp);
    fs::write(inner.join("photo.jpg"), "x").unwrap();
    let second = observation(&folder, "export").unwrap();
    fs::rename(inner.join("photo.jpg"), inner.join("photo2.jpg")).unwrap();
    let third = observation(&folder, "export").unwrap();
    assert!(first.stamp != second.stamp && second.stamp != third.stamp);
    fs::write(inner.join("d.json.part"), "x").unwrap();
    assert_eq!(observation(&folder, "export").unwrap().hold, Some(Hold::Name));
}

#[test]
fn ignored_names_are_skipped_at_any_depth() {
    let dir = temp_folder();
    fs::create_dir(dir.path().join("export")).unwrap();
    for name in ["export/notes.txt", "notes.txt", "a.json"] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    let ignore = [Pattern::new("*.txt").unwrap()];
    let folder = OsFolder::new(dir.path(), true, &ignore, Path::new("/nonexistent"));
    assert_eq!((observation(&folder, "export"), observation(&folder, "notes.txt")), (None, None));
    assert!(observation(&folder, "a.json").is_some());
    let flat = OsFolder::new(dir.path(), false, &[], Path::new("/nonexistent"));
    assert_eq!(observation(&flat, "export"), None);
}

#[test]
fn the_data_directory_is_skipped() {
    let dir = temp_folder();
    let data = dir.path().join("satchel");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a.json"), "[]").unwrap();
    let folder = OsFolder::new(dir.path(), true, &[], &data);
    assert_eq!(observation(&folder, "satchel"), None);
}

#[test]
fn a_file_without_its_end_is_incomplete() {
    let dir = temp_folder();
    let path = |name: &str| dir.path().join(name);
    write_zip(&path("whole.zip"));
    let zip = fs::read(path("whole.zip")).unwrap();
    fs::write(path("cut.zip"), &zip[..zip.len() - 10]).unwrap();
    let mut preallocated = zip.clone();
    let half = preallocated.len() / 2;
    preallocated[half..].fill(0);
    fs::write(path("preallocated.zip"), preallocated).unwrap();
    for (name, bytes) in [
        ("whole.json", "\u{feff}[{\"a\": 1}]\n"),
        ("lines.jsonl", "{}\n{}\n"),
        ("cut.json", "[{\"a\": 1}, "),
        ("zeros.json", "[{\"a\": 1}, \0\0\0"),
        ("zeros.csv", "a,b\n1,\0"),
        ("whole.csv", "a,b\n1,2"),
    ] {
        fs::write(path(name), bytes).unwrap();
    }
    let folder = os_folder(dir.path());
    let complete = |name: &str| folder.check_complete(OsStr::new(name)).unwrap().is_ok();
    for (name, expected) in [
        ("whole.zip", true),
        ("cut.zip", false),
        ("preallocated.zip", false),
        ("whole.json", true),
        ("lines.jsonl", true),
        ("cut.json", false),
        ("zeros.json", false),
        ("zeros.csv", false),
        ("whole.csv", true),
    ] {
        assert_eq!(complete(name), expected, "{name}");
    }
    fs::create_dir(path("export")).unwrap();
    fs::copy(path("whole.json"), path("export/a.json")).unwrap();
    assert!(complete("export"));
    fs::copy(path("cut.zip"), path("export/b.zip")).unwrap();
    assert!(folder.check_complete(OsStr::new("export")).unwrap().unwrap_err().contains("b.zip"));
}

#[test]
fn a_missing_folder_is_reported_as_not_found() {
    let dir = temp_folder();
    let folder = os_folder(&dir.path().join("absent"));
    assert_eq!(folder.list().unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(folder.identity().unwrap_err().kind(), io::ErrorKind::NotFound);
}
