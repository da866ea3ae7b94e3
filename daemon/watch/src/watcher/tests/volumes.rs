//! Tests of volumes, shares and file systems that appear, disappear and return unusual results.

use super::*;

#[test]
fn a_volume_that_is_remounted_is_detected() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(4);
    fixture.end_import("a.zip", FileOutcome::Imported);
    fixture.take_started();
    for kind in
        [io::ErrorKind::NotFound, io::ErrorKind::StaleNetworkFileHandle, io::ErrorKind::PermissionDenied]
    {
        fixture.simulation().folder_error = Some(kind);
        fixture.advance_seconds(40);
        let view = fixture.watcher.status();
        assert_eq!(view.state, WatchState::Broken);
        assert!(!view.problems[0].fix.is_empty());
        fixture.simulation().folder_error = None;
        fixture.advance_seconds(40);
        assert_eq!(
            (fixture.watcher.status().state, fixture.watcher.status().problems),
            (WatchState::Watching, Vec::new())
        );
    }
    // Another volume appears in its place without an event.
    fixture.simulation().volume = 2;
    fixture.add_file("b.zip", 1);
    fixture.advance_seconds(40);
    assert_eq!(fixture.take_started(), ["b.zip"]);
}

#[test]
fn a_mount_point_without_its_volume_forgets_nothing() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("a.zip", 1);
    fixture.advance_seconds(4);
    fixture.end_import("a.zip", FileOutcome::Imported);
    fixture.take_started();
    let files = std::mem::take(&mut fixture.simulation().files);
    fixture.simulation().volume = 2;
    fixture.advance_seconds(700);
    assert_eq!(fixture.watcher.status().imported, 0);
    fixture.simulation().files = files;
    fixture.simulation().volume = 0;
    fixture.advance_seconds(700);
    assert_eq!((fixture.take_started(), fixture.watcher.status().imported), (Vec::new(), 1));
}

#[test]
fn a_removed_file_is_forgotten_and_is_new_when_it_returns() {
    let mut fixture = WatcherFixture::new();
    for name in ["a.zip", "b.zip"] {
        fixture.add_file(name, 1);
    }
    fixture.advance_seconds(4);
    for name in ["a.zip", "b.zip"] {
        fixture.end_import(name, FileOutcome::Imported);
    }
    fixture.take_started();
    let removed = fixture.simulation().files.remove(OsStr::new("a.zip")).unwrap();
    fixture.advance_seconds(700);
    let stored_names =
        |fixture: &WatcherFixture| fixture.simulation().verdicts.keys().cloned().collect::<Vec<_>>();
    assert_eq!(stored_names(&fixture), ["b.zip"]);
    fixture.simulation().files.insert("a.zip".into(), removed);
    fixture.advance_seconds(700);
    assert_eq!(fixture.take_started(), ["a.zip"]);
    fixture.end_import("a.zip", FileOutcome::Imported);
    // This happens while no watcher runs.
    fixture.simulation().files.remove(OsStr::new("b.zip"));
    let mut again = WatcherFixture::with_simulation(fixture.simulated.clone(), false);
    again.advance_seconds(5);
    assert_eq!((stored_names(&again), again.take_started()), (vec![OsString::from("a.zip")], Vec::new()));
}

/// A poll or events find the files missing one after another. A walk through all stored entries for each of them would
/// never end.
#[test]
fn removing_ten_thousand_files_one_by_one_costs_one_step_each() {
    const FILES: usize = 10_000;
    for notified in [true, false] {
        let mut fixture = WatcherFixture::new();
        (0..FILES).for_each(|at| fixture.add_file(&format!("{at:05}.zip"), 1));
        let files = fixture.simulation().files.clone();
        for (name, SimulatedFile { stamp, .. }) in files.clone() {
            let mut simulation = fixture.simulation();
            simulation.verdict_volumes.insert(name.clone(), 0);
            simulation.verdicts.insert(name, KnownFile { stamp, verdict: FileVerdict::Imported });
        }
        fixture.advance_seconds(5);
        let batch = if notified { 1 } else { 500 };
        for names in files.keys().collect::<Vec<_>>().chunks(batch) {
            names.iter().for_each(|name| drop(fixture.simulation().files.remove(*name)));
            if notified {
                fixture.notify(&names[0].to_string_lossy());
            } else {
                fixture.watcher.step(PendingEvents { rescan: true, ..PendingEvents::default() });
            }
        }
        let simulation = fixture.simulation();
        assert_eq!(
            (simulation.removals, simulation.ledger_walks, simulation.verdicts.len()),
            (FILES, 1, 0),
            "notified: {notified}"
        );
    }
}

