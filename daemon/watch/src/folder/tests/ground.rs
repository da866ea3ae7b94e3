//! Tests of volumes, shares and file systems that appear, disappear and return unusual results.

use super::*;

#[test]
fn a_volume_that_goes_and_comes_back_is_picked_up() {
    let mut play = Play::new();
    play.put("a.zip", 1);
    play.seconds(4);
    play.ended("a.zip", Outcome::Imported);
    play.started();
    for kind in
        [io::ErrorKind::NotFound, io::ErrorKind::StaleNetworkFileHandle, io::ErrorKind::PermissionDenied]
    {
        play.world().down = Some(kind);
        play.seconds(40);
        let view = play.folder.view();
        assert_eq!(view.state, State::Broken);
        assert!(!view.troubles[0].fix.is_empty());
        play.world().down = None;
        play.seconds(40);
        assert_eq!((play.folder.view().state, play.folder.view().troubles), (State::Watching, Vec::new()));
    }
    // Another volume appears in its place without an event.
    play.world().volume = 2;
    play.put("b.zip", 1);
    play.seconds(40);
    assert_eq!(play.started(), ["b.zip"]);
}

#[test]
fn a_mount_point_without_its_volume_forgets_nothing() {
    let mut play = Play::new();
    play.put("a.zip", 1);
    play.seconds(4);
    play.ended("a.zip", Outcome::Imported);
    play.started();
    let files = std::mem::take(&mut play.world().files);
    play.world().volume = 2;
    play.seconds(700);
    assert_eq!(play.folder.view().imported, 0);
    play.world().files = files;
    play.world().volume = 0;
    play.seconds(700);
    assert_eq!((play.started(), play.folder.view().imported), (Vec::new(), 1));
}

#[test]
fn what_left_the_folder_is_forgotten_for_good_and_comes_again_as_new() {
    let mut play = Play::new();
    for name in ["a.zip", "b.zip"] {
        play.put(name, 1);
    }
    play.seconds(4);
    for name in ["a.zip", "b.zip"] {
        play.ended(name, Outcome::Imported);
    }
    play.started();
    let gone = play.world().files.remove(OsStr::new("a.zip")).unwrap();
    play.seconds(700);
    let kept = |play: &Play| play.world().kept.keys().cloned().collect::<Vec<_>>();
    assert_eq!(kept(&play), ["b.zip"]);
    play.world().files.insert("a.zip".into(), gone);
    play.seconds(700);
    assert_eq!(play.started(), ["a.zip"]);
    play.ended("a.zip", Outcome::Imported);
    // This happens while no watcher runs.
    play.world().files.remove(OsStr::new("b.zip"));
    let mut again = Play::on(play.shared.clone(), false);
    again.seconds(5);
    assert_eq!((kept(&again), again.started()), (vec![OsString::from("a.zip")], Vec::new()));
}

/// A poll or events find the files missing one after another. A walk through all stored entries for each of them would
/// never end.
#[test]
fn ten_thousand_files_that_leave_one_by_one_cost_one_step_each() {
    const FILES: usize = 10_000;
    for told in [true, false] {
        let mut play = Play::new();
        (0..FILES).for_each(|at| play.put(&format!("{at:05}.zip"), 1));
        let files = play.world().files.clone();
        for (name, File { stamp, .. }) in files.clone() {
            let mut world = play.world();
            world.kept_on.insert(name.clone(), 0);
            world.kept.insert(name, Known { stamp, verdict: Verdict::Imported });
        }
        play.seconds(5);
        let batch = if told { 1 } else { 500 };
        for names in files.keys().collect::<Vec<_>>().chunks(batch) {
            names.iter().for_each(|name| drop(play.world().files.remove(*name)));
            if told {
                play.told(&names[0].to_string_lossy());
            } else {
                play.folder.step(Pending { all: true, ..Pending::default() });
            }
        }
        let world = play.world();
        assert_eq!((world.forgotten, world.walks, world.kept.len()), (FILES, 1, 0), "told: {told}");
    }
}

