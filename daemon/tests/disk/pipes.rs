//! Pipes in place of keys: an error at once, even if somebody might write into them later.

use std::{path::Path, process::Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{assert_clean_exit, data, imported, ok};
use crate::home::{code, ended, stderr};

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_pipe_in_place_of_a_key_does_not_block() {
    let home = imported();
    let at = |name: &str| home.path().join(name);
    let named = at("pipe");
    pipe(&named);
    let named = named.to_str().unwrap();
    ok(&home.run(&["export", "--output", at("bundle").to_str().unwrap()]));
    let bundle = at("bundle").to_str().unwrap().to_owned();
    std::fs::remove_file(data(&home).join("keys/signing.json")).unwrap();
    pipe(&data(&home).join("keys/signing.json"));
    let out = at("out").to_str().unwrap().to_owned();
    for words in [
        &["export", "--output", &out] as &[&str],
        &["keys", "list"],
        &["keys", "encrypt", "--key-file", named],
        &["verify", "--identity", named, &bundle],
        &["import", "--identity", named, &bundle],
        &["import", "--passphrase-file", named, &bundle],
        &["status", "--config", named],
    ] {
        let mut child = home.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        ended(&mut child);
        let output = child.wait_with_output().unwrap();
        assert_clean_exit(&output, &format!("{words:?}"));
        assert_ne!(code(&output), Some(0), "{words:?}");
        assert!(stderr(&output).contains("not a plain file"), "{words:?}: {}", stderr(&output));
    }
}