#[test]
fn queued_files_that_are_removed_are_not_imported() {
    let mut fixture = WatcherFixture::new();
    (0..1_000).for_each(|at| fixture.add_file(&format!("{at:04}.zip"), 1));
    fixture.advance_seconds(10);
    let started = fixture.take_started();
    for at in 0..1_000 {
        let name = format!("{at:04}.zip");
        if !started.contains(&name) && at % 100 != 0 {
            fixture.simulation().files.remove(OsStr::new(&name));
            fixture.notify(&name);
        }
    }
    assert_eq!(fixture.watcher.status().queued, 9);
    started.iter().for_each(|name| fixture.end_import(name, FileOutcome::Imported));
    assert!(fixture.take_started().iter().all(|name| name.ends_with("00.zip")));
}

#[test]
fn a_stale_name_is_a_problem_and_delays_no_other() {
    let mut fixture = WatcherFixture::new();
    for name in ["lost.zip", "there.zip"] {
        fixture.add_file(name, 1);
    }
    fixture.simulation().stale.insert("lost.zip".into());
    fixture.advance_seconds(4);
    assert_eq!(fixture.take_started(), ["there.zip"]);
    assert!(fixture.watcher.status().problems[0].message.contains("lost.zip"));
    fixture.simulation().stale.clear();
    fixture.advance_seconds(700);
    assert_eq!(
        (fixture.take_started(), fixture.watcher.status().problems),
        (vec!["lost.zip".to_owned()], Vec::new())
    );
}

#[test]
fn a_server_outage_costs_little_and_causes_no_second_import() {
    let simulated = SharedSimulation::default();
    simulated.simulation().no_events = true;
    let mut fixture = WatcherFixture::with_simulation(simulated, false);
    (0..20).for_each(|at| fixture.add_file(&format!("{at:02}.zip"), 1));
    fixture.advance_seconds(40);
    let mut started = fixture.take_started();
    while let Some(name) = started.pop() {
        fixture.end_import(&name, FileOutcome::Imported);
        started.extend(fixture.take_started());
    }
    let stored = fixture.simulation().verdicts.len();
    fixture.simulation().folder_error = Some(io::ErrorKind::TimedOut);
    let before = fixture.simulation().inspections;
    fixture.advance_seconds(60);
    assert_eq!(
        (fixture.watcher.status().state, fixture.simulation().verdicts.len()),
        (WatchState::Broken, stored)
    );
    assert!(fixture.simulation().inspections - before < 20, "a dead server is inspected all the time");
    fixture.simulation().folder_error = None;
    fixture.advance_seconds(70);
    assert_eq!((fixture.take_started(), fixture.watcher.status().imported), (Vec::new(), 20));
}

#[test]
fn new_inode_numbers_cause_exactly_one_more_import_of_each_file() {
    let mut fixture = WatcherFixture::new();
    for name in ["a.zip", "b.zip"] {
        fixture.add_file(name, 1);
    }
    fixture.advance_seconds(4);
    for name in ["a.zip", "b.zip"] {
        fixture.end_import(name, FileOutcome::Imported);
    }
    fixture.take_started();
    fixture.simulation().volume = 7;
    fixture.simulation().files.values_mut().for_each(|file| file.stamp.inode += 100);
    fixture.advance_seconds(60);
    // The import compares their bytes and finds nothing new.
    assert_eq!(fixture.take_started(), ["a.zip", "b.zip"]);
    for name in ["a.zip", "b.zip"] {
        fixture.end_import(name, FileOutcome::Imported);
    }
    fixture.advance_seconds(10_000);
    assert_eq!(fixture.take_started(), Vec::<String>::new());
}

#[test]
fn a_name_in_other_case_is_another_file() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("Export.zip", 1);
    fixture.advance_seconds(4);
    fixture.end_import("Export.zip", FileOutcome::Imported);
    fixture.take_started();
    let file = fixture.simulation().files.remove(OsStr::new("Export.zip")).unwrap();
    fixture.simulation().files.insert("EXPORT.ZIP".into(), file);
    fixture.advance_seconds(700);
    assert_eq!(fixture.take_started(), ["EXPORT.ZIP"]);
    fixture.end_import("EXPORT.ZIP", FileOutcome::Imported);
    fixture.advance_seconds(10_000);
    assert_eq!((fixture.take_started(), fixture.watcher.status().imported), (Vec::new(), 1));
}
