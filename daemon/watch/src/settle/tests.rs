//! Tests of files that arrive in every way that downloads do, with simulated time.

use proptest::{collection::vec, prelude::*};

use super::*;

const QUIET: Duration = Duration::from_secs(3);
const NAME: &str = "export.zip";

fn at(seconds: u64) -> Moment {
    Moment::from_secs(seconds)
}

fn stamp(bytes: u64, modified: i64, inode: u64) -> Stamp {
    Stamp { bytes, modified, inode, below: 0 }
}

fn look(stamp: Stamp) -> Look {
    Look { stamp, hold: None, took: Duration::ZERO }
}

fn held(stamp: Stamp, hold: Hold) -> Look {
    Look { hold: Some(hold), ..look(stamp) }
}

struct One(Settle);

impl One {
    fn new() -> Self {
        Self(Settle::new(QUIET))
    }

    fn look(&mut self, seconds: u64, look: Look) -> Step {
        self.0.look(OsStr::new(NAME), look, at(seconds))
    }

    /// Inspects the file, and if that asks for it checks the end.
    fn arrives(&mut self, seconds: u64, seen: Look, whole: bool) -> bool {
        let end = if whole { Ok(()) } else { Err("the end is missing".to_owned()) };
        self.look(seconds, seen.clone()) == Step::Check
            && self.0.checked(OsStr::new(NAME), &seen, end, at(seconds))
    }

    fn wait(&self) -> Option<Wait> {
        self.0.waiting().next().map(|(_, wait)| wait.clone())
    }
}

#[test]
fn a_file_that_is_there_arrives_after_the_quiet_time() {
    let mut one = One::new();
    let seen = look(stamp(5, 1, 1));
    assert!(!one.arrives(0, seen.clone(), true));
    assert!(!one.arrives(2, seen.clone(), true));
    assert!(one.arrives(3, seen, true));
    assert_eq!(one.0.len(), 0);
}

#[test]
fn a_file_that_grows_a_byte_at_a_time_waits() {
    let mut one = One::new();
    for second in 0..100 {
        assert!(!one.arrives(second, look(stamp(second, i64::try_from(second).unwrap_or(0), 1)), true));
    }
    let end = look(stamp(99, 99, 1));
    assert!(!one.arrives(100, end.clone(), true));
    assert!(one.arrives(102, end, true));
}

#[test]
fn a_file_that_was_set_aside_whole_waits_for_its_end() {
    let mut one = One::new();
    let seen = look(stamp(1_000, 1, 1));
    for second in 0..60 {
        assert!(!one.arrives(second, seen.clone(), false));
    }
    assert!(matches!(one.wait(), Some(Wait::Unfinished(_))));
    let written = look(stamp(1_000, 60, 1));
    assert!(!one.arrives(61, written.clone(), true));
    assert!(one.arrives(64, written, true));
}

#[test]
fn a_file_that_is_replaced_settles_anew() {
    let mut one = One::new();
    assert!(!one.arrives(0, look(stamp(5, 1, 1)), true));
    assert!(!one.arrives(3, look(stamp(5, 1, 2)), true));
    assert!(!one.arrives(5, look(stamp(5, 1, 2)), true));
    assert!(one.arrives(6, look(stamp(5, 1, 2)), true));
}

#[test]
fn a_file_that_is_cut_and_grows_again_settles_anew() {
    let mut one = One::new();
    for (second, bytes) in [(0, 900), (2, 0), (3, 10), (5, 400), (7, 900)] {
        let modified = i64::try_from(second).unwrap_or(0);
        assert!(!one.arrives(second, look(stamp(bytes, modified, 1)), true));
    }
    assert!(one.arrives(10, look(stamp(900, 7, 1)), true));
}

#[test]
fn a_file_that_changes_while_its_end_is_looked_at_settles_anew() {
    let mut one = One::new();
    one.look(0, look(stamp(5, 1, 1)));
    assert_eq!(one.look(3, look(stamp(5, 1, 1))), Step::Check);
    assert!(!one.0.checked(OsStr::new(NAME), &look(stamp(6, 2, 1)), Ok(()), at(3)));
    assert_eq!(one.look(4, look(stamp(6, 2, 1))), Step::Wait);
    assert!(one.arrives(6, look(stamp(6, 2, 1)), true));
}

#[test]
fn an_unfinished_name_never_arrives() {
    let mut one = One::new();
    for second in 0..10_000 {
        assert!(!one.arrives(second, held(stamp(5, 1, 1), Hold::Name), true));
    }
    assert_eq!(one.wait(), Some(Wait::Downloading));
}

#[test]
fn a_partner_holds_a_file_and_its_end_lets_it_settle() {
    let mut one = One::new();
    let partner = |bytes| held(stamp(5, 1, 1), Hold::Partner(stamp(bytes, 1, 9)));
    for second in 0..100 {
        assert!(!one.arrives(second, partner(second), true));
    }
    assert!(!one.arrives(100, look(stamp(5, 1, 1)), true));
    assert!(!one.arrives(102, look(stamp(5, 1, 1)), true));
    assert!(one.arrives(103, look(stamp(5, 1, 1)), true));
}

#[test]
fn a_partner_that_a_dead_browser_left_is_not_believed_for_ever() {
    let mut one = One::new();
    let seen = held(stamp(5, 1, 1), Hold::Partner(stamp(7, 1, 9)));
    assert!(!one.arrives(0, seen.clone(), true));
    assert!(!one.arrives(599, seen.clone(), true));
    assert!(one.arrives(600, seen, true));
}

