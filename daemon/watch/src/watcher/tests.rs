//! Tests of a folder with simulated time, disk and imports: every way in which files arrive, fail and disappear.
#![expect(clippy::unwrap_used, reason = "tests")]

mod change_detection;
mod fixture;
mod sessions;
mod volumes;

use fixture::*;

use super::{imports::MAX_TRIES, *};
use crate::{
    notifier::NotifierError,
    outcome::FileOutcome,
    queue::StartError,
    settle::Hold,
    verdicts::{FileVerdict, KnownFile},
};

#[test]
fn files_present_at_the_start_are_imported_once() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(4);
    assert_eq!(fixture.take_started(), ["a.zip"]);
    fixture.end_import("a.zip", FileOutcome::Imported);
    fixture.advance_seconds(100_000);
    assert_eq!(fixture.take_started(), Vec::<String>::new());
    assert_eq!(
        (fixture.watcher.status().imported, fixture.watcher.status().state),
        (1, WatchState::Watching)
    );
}

#[test]
fn a_file_is_imported_with_or_without_an_event() {
    let mut fixture = WatcherFixture::new();
    fixture.advance_seconds(1);
    fixture.add_file("notified.zip", 1);
    fixture.notify("notified.zip");
    fixture.advance_seconds(4);
    assert_eq!(fixture.take_started(), ["notified.zip"]);
    fixture.add_file("unnotified.zip", 1);
    fixture.advance_seconds(700);
    assert_eq!(fixture.take_started(), ["unnotified.zip"]);
}

#[test]
fn after_a_restart_nothing_is_imported_again() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 1);
    fixture.add_file("b.zip", 1);
    fixture.advance_seconds(4);
    fixture.end_import("a.zip", FileOutcome::Imported);
    fixture.end_import("b.zip", FileOutcome::Unrecognised);
    fixture.take_started();
    let mut again = WatcherFixture::with_simulation(fixture.simulated.clone(), false);
    again.advance_seconds(10_000);
    assert_eq!(again.take_started(), Vec::<String>::new());
    again.simulation().importers = "newer".into();
    let mut again = WatcherFixture::with_simulation(fixture.simulated.clone(), false);
    again.advance_seconds(10);
    assert_eq!(again.take_started(), ["b.zip"]);
}

#[test]
fn a_file_that_changes_is_imported_again() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(4);
    fixture.end_import("a.zip", FileOutcome::Imported);
    fixture.add_file("a.zip", 2);
    fixture.notify("a.zip");
    fixture.advance_seconds(4);
    assert_eq!(fixture.take_started(), ["a.zip", "a.zip"]);
}

#[test]
fn a_file_that_changes_while_it_is_imported_settles_again() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(4);
    fixture.add_file("a.zip", 2);
    fixture.notify("a.zip");
    assert_eq!(fixture.take_started(), ["a.zip"]);
    fixture.end_import("a.zip", FileOutcome::Changed);
    fixture.advance_seconds(4);
    assert_eq!(fixture.take_started(), ["a.zip"]);
    fixture.end_import("a.zip", FileOutcome::Imported);
    fixture.advance_seconds(10_000);
    assert_eq!((fixture.take_started(), fixture.watcher.status().failed_total), (Vec::new(), 0));
}

#[test]
fn a_failed_file_is_retried_with_backoff_up_to_a_limit() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(4);
    let mut times = Vec::new();
    for _ in 0..400_000 / 60 {
        if !fixture.take_started().is_empty() {
            times.push(fixture.simulation().now.as_secs());
            fixture.end_import("a.zip", FileOutcome::Failed("bad".into()));
        }
        fixture.advance_seconds(60);
    }
    assert_eq!(times.len(), MAX_TRIES as usize);
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[0] >= 60 && gaps.windows(2).all(|pair| pair[1] >= pair[0]), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= 6 * 3_600 + 120), "{gaps:?}");
    fixture.add_file("a.zip", 2);
    fixture.notify("a.zip");
    fixture.advance_seconds(4);
    assert_eq!(fixture.take_started(), ["a.zip"]);
    fixture.end_import("a.zip", FileOutcome::Imported);
    assert_eq!(fixture.watcher.status().failed_total, 0);
}

#[test]
fn a_failure_is_reported_with_its_reason_and_its_next_try() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(4);
    fixture.end_import("a.zip", FileOutcome::Failed("its bytes do not match".into()));
    let view = fixture.watcher.status();
    assert_eq!(view.failed[0].reason, "its bytes do not match");
    assert!(view.failed[0].retry_at.unwrap() > fixture.simulation().now);
}

#[test]
fn a_cancelled_import_is_left_alone_until_the_file_changes() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(4);
    fixture.end_import("a.zip", FileOutcome::Cancelled);
    fixture.take_started();
    fixture.advance_seconds(10_000);
    assert_eq!(fixture.take_started(), Vec::<String>::new());
}

#[test]
fn an_unrecognised_folder_that_keeps_changing_is_tried_less_and_less_often() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("project", 0);
    let mut imports = 0;
    for second in 0..3_600 {
        if second % 5 == 0 {
            fixture.add_file("project", second);
            fixture.notify("project");
        }
        fixture.advance_seconds(1);
        for name in fixture.take_started() {
            imports += 1;
            fixture.end_import(&name, FileOutcome::Unrecognised);
        }
    }
    assert!((5..20).contains(&imports), "{imports}");
}

