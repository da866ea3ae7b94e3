//! A folder with made-up time, disk and imports: every way in which files come, fail and go.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use super::{course::MAX_TRIES, *};
use crate::watch::{
    events::{Deaf, Hints},
    memory::{Known, Verdict},
    queue::{Outcome, Refused},
    settle::Hold,
};

/// All that the machine sees, in the hands of a test.
#[derive(Default)]
struct World {
    now: Moment,
    files: BTreeMap<OsString, File>,
    /// The folder itself cannot be read.
    down: Option<io::ErrorKind>,
    volume: u64,
    silent: bool,
    limit: Option<Deaf>,
    listening: Vec<PathBuf>,
    started: Vec<String>,
    refuse: Option<Refused>,
    kept: HashMap<OsString, Known>,
    /// On which volume.
    kept_on: HashMap<OsString, u64>,
    /// Names whose looks fail, as a share's do whose server lost them.
    stale: BTreeSet<OsString>,
    importers: String,
    looks: usize,
}

#[derive(Clone)]
struct File {
    stamp: Stamp,
    hold: Option<Hold>,
    whole: bool,
    denied: bool,
    folders: Vec<PathBuf>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<World>>);

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

impl Disk for Shared {
    fn identity(&self) -> io::Result<(u64, u64)> {
        let world = self.world();
        world.down.map_or(Ok((1, world.volume)), |kind| Err(kind.into()))
    }

    fn tells(&self) -> bool {
        !self.world().silent
    }

    fn list(&self) -> io::Result<(Vec<OsString>, bool)> {
        let world = self.world();
        world.down.map_or_else(|| Ok((world.files.keys().cloned().collect(), false)), |kind| Err(kind.into()))
    }

    fn look(&self, name: &OsStr) -> io::Result<Sight> {
        let mut world = self.world();
        world.looks += 1;
        if let Some(kind) = world.down {
            return Err(kind.into());
        }
        if world.stale.contains(name) {
            return Err(io::ErrorKind::StaleNetworkFileHandle.into());
        }
        let Some(file) = world.files.get(name) else { return Ok(Sight::default()) };
        let look = Look { stamp: file.stamp, hold: file.hold.clone(), took: Duration::ZERO };
        Ok(Sight { look: Some(look), folders: file.folders.clone() })
    }

    fn whole(&self, name: &OsStr) -> io::Result<Result<(), String>> {
        let world = self.world();
        match world.files.get(name) {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(file) if file.denied => Err(io::ErrorKind::PermissionDenied.into()),
            Some(file) if file.whole => Ok(Ok(())),
            Some(_) => Ok(Err("the directory at the end of the ZIP cannot be read".to_owned())),
        }
    }
}

impl Hints for Shared {
    fn watch(&mut self, folder: &Path) -> Result<(), Deaf> {
        let mut world = self.world();
        if let Some(limit) = world.limit.clone() {
            return Err(limit);
        }
        world.listening.push(folder.to_owned());
        Ok(())
    }

    fn forget(&mut self, folder: &Path) {
        self.world().listening.retain(|one| one != folder);
    }
}

impl Queue for Shared {
    fn start(&self, name: &OsStr) -> Result<String, Refused> {
        let mut world = self.world();
        if let Some(refused) = &world.refuse {
            return Err(refused.clone());
        }
        world.started.push(name.to_string_lossy().into_owned());
        Ok("job".to_owned())
    }

    fn importers(&self) -> String {
        self.world().importers.clone()
    }
}

impl Memory for Shared {
    fn recall(&self, name: &OsStr) -> Option<Known> {
        self.world().kept.get(name).cloned()
    }

    fn keep(&self, name: &OsStr, known: &Known) {
        let mut world = self.world();
        let volume = world.volume;
        world.kept.insert(name.to_owned(), known.clone());
        world.kept_on.insert(name.to_owned(), volume);
    }

    fn keep_only(&self, folder: u64, there: &dyn Fn(&OsStr) -> bool) {
        let World { kept, kept_on, .. } = &mut *self.world();
        kept.retain(|name, _| kept_on.get(name) != Some(&folder) || there(name));
    }
}

/// The machine and its world.
struct Play {
    shared: Shared,
    folder: Folder,
}

impl Play {
    fn new() -> Self {
        Self::on(Shared::default(), false)
    }

    fn on(shared: Shared, poll: bool) -> Self {
        let (listen, clock) = (shared.clone(), shared.clone());
        let parts = Parts {
            root: "/r".into(),
            pace: Pace::default(),
            poll,
            disk: Box::new(shared.clone()),
            listen: Box::new(move || match listen.world().limit.clone() {
                Some(Deaf::Watchers) => Err(Deaf::Watchers),
                _ => Ok(Box::new(listen.clone())),
            }),
            queue: Box::new(shared.clone()),
            memory: Box::new(shared.clone()),
            wall: Box::new(|| 0),
            clock: Box::new(move || clock.world().now),
            stopping: Box::new(|| false),
        };
        Self { shared, folder: Folder::new(parts) }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }

    fn put(&self, name: &str, modified: i64) {
        let stamp = Stamp { bytes: 5, modified, inode: 1, below: 0 };
        let file = File { stamp, hold: None, whole: true, denied: false, folders: Vec::new() };
        self.world().files.insert(name.into(), file);
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut File)) {
        change(self.world().files.get_mut(OsStr::new(name)).unwrap());
    }

    /// Lets time go on, with a step whenever one is due; the system tells of nothing.
    fn pass(&mut self, time: Duration) {
        let end = self.world().now + time;
        loop {
            self.folder.step(Pending::default());
            let next = self.folder.next();
            let mut world = self.world();
            if next > end {
                world.now = end;
                return;
            }
            assert!(next > world.now || world.looks < 1_000_000, "it turns in a circle");
            world.now = world.now.max(next);
        }
    }

    fn seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    fn told(&mut self, name: &str) {
        let names = BTreeSet::from([name.into()]);
        self.folder.step(Pending { names, ..Pending::default() });
    }

    fn ended(&mut self, name: &str, outcome: Outcome) {
        let ended = vec![(name.into(), outcome)];
        self.folder.step(Pending { ended, ..Pending::default() });
    }

    fn started(&self) -> Vec<String> {
        std::mem::take(&mut self.world().started)
    }
}

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
    // Another volume in its place, without a word.
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
    // While nobody looked.
    play.world().files.remove(OsStr::new("b.zip"));
    let mut again = Play::on(play.shared.clone(), false);
    again.seconds(5);
    assert_eq!((kept(&again), again.started()), (vec![OsString::from("a.zip")], Vec::new()));
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
    // Their bytes are compared by the import, which finds nothing new.
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
        play.world().kept.insert(name, Known { stamp, verdict: Verdict::Imported, at: 0, place: None });
    }
    play.seconds(5);
    let before = play.world().looks;
    play.seconds(1_200);
    assert_eq!(play.world().looks - before, 20_000);
    assert_eq!((play.started(), play.folder.view().imported), (Vec::new(), 10_000));
}
