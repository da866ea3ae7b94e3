//! Tests of a folder with simulated time, disk and imports: every way in which files arrive, fail and disappear.
#![expect(clippy::unwrap_used, reason = "tests")]

mod ears;
mod ground;
mod play;

use play::*;

use super::{course::MAX_TRIES, *};
use crate::{
    events::Deaf,
    memory::{Known, Verdict},
    queue::{Outcome, Refused},
    settle::Hold,
};

#[test]
fn what_is_there_at_the_start_is_imported_once() {
    let mut play = Play::new();
    play.put("a.zip", 1);
    play.seconds(4);
    assert_eq!(play.started(), ["a.zip"]);
    play.ended("a.zip", Outcome::Imported);
    play.seconds(100_000);
    assert_eq!(play.started(), Vec::<String>::new());
    assert_eq!((play.folder.view().imported, play.folder.view().state), (1, State::Watching));
}

#[test]
fn a_hint_is_enough_and_so_is_none() {
    let mut play = Play::new();
    play.seconds(1);
    play.put("told.zip", 1);
    play.told("told.zip");
    play.seconds(4);
    assert_eq!(play.started(), ["told.zip"]);
    play.put("untold.zip", 1);
    play.seconds(700);
    assert_eq!(play.started(), ["untold.zip"]);
}

#[test]
fn after_a_restart_nothing_is_imported_again() {
    let mut play = Play::new();
    play.put("a.zip", 1);
    play.put("b.zip", 1);
    play.seconds(4);
    play.ended("a.zip", Outcome::Imported);
    play.ended("b.zip", Outcome::Unrecognised(String::new()));
    play.started();
    let mut again = Play::on(play.shared.clone(), false);
    again.seconds(10_000);
    assert_eq!(again.started(), Vec::<String>::new());
    again.world().importers = "newer".into();
    let mut again = Play::on(play.shared.clone(), false);
    again.seconds(10);
    assert_eq!(again.started(), ["b.zip"]);
}

#[test]
fn a_file_that_changes_is_imported_again() {
    let mut play = Play::new();
    play.put("a.zip", 1);
    play.seconds(4);
    play.ended("a.zip", Outcome::Imported);
    play.put("a.zip", 2);
    play.told("a.zip");
    play.seconds(4);
    assert_eq!(play.started(), ["a.zip", "a.zip"]);
}

#[test]
fn a_file_that_changes_while_it_is_imported_settles_again() {
    let mut play = Play::new();
    play.put("a.zip", 1);
    play.seconds(4);
    play.put("a.zip", 2);
    play.told("a.zip");
    assert_eq!(play.started(), ["a.zip"]);
    play.ended("a.zip", Outcome::Changed);
    play.seconds(4);
    assert_eq!(play.started(), ["a.zip"]);
    play.ended("a.zip", Outcome::Imported);
    play.seconds(10_000);
    assert_eq!((play.started(), play.folder.view().failed_total), (Vec::new(), 0));
}

#[test]
fn a_failed_file_is_tried_again_ever_later_and_not_for_ever() {
    let mut play = Play::new();
    play.put("a.zip", 1);
    play.seconds(4);
    let mut times = Vec::new();
    for _ in 0..400_000 / 60 {
        if !play.started().is_empty() {
            times.push(play.world().now.as_secs());
            play.ended("a.zip", Outcome::Failed("bad".into()));
        }
        play.seconds(60);
    }
    assert_eq!(times.len(), MAX_TRIES as usize);
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[0] >= 60 && gaps.windows(2).all(|pair| pair[1] >= pair[0]), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= 6 * 3_600 + 120), "{gaps:?}");
    play.put("a.zip", 2);
    play.told("a.zip");
    play.seconds(4);
    assert_eq!(play.started(), ["a.zip"]);
    play.ended("a.zip", Outcome::Imported);
    assert_eq!(play.folder.view().failed_total, 0);
}

#[test]
fn a_failure_is_shown_with_its_reason_and_its_next_try() {
    let mut play = Play::new();
    play.put("a.zip", 1);
    play.seconds(4);
    play.ended("a.zip", Outcome::Failed("its bytes do not match".into()));
    let view = play.folder.view();
    assert_eq!(view.failed[0].reason, "its bytes do not match");
    assert!(view.failed[0].again.unwrap() > play.world().now);
}

#[test]
fn a_cancelled_import_is_left_alone_until_the_file_changes() {
    let mut play = Play::new();
    play.put("a.zip", 1);
    play.seconds(4);
    play.ended("a.zip", Outcome::Cancelled);
    play.started();
    play.seconds(10_000);
    assert_eq!(play.started(), Vec::<String>::new());
}