#[test]
fn files_that_leave_while_they_wait_their_turn_are_not_handed_on() {
    let mut play = Play::new();
    (0..1_000).for_each(|at| play.put(&format!("{at:04}.zip"), 1));
    play.seconds(10);
    let started = play.started();
    for at in 0..1_000 {
        let name = format!("{at:04}.zip");
        if !started.contains(&name) && at % 100 != 0 {
            play.world().files.remove(OsStr::new(&name));
            play.told(&name);
        }
    }
    assert_eq!(play.folder.view().queued, 9);
    started.iter().for_each(|name| play.ended(name, Outcome::Imported));
    assert!(play.started().iter().all(|name| name.ends_with("00.zip")));
}

#[test]
fn a_name_that_the_server_lost_is_a_problem_and_holds_no_other() {
    let mut play = Play::new();
    for name in ["lost.zip", "there.zip"] {
        play.put(name, 1);
    }
    play.world().stale.insert("lost.zip".into());
    play.seconds(4);
    assert_eq!(play.started(), ["there.zip"]);
    assert!(play.folder.view().troubles[0].message.contains("lost.zip"));
    play.world().stale.clear();
    play.seconds(700);
    assert_eq!((play.started(), play.folder.view().troubles), (vec!["lost.zip".to_owned()], Vec::new()));
}

#[test]
fn a_server_that_is_gone_for_a_minute_costs_nothing_and_brings_nothing_twice() {
    let shared = Shared::default();
    shared.world().silent = true;
    let mut play = Play::on(shared, false);
    (0..20).for_each(|at| play.put(&format!("{at:02}.zip"), 1));
    play.seconds(40);
    let mut started = play.started();
    while let Some(name) = started.pop() {
        play.ended(&name, Outcome::Imported);
        started.extend(play.started());
    }
    let kept = play.world().kept.len();
    play.world().down = Some(io::ErrorKind::TimedOut);
    let before = play.world().looks;
    play.seconds(60);
    assert_eq!((play.folder.view().state, play.world().kept.len()), (State::Broken, kept));
    assert!(play.world().looks - before < 20, "a dead server is asked all the time");
    play.world().down = None;
    play.seconds(70);
    assert_eq!((play.started(), play.folder.view().imported), (Vec::new(), 20));
}

#[test]
fn a_share_that_numbers_its_files_anew_brings_each_once_more_and_not_again_and_again() {
    let mut play = Play::new();
    for name in ["a.zip", "b.zip"] {
        play.put(name, 1);
    }
    play.seconds(4);
    for name in ["a.zip", "b.zip"] {
        play.ended(name, Outcome::Imported);
    }
    play.started();
    play.world().volume = 7;
    play.world().files.values_mut().for_each(|file| file.stamp.inode += 100);
    play.seconds(60);
    // The import compares their bytes and finds nothing new.
    assert_eq!(play.started(), ["a.zip", "b.zip"]);
    for name in ["a.zip", "b.zip"] {
        play.ended(name, Outcome::Imported);
    }
    play.seconds(10_000);
    assert_eq!(play.started(), Vec::<String>::new());
}

#[test]
fn where_case_does_not_count_a_name_in_other_case_is_another_that_the_import_knows() {
    let mut play = Play::new();
    play.put("Export.zip", 1);
    play.seconds(4);
    play.ended("Export.zip", Outcome::Imported);
    play.started();
    let file = play.world().files.remove(OsStr::new("Export.zip")).unwrap();
    play.world().files.insert("EXPORT.ZIP".into(), file);
    play.seconds(700);
    assert_eq!(play.started(), ["EXPORT.ZIP"]);
    play.ended("EXPORT.ZIP", Outcome::Imported);
    play.seconds(10_000);
    assert_eq!((play.started(), play.folder.view().imported), (Vec::new(), 1));
}
