//! Tests of events from the system, and of polling where there are too few events.

use super::*;

#[test]
fn a_folder_without_events_is_polled() {
    for (no_events, poll) in [(true, false), (false, true)] {
        let simulated = SharedSimulation::default();
        simulated.simulation().no_events = no_events;
        let mut fixture = WatcherFixture::with_simulation(simulated, poll);
        fixture.advance_seconds(1);
        fixture.add_file("a.zip", 1);
        fixture.advance_seconds(40);
        assert_eq!(fixture.take_started(), ["a.zip"]);
        assert!(matches!(fixture.watcher.status().state, WatchState::Polling(_)));
        assert!(
            fixture.watcher.status().problems.is_empty() && fixture.simulation().watched_folders.is_empty()
        );
    }
}

#[test]
fn a_system_limit_is_reported_with_the_command_that_raises_it() {
    for (limit, command) in [
        (NotifierError::WatchLimit, "sudo sysctl fs.inotify.max_user_watches="),
        (NotifierError::InstanceLimit, "sudo sysctl fs.inotify.max_user_instances="),
    ] {
        let mut fixture = WatcherFixture::new();
        fixture.simulation().notifier_error = Some(limit);
        fixture.advance_seconds(1);
        fixture.add_file("a.zip", 1);
        fixture.advance_seconds(40);
        assert_eq!(fixture.take_started(), ["a.zip"]);
        assert!(fixture.watcher.status().problems[0].fix.starts_with(command));
        fixture.simulation().notifier_error = None;
        fixture.advance_seconds(1_300);
        assert_eq!(
            (fixture.watcher.status().state, fixture.watcher.status().problems),
            (WatchState::Watching, Vec::new())
        );
    }
}

#[test]
fn a_limit_reached_in_a_subfolder_is_reported_too() {
    let mut fixture = WatcherFixture::new();
    fixture.advance_seconds(1);
    fixture.simulation().notifier_error = Some(NotifierError::WatchLimit);
    fixture.add_file("export", 1);
    fixture.change_file("export", |file| file.folders = vec!["/r/export".into()]);
    fixture.notify("export");
    fixture.advance_seconds(5);
    assert_eq!(fixture.take_started(), ["export"]);
    assert!(matches!(fixture.watcher.status().state, WatchState::Polling(_)));
}

#[test]
fn subfolders_are_watched_and_unwatched() {
    let mut fixture = WatcherFixture::new();
    fixture.add_file("export", 1);
    fixture.change_file("export", |file| file.folders = vec!["/r/export".into(), "/r/export/a".into()]);
    fixture.advance_seconds(5);
    assert_eq!(fixture.simulation().watched_folders.len(), 3);
    fixture.simulation().files.clear();
    fixture.advance_seconds(700);
    assert_eq!(fixture.simulation().watched_folders, [PathBuf::from("/r")]);
}

#[test]
fn an_overflow_inspects_everything() {
    let mut fixture = WatcherFixture::new();
    fixture.advance_seconds(1);
    (0..2_000).for_each(|at| fixture.add_file(&format!("{at}.zip"), 1));
    fixture.watcher.step(PendingEvents { rescan: true, overflows: 1, ..PendingEvents::default() });
    fixture.advance_seconds(10);
    let view = fixture.watcher.status();
    assert_eq!((view.overflows, view.queued + view.reading.len()), (1, 2_000));
}
