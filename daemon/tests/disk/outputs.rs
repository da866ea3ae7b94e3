//! Only the store writes into the data directory.

use std::{fs, os::unix::fs::symlink};

use super::{data, files, imported, ok};
use crate::home::{code, stderr};

#[test]
fn no_output_is_written_into_the_data_directory_by_any_path() {
    let home = imported();
    ok(&home.run(&["export", "--output", home.path().join("out").to_str().unwrap()]));
    let data = data(&home);
    symlink(&data, home.path().join("link")).unwrap();
    symlink(data.join("blobs/x.zip"), home.path().join("dangling.zip")).unwrap();
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let inside = [
        data.join("x.zip").to_str().unwrap().to_owned(),
        data.join("new/folder/x.zip").to_str().unwrap().to_owned(),
        data.join("../satchel/x.zip").to_str().unwrap().to_owned(),
        at("link/x.zip"),
        at("link/new/x.zip"),
        at("dangling.zip"),
        at("out/../link/keys/x.zip"),
    ];
    // The database gives its own files new names.
    let database = [data.join("db"), data.join("store.lock")];
    let names = || {
        let others = files(&data)
            .into_iter()
            .filter(|path| !database.iter().any(|database| path.starts_with(database)));
        others.collect::<Vec<_>>()
    };
    let before = names();
    for output in &inside {
        for words in [
            &["export", "--output", output] as &[&str],
            &["export", "--format", "markdown", "--output", output],
            &["export", "--format", "memu", "--output", output],
            &["backup", output],
            &["man", "--output", output],
            &["keys", "encrypt", "--key-file", output],
            &["serve", "--log-file", output],
        ] {
            let refused = home.run(words);
            let printed = stderr(&refused);
            assert!(code(&refused).is_some_and(|code| code != 0), "{words:?}: {printed}");
            let explained = printed.contains("in the data directory") || printed.contains("exists");
            assert!(explained, "{words:?}: {printed}");
        }
    }
    assert_eq!(names(), before);
    for key in ["[log]\nfile", "[export]\nschedule = \"daily 03:00\"\nfolder"] {
        let text = format!("{key} = {:?}\n", data.join("x"));
        let config = home.file("satchel.toml", text);
        let refused = home.run(&["status", "--config", &config]);
        assert!(stderr(&refused).contains("lies in the data directory"), "{key}: {}", stderr(&refused));
    }
    // The same names are accepted elsewhere.
    ok(&home.run(&["backup", &at("x.zip")]));
    ok(&home.run(&["export", "--output", &at("out/../link/../y.zip")]));
    assert!(fs::metadata(at(".local/share/y.zip")).is_ok() || fs::metadata(at("y.zip")).is_ok());
}
