//! Tests of events from the system, and of polling where there are too few events.

use super::*;

#[test]
fn where_the_system_tells_nothing_it_is_looked_at_now_and_then() {
    for (silent, poll) in [(true, false), (false, true)] {
        let shared = Shared::default();
        shared.world().silent = silent;
        let mut play = Play::on(shared, poll);
        play.seconds(1);
        play.put("a.zip", 1);
        play.seconds(40);
        assert_eq!(play.started(), ["a.zip"]);
        assert!(matches!(play.folder.view().state, State::Polling(_)));
        assert!(play.folder.view().troubles.is_empty() && play.world().listening.is_empty());
    }
}

#[test]
fn a_limit_of_the_system_is_told_with_the_command_that_raises_it() {
    for (limit, command) in [
        (Deaf::Folders, "sudo sysctl fs.inotify.max_user_watches="),
        (Deaf::Watchers, "sudo sysctl fs.inotify.max_user_instances="),
    ] {
        let mut play = Play::new();
        play.world().limit = Some(limit);
        play.seconds(1);
        play.put("a.zip", 1);
        play.seconds(40);
        assert_eq!(play.started(), ["a.zip"]);
        assert!(play.folder.view().troubles[0].fix.starts_with(command));
        play.world().limit = None;
        play.seconds(1_300);
        assert_eq!((play.folder.view().state, play.folder.view().troubles), (State::Watching, Vec::new()));
    }
}

#[test]
fn a_limit_that_is_met_below_the_folder_is_told_too() {
    let mut play = Play::new();
    play.seconds(1);
    play.world().limit = Some(Deaf::Folders);
    play.put("export", 1);
    play.change("export", |file| file.folders = vec!["/r/export".into()]);
    play.told("export");
    play.seconds(5);
    assert_eq!(play.started(), ["export"]);
    assert!(matches!(play.folder.view().state, State::Polling(_)));
}

#[test]
fn folders_below_are_listened_to_and_let_go() {
    let mut play = Play::new();
    play.put("export", 1);
    play.change("export", |file| file.folders = vec!["/r/export".into(), "/r/export/a".into()]);
    play.seconds(5);
    assert_eq!(play.world().listening.len(), 3);
    play.world().files.clear();
    play.seconds(700);
    assert_eq!(play.world().listening, [PathBuf::from("/r")]);
}

#[test]
fn a_lost_count_looks_at_everything() {
    let mut play = Play::new();
    play.seconds(1);
    (0..2_000).for_each(|at| play.put(&format!("{at}.zip"), 1));
    play.folder.step(Pending { all: true, overflows: 1, ..Pending::default() });
    play.seconds(10);
    let view = play.folder.view();
    assert_eq!((view.overflows, view.queued + view.reading.len()), (1, 2_000));
}
