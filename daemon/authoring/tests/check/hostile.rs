//! Each check fails for a guest that breaks what it checks, and passes for one that does not.

use std::{fs, time::Duration};

use satchel_authoring::{
    check::{CheckError, CheckKind, CheckOptions, CheckProgress, Outcome, check},
    run::LoadedImporter,
};
use satchel_registry::package::{Manifest, Package};

use crate::{
    guests::{self, CONVERSATION, EXPORT},
    project::{Project, assert_only_fault, failed, faults, outcome, quick},
};

/// Traps unless the file has the size of the fixture.
const FRAGILE: &str = "(if (i32.ne (call $first_size) (i32.const 79)) (then (unreachable))) (call $emit)";

#[test]
fn a_good_importer_passes_every_check() {
    let report = Project::new().with("two", &EXPORT.replace("hungry", "tired")).check(&guests::good());
    assert!(report.passed(), "{:#?}", report.failures().collect::<Vec<_>>());
    assert_eq!((report.counts.conversations, report.counts.messages), (2, 4));
    let kept: Vec<_> = report.kept.rows().collect();
    assert!(kept.contains(&("message", "content", 4)), "{kept:?}");
    assert_eq!(report.fixtures[0].memory_bytes, 1 << 20, "16 pages");
    for kind in [CheckKind::Mutations, CheckKind::Fields, CheckKind::Repeat, CheckKind::Expected] {
        assert_eq!(outcome(&report, "one", kind), Outcome::Passed, "{kind:?}");
    }
    let overall: Vec<CheckKind> = report.overall.iter().map(|result| result.kind).collect();
    assert_eq!(overall, [CheckKind::Fields, CheckKind::Order, CheckKind::Receipts]);
}

#[test]
fn a_trap_is_reported_with_its_reason() {
    let panic = guests::shared(include_str!("../../../../tests/guests/panic.wat"));
    let report = Project::new().check(&panic);
    assert_eq!(
        faults(&report, CheckKind::Ends),
        ["run(\"hostile\"): the plugin panicked: panicked at src/lib.rs:7:1: [31mindex 3 of 2"]
    );
    let recursion = guests::shared(include_str!("../../../../tests/guests/recursion.wat"));
    let report = Project::new().check(&recursion);
    assert!(faults(&report, CheckKind::Ends)[0].contains("overflowed its stack"));
    let memory = guests::shared(include_str!("../../../../tests/guests/memory_bomb.wat"));
    let report = Project::new().check(&memory);
    assert!(faults(&report, CheckKind::Ends)[0].contains("more than 128 MiB of memory"));
}

#[test]
fn another_output_is_shown_and_accepted_by_an_update() {
    let project = Project::new();
    assert!(project.check(&guests::good()).passed());
    let twice = guests::guest("(call $emit) (i32.store8 (i32.const 4120) (i32.const 50)) (call $emit)");
    let report = project.check_with(&twice, &quick());
    assert_only_fault(&report, CheckKind::Expected, "at /0/lines/conversation/1\n  expected nothing");
    let report = project.check_with(&twice, &CheckOptions { update: true, ..quick() });
    assert_eq!(outcome(&report, "one", CheckKind::Expected), Outcome::Updated);
    let written = fs::read(project.fixtures().join("one/expected.json")).unwrap();
    assert!(project.check_with(&twice, &quick()).passed());
    let report = project.check_with(&twice, &CheckOptions { update: true, ..quick() });
    assert_eq!(outcome(&report, "one", CheckKind::Expected), Outcome::Passed);
    assert_eq!(fs::read(project.fixtures().join("one/expected.json")).unwrap(), written);
}

#[test]
fn a_missing_expected_file_is_a_fault() {
    let report = Project::new().check_with(&guests::good(), &quick());
    assert_only_fault(&report, CheckKind::Expected, "--update writes it");
}

#[test]
fn wrong_claims_break_the_rules() {
    let report = Project::new().check(&guests::liar());
    let found = faults(&report, CheckKind::Rules);
    assert!(found.iter().any(|fault| fault.contains("the confidence 200")), "{found:?}");
    assert!(found.iter().any(|fault| fault.contains("no.json")), "{found:?}");
}

