//! The database of older versions has the same sessions as their files, so both become the same records.

use std::path::Path;

use satchel_importer::{
    Bundle, Line,
    testkit::{conversations, produce, skips},
};
use satchel_plugin_vscode_copilot::VsCodeCopilot;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
/// The folder of the workspace in a fixture.
const WORKSPACE: &str = "User/workspaceStorage/1f3a";

fn bundle(fixture: &str) -> Bundle {
    Bundle::from_folder(&Path::new(FIXTURES).join(fixture).join("input")).expect("the fixture is there")
}

fn read(bundle: &Bundle) -> Vec<Line> {
    let exports = produce::<VsCodeCopilot>(bundle).expect("detection answers").exports;
    exports.into_iter().flat_map(|export| export.lines).collect()
}

/// The conversations with this id, without what says where they are.
fn sessions(lines: &[Line], id: &str) -> Vec<Value> {
    let of_session = conversations(lines).into_iter().filter(|chat| chat.id.ends_with(id));
    let values = of_session.map(|chat| {
        let mut value = serde_json::to_value(chat).expect("it is JSON");
        let object = value.as_object_mut().expect("it is an object");
        assert!(object.remove("locator").is_some() && object.remove("export_format_version").is_some());
        value
    });
    values.collect()
}

#[test]
fn the_database_and_a_file_give_the_same_records() {
    let in_database = sessions(&read(&bundle("sessions-in-a-database")), "09");
    let mut in_file = sessions(&read(&bundle("sessions-of-2023")), "09");
    // The file of that fixture stands in no workspace.
    for (file, database) in in_file.iter_mut().zip(&in_database) {
        for field in ["workspace", "cwd"] {
            file["raw_metadata"][field] = database["raw_metadata"][field].clone();
        }
    }
    assert_eq!((in_database.len(), in_database), (1, in_file));
}

#[test]
fn a_session_that_went_on_in_a_file_keeps_its_ids() {
    let both = sessions(&read(&bundle("sessions-in-a-database")), "01");
    let [earlier, later] = both.as_slice() else { unreachable!("it is there {} times", both.len()) };
    assert_eq!(earlier["id"], later["id"]);
    let (earlier, later) = (earlier["messages"].as_array(), later["messages"].as_array());
    let (earlier, later) = (earlier.expect("it is a list"), later.expect("it is a list"));
    assert!(!earlier.is_empty() && earlier.len() < later.len());
    assert_eq!(earlier, &later[..earlier.len()]);
}

#[test]
fn a_copy_of_the_database_is_read_if_there_is_nothing_else() {
    let whole = bundle("sessions-in-a-database");
    let copy = format!("{WORKSPACE}/state.vscdb.backup");
    let claimed = produce::<VsCodeCopilot>(&whole).expect("detection answers").exports;
    assert!(claimed.iter().all(|export| !export.detection.files.contains(&copy)));
    assert_eq!(conversations(&read(&whole.only(&[copy]))).len(), 2);
}

#[test]
fn no_other_key_is_read() {
    let emitted = format!("{:?}", read(&bundle("sessions-in-a-database")));
    for private in ["SECRETKEY", "These are the last inputs", "A title of the index"] {
        assert!(!emitted.contains(private), "{private}");
    }
}

#[test]
fn damaged_databases_are_reported_or_left_alone() {
    let whole = bundle("sessions-in-a-database");
    let path = format!("{WORKSPACE}/state.vscdb");
    let bytes = whole.read(&path, 1024 * 1024).expect("it is there");
    let read = |bytes: Vec<u8>| read(&Bundle::from_files([("state.vscdb", bytes)]));
    let all = conversations(&read(bytes.clone())).len();
    let (mut reported, pages) = (0, bytes.len() / 4096);
    for page in 0..pages {
        let mut damaged = bytes.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0x5a);
        let lines = read(damaged);
        assert!(conversations(&lines).len() <= all, "page {page}");
        reported += usize::from(!skips(&lines).is_empty());
    }
    for length in (0..bytes.len()).step_by(501) {
        assert!(conversations(&read(bytes[..length].to_vec())).len() <= all, "{length} bytes");
    }
    assert!(reported > 0, "{reported} of {pages}");
}
