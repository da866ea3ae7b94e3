//! `run` streams what an importer emits, from a folder or an archive, and stores nothing.

use std::fs;

use satchel_authoring::run::{LoadError, RunError, RunEvent, RunOptions, RunReport, run};
use satchel_host::{PluginError, SinkVerdict};
use satchel_pam::record::{Line, RecordKind};

use crate::{
    guests::{self, EXPORT},
    project::Project,
};

/// Runs a guest on the input of a project's fixture; returns the report and what was streamed.
fn run_guest(importer: &[u8], project: &Project) -> (RunReport, Vec<String>) {
    let mut events = Vec::new();
    let input = project.fixtures().join("one/input");
    let report = run(importer, &input, &RunOptions::default(), &mut |event| {
        events.push(match event {
            RunEvent::Detected(detection) => format!("detected {}", detection.format),
            RunEvent::Line(Line::Conversation(record)) => format!("conversation {}", record.id),
            RunEvent::Line(line) => serde_json::to_string(line).unwrap(),
            RunEvent::Progress { .. } => "progress".to_owned(),
        });
        SinkVerdict::Proceed
    });
    (report.unwrap(), events)
}

#[test]
fn every_line_is_streamed_and_counted() {
    let project = Project::new();
    fs::write(project.fixtures().join("one/input/b.txt"), "not an export").unwrap();
    let good = guests::shared(include_str!("../../../../tests/guests/good.wat"));
    let (report, events) = run_guest(&good, &project);
    assert_eq!(events.len(), 4, "{events:?}");
    assert_eq!(events[0], "detected hostile");
    assert!(events.contains(&"conversation c1".to_owned()), "{events:?}");
    let export = &report.exports[0];
    let counts = &export.counts;
    assert_eq!((counts.conversations, counts.messages, counts.warnings), (1, 2, 1));
    assert_eq!((counts.found(RecordKind::Message), counts.found(RecordKind::Conversation)), (3, 1));
    assert_eq!(export.bytes, EXPORT.len() as u64);
    assert_eq!(export.outcome.as_ref().unwrap().memory_bytes, 1 << 20);
    assert_eq!(report.unclaimed, ["b.txt"]);
    assert_eq!(report.importer.name, "hostile");
}

#[test]
fn an_archive_and_an_archive_in_it_are_opened() {
    let project = Project::new();
    let inner = zip_of("a.json", EXPORT.as_bytes());
    let outer = project.fixtures().join("outer.zip");
    fs::write(&outer, zip_of("inner.zip", &inner)).unwrap();
    // It claims the first file of the list, whatever its name is.
    let claims_first = guests::component(
        &format!(
            "{}\n(func $run (result i32) (call $emit) (global.get $ok))
             (func $detect (result i32)
               (call $list_files (i32.const 3072))
               (i32.store8 (i32.const 216) (i32.const 90))
               (i32.store (i32.const 224) (i32.const 1))
               (i32.store (i32.const 240) (i32.load (i32.load (i32.const 3072))))
               (i32.store (i32.const 244) (i32.load offset=4 (i32.load (i32.const 3072))))
               ;; An archive is no export.
               (if (i32.eq (i32.load offset=4 (i32.load (i32.const 3072))) (i32.const 9))
                 (then (i32.store (i32.const 200) (i32.const 0))))
               (i32.const 192))",
            guests::CONVERSATION
        ),
        "",
    );
    let report = run(&claims_first, &outer, &RunOptions::default(), &mut |_| SinkVerdict::Proceed).unwrap();
    assert_eq!(report.exports[0].detection.files, ["inner.zip/a.json"]);
    assert_eq!(report.exports[0].counts.conversations, 1);
}

#[test]
fn a_crash_is_part_of_the_report_with_what_came_before() {
    let trap = guests::shared(include_str!("../../../../tests/guests/trap_with_pending.wat"));
    let (report, _) = run_guest(&trap, &Project::new());
    assert!(
        matches!(report.exports[0].outcome, Err(PluginError::Trap(_) | PluginError::Panic(_))),
        "{report:?}"
    );
    let wrong = run_guest(&guests::liar(), &Project::new()).0.wrong_claims;
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}

#[test]
fn the_receiver_can_stop_a_run() {
    let project = Project::new();
    let flood = guests::guest("(loop $again (call $emit) (br $again))");
    let mut lines = 0;
    let report = run(&flood, &project.fixtures().join("one/input"), &RunOptions::default(), &mut |event| {
        lines += u64::from(matches!(event, RunEvent::Line(_)));
        if lines < 3 { SinkVerdict::Proceed } else { SinkVerdict::Stop }
    })
    .unwrap();
    assert_eq!(report.exports[0].outcome, Err(PluginError::Cancelled));
    assert_eq!(lines, 3);
}

#[test]
fn errors_say_what_is_wrong_with_the_file_or_the_path() {
    let project = Project::new();
    let run = |importer: &[u8], path: &str| {
        let path = project.fixtures().join(path);
        run(importer, &path, &RunOptions::default(), &mut |_| SinkVerdict::Proceed).unwrap_err()
    };
    assert!(matches!(run(b"no component", "one/input"), RunError::Load(LoadError::Host(_))));
    let broken = [guests::good(), b"\0\x11\x10satchel:manifest".to_vec()].concat();
    assert!(matches!(run(&broken, "one/input"), RunError::Load(LoadError::Package(_))));
    let error = run(&guests::good(), "missing").to_string();
    assert!(error.contains("does not exist"), "{error}");
}

/// A ZIP with one stored file.
fn zip_of(name: &str, bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    writer.start_file(name, options).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap().into_inner()
}