#[test]
fn records_that_the_host_has_to_repair_break_the_rules() {
    let twice = guests::shared(include_str!("../../../../tests/guests/duplicate_ids.wat"));
    let found = faults(&Project::new().check(&twice), CheckKind::Rules);
    assert_eq!(
        found,
        ["a.json[0]#m1: another message of this conversation has the same id; the first one is kept"]
    );
    let invalid = guests::shared(include_str!("../../../../tests/guests/invalid_structure.wat"));
    let found = faults(&Project::new().check(&invalid), CheckKind::Rules);
    for part in ["named itself as its parent", "its id is empty", "created_at lies outside", "emitted line"] {
        assert!(found.iter().any(|fault| fault.contains(part)), "{part}: {found:#?}");
    }
}

#[test]
fn warnings_that_do_not_arrive_are_counted() {
    let flood = guests::shared(include_str!("../../../../tests/guests/warning_flood.wat"));
    let found = faults(&Project::new().check(&flood), CheckKind::Counts);
    assert_eq!(found, ["1000 warnings arrived, 5000 were found"]);
}

#[test]
fn invented_text_is_found() {
    let report = Project::new().with("one", &EXPORT.replace("Rye.", "Oat.")).check(&guests::good());
    assert_only_fault(&report, CheckKind::Texts, "the word \"rye\" is not in the input");
    let readme = format!("{}\nWords that it adds: `rye`\n", guests::README);
    let project = Project::new().with_readme(&readme).with("one", &EXPORT.replace("Rye.", "Oat."));
    assert!(project.check(&guests::good()).passed());
}

#[test]
fn notes_that_hide_what_changed_are_found_by_both_orders() {
    // The conversation depends on the size of the file, but its piece and its note do not.
    let forgetful = guests::guest(
        "(call $recall (i32.const 1024) (i32.const 7) (i32.const 3088))
         (if (i32.load8_u (i32.const 3088))
           (then (drop (call $again)))
           (else
             (i32.store8 (i32.const 4120) (i32.add (i32.const 48) (i32.rem_u (call $first_size) (i32.const 10))))
             (call $emit)
             (drop (call $note (i32.const 1024) (i32.const 0)))))",
    );
    let report = Project::new().with("two", &EXPORT.replace("hungry", "tired")).check(&forgetful);
    assert_eq!(failed(&report), [CheckKind::Repeat, CheckKind::Order]);
    let repeat = faults(&report, CheckKind::Repeat);
    assert!(repeat[0].contains("with its notes on pieces that it read before"), "{repeat:?}");
    let order = faults(&report, CheckKind::Order);
    assert!(order[0].starts_with("imported in reverse order"), "{order:?}");
}

#[test]
fn fields_that_are_neither_kept_nor_named_are_found() {
    let lost = EXPORT.replace("\"mood\"", "\"weather\"");
    let report = Project::new().with("one", &lost).check(&guests::good());
    assert_only_fault(&report, CheckKind::Fields, "a.json: notes.[].weather: the table has no row for it");
    let readme = guests::README.replace("dropped: passes", "verbatim");
    let report = Project::new().with_readme(&readme).check(&guests::good());
    assert_only_fault(&report, CheckKind::Fields, "notes.[].mood = \"hungry\"");
    let readme = guests::README.replace("dropped: passes", "gone");
    let report = Project::new().with_readme(&readme).check(&guests::good());
    assert_only_fault(&report, CheckKind::Fields, "does not say what becomes of it");
}

#[test]
fn a_table_that_is_missing_or_names_no_file_is_a_fault() {
    let report = Project::new().with_readme("# Notes\n").check(&guests::good());
    assert_only_fault(&report, CheckKind::Fields, "there is no field table; add a table");
    let readme = guests::README.replace("`a.json`", "`b.json`");
    let report = Project::new().with_readme(&readme).check(&guests::good());
    assert_only_fault(&report, CheckKind::Fields, "the table names no file of any fixture");
}

#[test]
fn damage_that_traps_is_named() {
    assert_eq!(EXPORT.len(), 79);
    let report = Project::new().check(&guests::guest(FRAGILE));
    let found = faults(&report, CheckKind::Mutations);
    assert_eq!(failed(&report), [CheckKind::Mutations]);
    assert!(found[0].starts_with("a.json cut after "), "{found:?}");
    assert!(
        found[0].ends_with("the plugin crashed: it aborted without a message (unreachable)"),
        "{found:?}"
    );
    assert_eq!(found.len(), 3, "the others are not read");
    assert_eq!(faults(&Project::new().check(&guests::guest(FRAGILE)), CheckKind::Mutations), found);
}

