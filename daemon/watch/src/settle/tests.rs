//! Tests of files that arrive in every way that downloads do, with simulated time.

use proptest::{collection::vec, prelude::*};

use super::*;

const QUIET: Duration = Duration::from_secs(3);
const NAME: &str = "export.zip";

fn at(seconds: u64) -> MonotonicTime {
    MonotonicTime::from_secs(seconds)
}

fn stamp(bytes: u64, modified: i64, inode: u64) -> Stamp {
    Stamp { bytes, modified, inode, below: 0 }
}

fn observed(stamp: Stamp) -> Observation {
    Observation { stamp, hold: None, took: Duration::ZERO }
}

fn observed_with_hold(stamp: Stamp, hold: Hold) -> Observation {
    Observation { hold: Some(hold), ..observed(stamp) }
}

struct SingleFile(SettleTracker);

impl SingleFile {
    fn new() -> Self {
        Self(SettleTracker::new(QUIET, false))
    }

    fn observe(&mut self, seconds: u64, observation: Observation) -> SettleStep {
        self.0.observe(OsStr::new(NAME), observation, at(seconds))
    }

    /// Inspects the file, and checks its end if the state machine requests it.
    fn arrives(&mut self, seconds: u64, seen: Observation, complete: bool) -> bool {
        let end = if complete { Ok(()) } else { Err("the end is missing".to_owned()) };
        self.observe(seconds, seen.clone()) == SettleStep::Check
            && self.0.end_checked(OsStr::new(NAME), &seen, end, at(seconds))
    }

    fn wait_reason(&self) -> Option<WaitReason> {
        self.0.waiting().next().map(|(_, wait)| wait.clone())
    }
}

#[test]
fn a_file_that_is_there_arrives_after_the_quiet_time() {
    let mut file = SingleFile::new();
    let seen = observed(stamp(5, 1, 1));
    assert!(!file.arrives(0, seen.clone(), true));
    assert!(!file.arrives(2, seen.clone(), true));
    assert!(file.arrives(3, seen, true));
    assert_eq!(file.0.len(), 0);
}

#[test]
fn a_file_that_grows_a_byte_at_a_time_waits() {
    let mut file = SingleFile::new();
    for second in 0..100 {
        assert!(!file.arrives(second, observed(stamp(second, i64::try_from(second).unwrap_or(0), 1)), true));
    }
    let end = observed(stamp(99, 99, 1));
    assert!(!file.arrives(100, end.clone(), true));
    assert!(file.arrives(102, end, true));
}

#[test]
fn a_preallocated_file_waits_for_its_end() {
    let mut file = SingleFile::new();
    let seen = observed(stamp(1_000, 1, 1));
    for second in 0..60 {
        assert!(!file.arrives(second, seen.clone(), false));
    }
    assert!(matches!(file.wait_reason(), Some(WaitReason::Unfinished(_))));
    let written = observed(stamp(1_000, 60, 1));
    assert!(!file.arrives(61, written.clone(), true));
    assert!(file.arrives(64, written, true));
}

#[test]
fn a_file_that_is_replaced_settles_again() {
    let mut file = SingleFile::new();
    assert!(!file.arrives(0, observed(stamp(5, 1, 1)), true));
    assert!(!file.arrives(3, observed(stamp(5, 1, 2)), true));
    assert!(!file.arrives(5, observed(stamp(5, 1, 2)), true));
    assert!(file.arrives(6, observed(stamp(5, 1, 2)), true));
}

#[test]
fn a_file_that_is_cut_and_grows_again_settles_again() {
    let mut file = SingleFile::new();
    for (second, bytes) in [(0, 900), (2, 0), (3, 10), (5, 400), (7, 900)] {
        let modified = i64::try_from(second).unwrap_or(0);
        assert!(!file.arrives(second, observed(stamp(bytes, modified, 1)), true));
    }
    assert!(file.arrives(10, observed(stamp(900, 7, 1)), true));
}