#[test]
fn an_unknown_folder_that_changes_all_the_time_is_looked_at_ever_more_rarely() {
    let mut play = Play::new();
    play.put("project", 0);
    let mut looks = 0;
    for second in 0..3_600 {
        if second % 5 == 0 {
            play.put("project", second);
            play.told("project");
        }
        play.seconds(1);
        for name in play.started() {
            looks += 1;
            play.ended(&name, Outcome::Unrecognised(String::new()));
        }
    }
    assert!((5..20).contains(&looks), "{looks}");
}

#[test]
fn only_a_few_are_handed_on_at_a_time() {
    let mut play = Play::new();
    (0..1_000).for_each(|at| play.put(&format!("{at:04}.zip"), 1));
    play.seconds(10);
    let mut started = play.started();
    assert_eq!(started.len(), FEED);
    assert_eq!(play.folder.view().queued, 1_000 - FEED);
    let mut all = started.clone();
    while let Some(name) = started.pop() {
        play.ended(&name, Outcome::Imported);
        let more = play.started();
        all.extend(more.clone());
        started.extend(more);
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1_000);
}

#[test]
fn a_full_queue_is_asked_again() {
    let mut play = Play::new();
    play.world().refuse = Some(Refused::Busy);
    play.put("a.zip", 1);
    play.seconds(10);
    assert_eq!((play.started(), play.folder.view().queued), (Vec::new(), 1));
    play.world().refuse = None;
    play.seconds(2);
    assert_eq!(play.started(), ["a.zip"]);
}

#[test]
fn an_import_that_can_never_begin_is_a_failure() {
    let mut play = Play::new();
    play.world().refuse = Some(Refused::Never("no importer reads exports of \"x\"".into()));
    play.put("a.zip", 1);
    play.seconds(10);
    assert!(play.folder.view().failed[0].reason.contains("\"x\""));
}

#[test]
fn what_waits_says_why() {
    let mut play = Play::new();
    for name in ["damaged.zip", "going.zip.part", "whole.zip"] {
        play.put(name, 1);
    }
    play.change("damaged.zip", |file| file.whole = false);
    play.change("going.zip.part", |file| file.hold = Some(Hold::Name));
    play.seconds(10);
    let waiting: Vec<(String, String)> =
        play.folder.view().waiting.into_iter().map(|notice| (notice.name, notice.reason)).collect();
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
    assert_eq!(play.started(), ["whole.zip"]);
}

#[test]
fn a_file_that_may_not_be_read_is_a_problem_and_holds_no_other() {
    let mut play = Play::new();
    play.put("closed.zip", 1);
    play.put("open.zip", 1);
    play.change("closed.zip", |file| file.denied = true);
    play.seconds(4);
    assert_eq!(play.started(), ["open.zip"]);
    let troubles = play.folder.view().troubles;
    assert!(troubles[0].message.contains("closed.zip") && troubles[0].fix.contains("right to read"));
    play.seconds(2_000);
    let before = play.world().looks;
    play.seconds(6_000);
    assert!(play.world().looks - before < 100, "{} looks", play.world().looks - before);
    play.change("closed.zip", |file| file.denied = false);
    play.told("closed.zip");
    play.seconds(5);
    assert_eq!(play.started(), ["closed.zip"]);
    assert_eq!(play.folder.view().troubles, Vec::new());
}

#[test]
fn a_renamed_file_is_imported_under_its_new_name_and_forgotten_under_its_old() {
    let mut play = Play::new();
    play.put("a.zip.part", 1);
    play.change("a.zip.part", |file| file.hold = Some(Hold::Name));
    play.seconds(10);
    let mut file = play.world().files.remove(OsStr::new("a.zip.part")).unwrap();
    file.hold = None;
    play.world().files.insert("a.zip".into(), file);
    play.told("a.zip.part");
    play.told("a.zip");
    play.seconds(4);
    assert_eq!(play.started(), ["a.zip"]);
    assert_eq!(play.folder.view().waiting_total, 0);
}

#[test]
fn times_that_are_cut_to_two_seconds_bring_nothing_twice() {
    let mut play = Play::new();
    play.put("a.zip", 2_000_000_000);
    play.seconds(4);
    play.ended("a.zip", Outcome::Imported);
    for _ in 0..100 {
        play.told("a.zip");
        play.seconds(7);
    }
    assert_eq!(play.started(), ["a.zip"]);
}

#[test]
fn at_rest_it_looks_at_each_file_once_in_ten_minutes() {
    let mut play = Play::new();
    (0..10_000).for_each(|at| play.put(&format!("{at:05}.zip"), 1));
    let files = play.world().files.clone();
    for (name, File { stamp, .. }) in files {
        play.world().kept.insert(name, Known { stamp, verdict: Verdict::Imported });
    }
    play.seconds(5);
    let before = play.world().looks;
    play.seconds(1_200);
    assert_eq!(play.world().looks - before, 20_000);
    assert_eq!((play.started(), play.folder.view().imported), (Vec::new(), 10_000));
}