#[test]
fn only_a_few_imports_are_started_at_a_time() {
    let mut fixture = WatcherFixture::new();
    (0..1_000).for_each(|at| fixture.add_file(&format!("{at:04}.zip"), 1));
    fixture.advance_seconds(10);
    let mut started = fixture.take_started();
    assert_eq!(started.len(), MAX_RUNNING_IMPORTS);
    assert_eq!(fixture.watcher.status().queued, 1_000 - MAX_RUNNING_IMPORTS);
    let mut all = started.clone();
    while let Some(name) = started.pop() {
        fixture.end_import(&name, FileOutcome::Imported);
        let more = fixture.take_started();
        all.extend(more.clone());
        started.extend(more);
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1_000);
}

#[test]
fn a_full_queue_is_retried() {
    let mut fixture = WatcherFixture::new();
    fixture.simulation().start_error = Some(StartError::Busy);
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(10);
    assert_eq!((fixture.take_started(), fixture.watcher.status().queued), (Vec::new(), 1));
    fixture.simulation().start_error = None;
    fixture.advance_seconds(2);
    assert_eq!(fixture.take_started(), ["a.zip"]);
}

#[test]
fn an_import_that_cannot_start_is_a_failure() {
    let mut fixture = WatcherFixture::new();
    fixture.simulation().start_error =
        Some(StartError::Rejected("no importer reads exports of \"x\"".into()));
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(10);
    assert!(fixture.watcher.status().failed[0].reason.contains("\"x\""));
}

#[test]
fn waiting_files_are_listed_with_the_reason() {
    let mut fixture = WatcherFixture::new();
    for name in ["damaged.zip", "going.zip.part", "whole.zip"] {
        fixture.add_file(name, 1);
    }
    fixture.change_file("damaged.zip", |file| file.complete = false);
    fixture.change_file("going.zip.part", |file| file.hold = Some(Hold::Name));
    fixture.advance_seconds(10);
    let waiting: Vec<(String, String)> =
        fixture.watcher.status().waiting.into_iter().map(|notice| (notice.name, notice.reason)).collect();
    assert_eq!(
        waiting,
        [
            (
                "damaged.zip".to_owned(),
                "unfinished: the directory at the end of the ZIP cannot be read".to_owned()
            ),
            ("going.zip.part".to_owned(), "its download is in progress".to_owned()),
        ]
    );
    assert_eq!(fixture.take_started(), ["whole.zip"]);
}

#[test]
fn an_unreadable_file_is_a_problem_and_delays_no_other() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("closed.zip", 1);
    fixture.add_file("open.zip", 1);
    fixture.change_file("closed.zip", |file| file.denied = true);
    fixture.advance_seconds(4);
    assert_eq!(fixture.take_started(), ["open.zip"]);
    let problems = fixture.watcher.status().problems;
    assert!(problems[0].message.contains("closed.zip") && problems[0].fix.contains("right to read"));
    fixture.advance_seconds(2_000);
    let before = fixture.simulation().inspections;
    fixture.advance_seconds(6_000);
    assert!(
        fixture.simulation().inspections - before < 100,
        "{} inspections",
        fixture.simulation().inspections - before
    );
    fixture.change_file("closed.zip", |file| file.denied = false);
    fixture.notify("closed.zip");
    fixture.advance_seconds(5);
    assert_eq!(fixture.take_started(), ["closed.zip"]);
    assert_eq!(fixture.watcher.status().problems, Vec::new());
}

#[test]
fn a_renamed_file_is_imported_under_its_new_name_and_forgotten_under_its_old() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip.part", 1);
    fixture.change_file("a.zip.part", |file| file.hold = Some(Hold::Name));
    fixture.advance_seconds(10);
    let mut file = fixture.simulation().files.remove(OsStr::new("a.zip.part")).unwrap();
    file.hold = None;
    fixture.simulation().files.insert("a.zip".into(), file);
    fixture.notify("a.zip.part");
    fixture.notify("a.zip");
    fixture.advance_seconds(4);
    assert_eq!(fixture.take_started(), ["a.zip"]);
    assert_eq!(fixture.watcher.status().waiting_total, 0);
}

#[test]
fn times_rounded_to_two_seconds_cause_no_second_import() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 2_000_000_000);
    fixture.advance_seconds(4);
    fixture.end_import("a.zip", FileOutcome::Imported);
    for _ in 0..100 {
        fixture.notify("a.zip");
        fixture.advance_seconds(7);
    }
    assert_eq!(fixture.take_started(), ["a.zip"]);
}

#[test]
fn at_rest_each_file_is_inspected_once_in_ten_minutes() {
    let mut fixture = WatcherFixture::new();
    (0..10_000).for_each(|at| fixture.add_file(&format!("{at:05}.zip"), 1));
    let files = fixture.simulation().files.clone();
    for (name, SimulatedFile { stamp, .. }) in files {
        fixture.simulation().verdicts.insert(name, KnownFile { stamp, verdict: FileVerdict::Imported });
    }
    fixture.advance_seconds(5);
    let before = fixture.simulation().inspections;
    fixture.advance_seconds(1_200);
    assert_eq!(fixture.simulation().inspections - before, 20_000);
    assert_eq!((fixture.take_started(), fixture.watcher.status().imported), (Vec::new(), 10_000));
}