#[test]
fn a_file_that_changes_while_its_end_is_checked_settles_again() {
    let mut file = SingleFile::new();
    file.observe(0, observed(stamp(5, 1, 1)));
    assert_eq!(file.observe(3, observed(stamp(5, 1, 1))), SettleStep::Check);
    assert!(!file.0.end_checked(OsStr::new(NAME), &observed(stamp(6, 2, 1)), Ok(()), at(3)));
    assert_eq!(file.observe(4, observed(stamp(6, 2, 1))), SettleStep::Wait);
    assert!(file.arrives(6, observed(stamp(6, 2, 1)), true));
}

#[test]
fn an_unfinished_name_never_arrives() {
    let mut file = SingleFile::new();
    for second in 0..10_000 {
        assert!(!file.arrives(second, observed_with_hold(stamp(5, 1, 1), Hold::Name), true));
    }
    assert_eq!(file.wait_reason(), Some(WaitReason::Downloading));
}

#[test]
fn a_partner_file_holds_a_file_until_it_disappears() {
    let mut file = SingleFile::new();
    let partner = |bytes| observed_with_hold(stamp(5, 1, 1), Hold::Partner(stamp(bytes, 1, 9)));
    for second in 0..100 {
        assert!(!file.arrives(second, partner(second), true));
    }
    assert!(!file.arrives(100, observed(stamp(5, 1, 1)), true));
    assert!(!file.arrives(102, observed(stamp(5, 1, 1)), true));
    assert!(file.arrives(103, observed(stamp(5, 1, 1)), true));
}

#[test]
fn a_partner_file_of_a_crashed_browser_is_ignored_after_a_timeout() {
    let mut file = SingleFile::new();
    let seen = observed_with_hold(stamp(5, 1, 1), Hold::Partner(stamp(7, 1, 9)));
    assert!(!file.arrives(0, seen.clone(), true));
    assert!(!file.arrives(599, seen.clone(), true));
    assert!(file.arrives(600, seen, true));
}

#[test]
fn an_empty_file_waits_for_its_content() {
    let mut file = SingleFile::new();
    for second in 0..1_000 {
        assert!(!file.arrives(second, observed_with_hold(stamp(0, 1, 1), Hold::Empty), true));
    }
    assert_eq!(file.wait_reason(), Some(WaitReason::Empty));
    assert!(!file.arrives(1_000, observed(stamp(5, 2, 1)), true));
    assert!(file.arrives(1_003, observed(stamp(5, 2, 1)), true));
}

#[test]
fn an_unchanging_file_is_inspected_less_and_less_often() {
    let mut file = SingleFile::new();
    let (mut inspections, mut now) = (0, at(0));
    while now < Duration::from_hours(1) {
        file.0.observe(OsStr::new(NAME), observed_with_hold(stamp(5, 1, 1), Hold::Name), now);
        inspections += 1;
        now = file.0.next_inspection().unwrap_or(MonotonicTime::MAX);
    }
    assert!((60..70).contains(&inspections), "{inspections} inspections in an hour");
}

#[test]
fn a_slow_inspection_is_not_repeated_at_once() {
    let mut file = SingleFile::new();
    let slow = Observation { took: Duration::from_secs(2), ..observed(stamp(5, 1, 1)) };
    file.observe(0, slow);
    assert_eq!(file.0.next_inspection(), Some(at(40)));
}

#[test]
fn an_event_brings_the_next_inspection_forward_within_a_limit() {
    let mut file = SingleFile::new();
    file.observe(0, observed_with_hold(stamp(5, 1, 1), Hold::Name));
    file.observe(100, observed_with_hold(stamp(5, 1, 1), Hold::Name));
    assert!(file.0.inspect_early(OsStr::new(NAME), Duration::from_millis(100_100)));
    assert_eq!(file.0.next_inspection(), Some(at(101)));
    assert!(!file.0.inspect_early(OsStr::new("other"), at(0)));
}