#[test]
fn damage_that_hangs_is_named() {
    let hangs =
        "(if (i32.ne (call $first_size) (i32.const 79)) (then (loop $again (br $again)))) (call $emit)";
    let project = Project::new();
    let options = CheckOptions { update: true, mutations: 1, idle: Duration::from_millis(50), ..quick() };
    let report = project.check_with(&guests::guest(hangs), &options);
    assert_only_fault(&report, CheckKind::Mutations, "the plugin made no progress in 0.05 s");
}

#[test]
fn damage_that_is_reported_as_an_internal_error_is_a_fault_and_as_malformed_is_none() {
    let reporting = |kind: u8| {
        let text = include_str!("../../../../tests/guests/reports_error.wat")
            .replace("\"\\02\\00\\00\\00\"", &format!("\"\\{kind:02x}\\00\\00\\00\""))
            .replace("(func $run (result i32) (i32.const 4096))", "")
            .replace("4096", "8192")
            .replace("4160", "8256")
            .replace("4176", "8272")
            .replace("\\40\\10", "\\40\\20")
            .replace("\\50\\10", "\\50\\20");
        let run = "(func $run (result i32)
          (if (i32.ne (call $first_size) (i32.const 79)) (then (return (i32.const 8192))))
          (call $emit) (global.get $ok))";
        guests::shared(&format!("{CONVERSATION}\n{text}\n{run}"))
    };
    assert!(Project::new().check(&reporting(2)).passed());
    assert_only_fault(
        &Project::new().check(&reporting(6)),
        CheckKind::Mutations,
        "reported an internal error: cut off.!",
    );
}

#[test]
fn a_manifest_that_keeps_the_importer_from_being_asked_is_found() {
    let plain = LoadedImporter::load(&guests::good(), None).unwrap();
    let manifest = Manifest { files: vec!["*.csv".to_owned()], ..plain.package().manifest().clone() };
    let package = Package::pack(&guests::good(), &manifest).unwrap();
    let report = Project::new().check(package.bytes());
    assert_only_fault(&report, CheckKind::Receipts, "one: the import found 0 conversations, the run 1");
}

#[test]
fn the_memory_of_a_package_is_what_it_asks_for() {
    let plain = LoadedImporter::load(&guests::good(), None).unwrap();
    let manifest = Manifest { memory_mib: 16, ..plain.package().manifest().clone() };
    let memory = guests::shared(include_str!("../../../../tests/guests/memory_bomb.wat"));
    let package = Package::pack(&memory, &manifest).unwrap();
    let report = Project::new().check(package.bytes());
    assert!(faults(&report, CheckKind::Ends)[0].contains("more than 16 MiB of memory"));
}

#[test]
fn speed_and_memory_are_measured() {
    let project = Project::new();
    let options = CheckOptions { measured_time: Duration::from_millis(60), update: true, ..quick() };
    let measures = project.check_with(&guests::good(), &options).measures.unwrap();
    assert!(measures.runs > 1 && measures.elapsed >= Duration::from_millis(60), "{measures:?}");
    assert_eq!((measures.memory_bytes, measures.error), (1 << 20, None));
    let other = project.fixtures().join("two.txt");
    fs::write(&other, "nothing for it").unwrap();
    let options = CheckOptions { bench: Some(other), ..options };
    let measures = project.check_with(&guests::good(), &options).measures.unwrap();
    assert_eq!(measures.error.as_deref(), Some("the importer finds no export in it"));
}

#[test]
fn a_check_can_be_stopped() {
    let project = Project::new();
    let options = quick();
    let mut cancel = |progress: CheckProgress| {
        if matches!(progress, CheckProgress::Fixture { .. }) {
            options.cancel.cancel();
        }
    };
    let stopped = check(&guests::good(), &project.fixtures(), &options, &mut cancel);
    assert!(matches!(stopped, Err(CheckError::Cancelled | CheckError::Source(_))), "{stopped:?}");
}

#[test]
fn a_folder_without_fixtures_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = check(&guests::good(), folder.path(), &quick(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("holds no fixture"), "{error}");
}
