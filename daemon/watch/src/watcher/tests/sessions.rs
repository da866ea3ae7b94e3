//! Sessions, which are imported while they grow.

use super::*;

const SESSION: &str = "project/a.jsonl";

fn grow(fixture: &WatcherFixture) {
    fixture.change_file(SESSION, |file| {
        file.stamp.bytes += 100;
        file.stamp.modified += 1;
    });
}

/// Lets a session grow ten times a second for some seconds, with imports that take `cost`; returns how many began.
fn imports_while_growing(fixture: &mut WatcherFixture, seconds: u32, cost: Duration) -> usize {
    let (tick, mut imports, mut ends) = (Duration::from_millis(100), 0, None);
    for _ in 0..seconds * 10 {
        grow(fixture);
        fixture.notify(SESSION);
        fixture.advance(tick);
        let now = fixture.simulation().now;
        if !fixture.take_started().is_empty() {
            imports += 1;
            ends = Some(now + cost);
        }
        if ends.is_some_and(|end| end <= now) {
            ends = None;
            fixture.end_import(SESSION, FileOutcome::Imported);
        }
    }
    imports
}

#[test]
fn a_session_that_never_rests_is_imported_and_a_download_is_not() {
    let mut fixture = WatcherFixture::with_sessions();
    fixture.add_file(SESSION, 1);
    assert!(imports_while_growing(&mut fixture, 60, Duration::ZERO) >= 10);
    let mut fixture = WatcherFixture::new();
    fixture.add_file(SESSION, 1);
    assert_eq!(imports_while_growing(&mut fixture, 60, Duration::ZERO), 0);
}

#[test]
fn imports_of_a_long_session_take_a_small_part_of_the_time() {
    let mut fixture = WatcherFixture::with_sessions();
    fixture.add_file(SESSION, 1);
    let imports = imports_while_growing(&mut fixture, 120, Duration::from_secs(2));
    // Each takes two seconds, and sixteen pass until the next one.
    assert!((6..=8).contains(&imports), "{imports} imports");
    fixture.end_import(SESSION, FileOutcome::Imported);
    fixture.advance_seconds(60);
    assert_eq!(fixture.take_started(), [SESSION], "what came during the last import is not forgotten");
    fixture.end_import(SESSION, FileOutcome::Imported);
    fixture.advance_seconds(1_000);
    assert_eq!(fixture.take_started(), Vec::<String>::new());
}

#[test]
fn a_long_session_is_written_to_the_journal_seldom() {
    let mut fixture = WatcherFixture::with_sessions();
    fixture.add_file(SESSION, 1);
    fixture.change_file(SESSION, |file| file.stamp.bytes = 6_000_000);
    let imports = imports_while_growing(&mut fixture, 100, Duration::ZERO);
    assert!((7..=8).contains(&imports), "ten seconds pass, and then it settles: {imports}");
    fixture.change_file(SESSION, |file| file.stamp.bytes = 6_000_000_000);
    imports_while_growing(&mut fixture, 20, Duration::ZERO);
    let imports = imports_while_growing(&mut fixture, 600, Duration::ZERO);
    assert!((9..=11).contains(&imports), "never less than one in a minute: {imports}");
}

#[test]
fn what_belongs_to_a_session_causes_its_import() {
    let mut fixture = WatcherFixture::with_sessions();
    fixture.add_file(SESSION, 1);
    fixture.advance_seconds(4);
    assert_eq!(fixture.take_started(), [SESSION]);
    fixture.end_import(SESSION, FileOutcome::Imported);
    fixture.advance_seconds(60);
    fixture.change_file(SESSION, |file| file.stamp.below = 7);
    let inner = "project/a/subagents/b.jsonl";
    fixture.add_file(inner, 1);
    fixture.change_file(inner, |file| file.related = vec![SESSION.into()]);
    fixture.notify(inner);
    fixture.advance_seconds(4);
    assert!(fixture.take_started().contains(&SESSION.to_owned()));
}