/// An action of a writer between two inspections.
#[derive(Clone, Debug)]
enum WriterAction {
    Nothing,
    Append(u8),
    Cut,
    Replace,
    Touch,
    Partner(bool),
    Finish,
}

fn writer_actions() -> impl Strategy<Value = Vec<(WriterAction, u8)>> {
    let action = prop_oneof![
        4 => Just(WriterAction::Nothing),
        2 => any::<u8>().prop_map(WriterAction::Append),
        1 => Just(WriterAction::Cut),
        1 => Just(WriterAction::Replace),
        1 => Just(WriterAction::Touch),
        1 => any::<bool>().prop_map(WriterAction::Partner),
        1 => Just(WriterAction::Finish),
    ];
    vec((action, 0_u8..5), 0..80)
}

/// A file as the writer left it, and when it was last touched.
struct ModelFile {
    stamp: Stamp,
    partner: bool,
    complete: bool,
    touched: MonotonicTime,
}

impl ModelFile {
    fn apply(&mut self, action: &WriterAction, now: MonotonicTime) {
        let before = (self.stamp, self.partner);
        match action {
            WriterAction::Nothing => {}
            WriterAction::Append(bytes) => {
                (self.stamp.bytes, self.complete) = (self.stamp.bytes + u64::from(*bytes) + 1, false);
            }
            WriterAction::Cut => (self.stamp.bytes, self.complete) = (1, false),
            WriterAction::Replace => (self.stamp.inode, self.complete) = (self.stamp.inode + 1, false),
            WriterAction::Touch => {}
            WriterAction::Partner(there) => self.partner = *there,
            WriterAction::Finish => (self.stamp.bytes, self.complete) = (self.stamp.bytes + 1, true),
        }
        if matches!(action, WriterAction::Touch) || (self.stamp, self.partner) != before {
            if self.partner == before.1 {
                self.stamp.modified += 1;
            }
            self.touched = now;
        }
    }

    fn observation(&self) -> Observation {
        let hold = self.partner.then_some(Hold::Partner(stamp(1, 1, 99)));
        Observation { stamp: self.stamp, hold, took: Duration::ZERO }
    }
}

proptest! {
    /// Regardless of how it is written and when it is inspected, a file that arrives is complete, has no partner, and
    /// was quiet. Once the writer is done, the file does arrive, within the time that the inspections take.
    #[test]
    fn exactly_the_complete_and_quiet_files_arrive(actions in writer_actions()) {
        let mut settle = SettleTracker::new(QUIET, false);
        let name = OsStr::new(NAME);
        let mut model = ModelFile { stamp: stamp(1, 0, 1), partner: false, complete: false, touched: at(0) };
        let mut now = at(0);
        let visit = |settle: &mut SettleTracker, model: &ModelFile, now: MonotonicTime| {
            let end = if model.complete { Ok(()) } else { Err(String::new()) };
            settle.observe(name, model.observation(), now) == SettleStep::Check && settle.end_checked(name, &model.observation(), end, now)
        };
        for (action, pause) in &actions {
            model.apply(action, now);
            now += Duration::from_secs(u64::from(*pause));
            if visit(&mut settle, &model, now) {
                prop_assert!(model.complete && !model.partner, "{model:?}", model = model.stamp);
                prop_assert!(now >= model.touched + QUIET);
            }
        }
        model.apply(&WriterAction::Partner(false), now);
        model.apply(&WriterAction::Finish, now);
        let done = now;
        let mut arrived = visit(&mut settle, &model, now);
        while !arrived {
            now = settle.next_inspection().unwrap_or(MonotonicTime::MAX);
            prop_assert!(now <= done + QUIET * 2, "not arrived at {now:?}, done at {done:?}");
            arrived = visit(&mut settle, &model, now);
        }
        prop_assert!(now >= done + QUIET);
    }
}