#[test]
fn an_empty_file_waits_for_its_content() {
    let mut one = One::new();
    for second in 0..1_000 {
        assert!(!one.arrives(second, held(stamp(0, 1, 1), Hold::Empty), true));
    }
    assert_eq!(one.wait(), Some(Wait::Empty));
    assert!(!one.arrives(1_000, look(stamp(5, 2, 1)), true));
    assert!(one.arrives(1_003, look(stamp(5, 2, 1)), true));
}

#[test]
fn what_does_not_change_is_looked_at_ever_more_rarely() {
    let mut one = One::new();
    let (mut looks, mut now) = (0, at(0));
    while now < Duration::from_hours(1) {
        one.0.look(OsStr::new(NAME), held(stamp(5, 1, 1), Hold::Name), now);
        looks += 1;
        now = one.0.next().unwrap_or(Moment::MAX);
    }
    assert!((60..70).contains(&looks), "{looks} looks in an hour");
}

#[test]
fn a_look_that_takes_long_is_not_repeated_at_once() {
    let mut one = One::new();
    let slow = Look { took: Duration::from_secs(2), ..look(stamp(5, 1, 1)) };
    one.look(0, slow);
    assert_eq!(one.0.next(), Some(at(40)));
}

#[test]
fn an_event_brings_the_next_look_forward_but_not_without_end() {
    let mut one = One::new();
    one.look(0, held(stamp(5, 1, 1), Hold::Name));
    one.look(100, held(stamp(5, 1, 1), Hold::Name));
    assert!(one.0.touched(OsStr::new(NAME), Duration::from_millis(100_100)));
    assert_eq!(one.0.next(), Some(at(101)));
    assert!(!one.0.touched(OsStr::new("other"), at(0)));
}

/// An action of a writer between two inspections.
#[derive(Clone, Debug)]
enum Act {
    Nothing,
    Append(u8),
    Cut,
    Replace,
    Touch,
    Partner(bool),
    Finish,
}

fn acts() -> impl Strategy<Value = Vec<(Act, u8)>> {
    let act = prop_oneof![
        4 => Just(Act::Nothing),
        2 => any::<u8>().prop_map(Act::Append),
        1 => Just(Act::Cut),
        1 => Just(Act::Replace),
        1 => Just(Act::Touch),
        1 => any::<bool>().prop_map(Act::Partner),
        1 => Just(Act::Finish),
    ];
    vec((act, 0_u8..5), 0..80)
}

/// A file as the writer left it, and when it was last touched.
struct Model {
    stamp: Stamp,
    partner: bool,
    whole: bool,
    touched: Moment,
}

impl Model {
    fn act(&mut self, act: &Act, now: Moment) {
        let before = (self.stamp, self.partner);
        match act {
            Act::Nothing => {}
            Act::Append(bytes) => {
                (self.stamp.bytes, self.whole) = (self.stamp.bytes + u64::from(*bytes) + 1, false);
            }
            Act::Cut => (self.stamp.bytes, self.whole) = (1, false),
            Act::Replace => (self.stamp.inode, self.whole) = (self.stamp.inode + 1, false),
            Act::Touch => {}
            Act::Partner(there) => self.partner = *there,
            Act::Finish => (self.stamp.bytes, self.whole) = (self.stamp.bytes + 1, true),
        }
        if matches!(act, Act::Touch) || (self.stamp, self.partner) != before {
            if self.partner == before.1 {
                self.stamp.modified += 1;
            }
            self.touched = now;
        }
    }

    fn look(&self) -> Look {
        let hold = self.partner.then_some(Hold::Partner(stamp(1, 1, 99)));
        Look { stamp: self.stamp, hold, took: Duration::ZERO }
    }
}

proptest! {
    /// Regardless of how it is written and when it is inspected, a file that arrives is complete, has no partner, and
    /// was quiet. Once the writer is done, the file does arrive, within the time that the inspections take.
    #[test]
    fn only_whole_and_quiet_files_arrive_and_all_of_them_do(acts in acts()) {
        let mut settle = Settle::new(QUIET);
        let name = OsStr::new(NAME);
        let mut model = Model { stamp: stamp(1, 0, 1), partner: false, whole: false, touched: at(0) };
        let mut now = at(0);
        let visit = |settle: &mut Settle, model: &Model, now: Moment| {
            let end = if model.whole { Ok(()) } else { Err(String::new()) };
            settle.look(name, model.look(), now) == Step::Check && settle.checked(name, &model.look(), end, now)
        };
        for (act, pause) in &acts {
            model.act(act, now);
            now += Duration::from_secs(u64::from(*pause));
            if visit(&mut settle, &model, now) {
                prop_assert!(model.whole && !model.partner, "{model:?}", model = model.stamp);
                prop_assert!(now >= model.touched + QUIET);
            }
        }
        model.act(&Act::Partner(false), now);
        model.act(&Act::Finish, now);
        let done = now;
        let mut arrived = visit(&mut settle, &model, now);
        while !arrived {
            now = settle.next().unwrap_or(Moment::MAX);
            prop_assert!(now <= done + QUIET * 2, "not arrived at {now:?}, done at {done:?}");
            arrived = visit(&mut settle, &model, now);
        }
        prop_assert!(now >= done + QUIET);
    }
}
