//! Folders that a daemon watches: files come in every way that downloads do, and each is imported once.

use std::{
    fs::{self, File, Permissions},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use satchel_daemon::{
    config::Config,
    watch::{Pace, WatchSpec},
};
use satchel_proto::v1::{
    self, ImportStatus, SourceState, admin_service_client::AdminServiceClient,
    import_service_client::ImportServiceClient,
};
use satchel_tests::{
    archive::cache,
    daemon::Daemon,
    exports::{copy, pack, sample},
};
use tempfile::TempDir;

/// Longest time that anything may take on a machine that does other things too.
const PATIENCE: Duration = Duration::from_mins(2);
/// Between two looks at the daemon.
const LOOK: Duration = Duration::from_millis(20);

fn impatient() -> Pace {
    Pace {
        quiet: Duration::from_millis(60),
        rescan: Duration::from_millis(400),
        poll: Duration::from_millis(100),
        pulse: Duration::from_millis(100),
        retry: Duration::from_millis(100),
    }
}

/// A daemon and the folder that it watches.
struct Play {
    daemon: Daemon,
    downloads: PathBuf,
}

fn watching(config: &mut Config, downloads: &Path) {
    config.watching.active = true;
    config.watching.pace = impatient();
    config.watching.folders = vec![WatchSpec::of(downloads.to_owned())];
}

impl Play {
    async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("downloads"))?;
        Self::start_in(folder).await
    }

    async fn start_in(folder: TempDir) -> Result<Self> {
        let downloads = folder.path().join("downloads");
        let data = folder.path().join("data");
        if !data.exists() {
            // Compiling the importers anew for each test would take most of its time.
            fs::create_dir(&data)?;
            std::os::unix::fs::symlink(cache(), data.join("cache"))?;
        }
        let daemon = Daemon::start_with(folder, |config| watching(config, &downloads)).await?;
        Ok(Self { daemon, downloads })
    }

    async fn restart(self) -> Result<Self> {
        Self::start_in(self.daemon.stop().await?).await
    }

    fn at(&self, name: &str) -> PathBuf {
        self.downloads.join(name)
    }

    fn client(&self) -> ImportServiceClient<tonic::transport::Channel> {
        ImportServiceClient::new(self.daemon.channel.clone())
    }

    async fn source(&self) -> Result<v1::Source> {
        let sources = self.client().list_sources(v1::ListSourcesRequest {}).await?.into_inner().sources;
        sources.into_iter().next().context("a watched folder")
    }

    async fn imports(&self) -> Result<Vec<v1::Import>> {
        let mut all = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = v1::ListImportsRequest { page_size: 500, page_token, statuses: Vec::new() };
            let page = self.client().list_imports(request).await?.into_inner();
            all.extend(page.imports);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Waits until the folder stands as `wanted`.
    async fn until(&self, wanted: impl Fn(&v1::Source) -> bool) -> Result<v1::Source> {
        let end = Instant::now() + PATIENCE;
        loop {
            let source = self.source().await?;
            if source.scanned && wanted(&source) {
                return Ok(source);
            }
            if Instant::now() > end {
                bail!("it never came: {source:?}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until `count` files are imported and nothing is left to do.
    async fn imported(&self, count: u64) -> Result<v1::Source> {
        self.until(|source| source.imported == count && at_rest(source)).await
    }

    /// The daemon has looked at everything twice more since the call.
    async fn looks_again(&self) {
        tokio::time::sleep(impatient().rescan * 3).await;
    }

    /// Each import ended well, and there are `count`.
    async fn completed(&self, count: usize) -> Result<()> {
        let imports = self.imports().await?;
        let odd: Vec<_> = imports
            .iter()
            .filter(|import| import.status() != ImportStatus::Completed)
            .map(|import| (import.source.clone(), import.status(), import.reason.clone()))
            .collect();
        assert_eq!(odd, []);
        assert_eq!(imports.len(), count, "{:?}", imports.iter().map(|one| &one.source).collect::<Vec<_>>());
        Ok(())
    }

    async fn problems(&self) -> Result<Vec<v1::Problem>> {
        let mut admin = AdminServiceClient::new(self.daemon.channel.clone());
        Ok(admin.get_status(v1::GetStatusRequest {}).await?.into_inner().problems)
    }

    async fn conversations(&self) -> Result<u64> {
        let mut admin = AdminServiceClient::new(self.daemon.channel.clone());
        Ok(admin.get_stats(v1::GetStatsRequest {}).await?.into_inner().conversations)
    }
}

fn at_rest(source: &v1::Source) -> bool {
    source.reading.is_empty() && source.queued == 0 && source.waiting_total == 0
}

/// A ChatGPT export of one conversation; exports of other numbers hold others.
fn export(number: usize) -> Vec<u8> {
    let begin = 1_746_180_000 + 100 * number;
    let node = |id: &str, parent: Option<&str>, children: &[&str], role: &str, at: usize| {
        serde_json::json!({
            "id": id, "parent": parent, "children": children,
            "message": {
                "id": format!("{number}-{id}"), "author": {"role": role}, "create_time": begin + at,
                "content": {"content_type": "text", "parts": [format!("{id} of {number}")]},
                "status": "finished_successfully", "weight": 1.0, "metadata": {}, "recipient": "all",
            },
        })
    };
    let conversation = serde_json::json!({
        "title": format!("Conversation {number}"), "create_time": begin, "update_time": begin + 50,
        "conversation_id": format!("68148001-7a10-800f-9c51-{number:012}"), "current_node": "answer",
        "mapping": {
            "root": {"id": "root", "message": null, "parent": null, "children": ["question"]},
            "question": node("question", Some("root"), &["answer"], "user", 1),
            "answer": node("answer", Some("question"), &[], "assistant", 2),
        },
    });
    serde_json::to_vec(&[conversation]).unwrap_or_default()
}

/// The same as a ZIP.
fn zipped(number: usize) -> Result<Vec<u8>> {
    let (folder, place) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::write(folder.path().join("conversations.json"), export(number))?;
    let zip = place.path().join("export.zip");
    pack(folder.path(), &zip)?;
    Ok(fs::read(zip)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_and_what_lands_is_imported_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("downloads"))?;
    fs::write(folder.path().join("downloads/conversations-000.json"), export(0))?;
    let play = Play::start_in(folder).await?;
    play.imported(1).await?;
    fs::write(play.at("export.zip"), zipped(1)?)?;
    fs::create_dir_all(play.at("unpacked/inner"))?;
    fs::write(play.at("unpacked/inner/conversations.json"), export(2))?;
    fs::write(play.at("photo.jpg"), "\u{ff}\u{d8}")?;
    play.imported(3).await?;
    play.looks_again().await;
    play.completed(3).await?;
    let play = play.restart().await?;
    play.imported(3).await?;
    play.looks_again().await;
    play.completed(3).await?;
    assert_eq!(play.conversations().await?, 3);
    play.daemon.stop().await?;
    Ok(())
}

/// Brings an export into the folder in its own way.
type Arrival = fn(&Path, &[u8]) -> Result<()>;

fn pause() {
    // A writer takes its time; nothing depends on how long.
    std::thread::sleep(Duration::from_millis(25));
}

fn in_pieces(file: &mut File, bytes: &[u8]) -> Result<()> {
    for piece in bytes.chunks(bytes.len() / 8 + 1) {
        file.write_all(piece)?;
        file.flush()?;
        pause();
    }
    Ok(())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn under_another_name(path: &Path, bytes: &[u8], ending: &str) -> Result<()> {
    let on_the_way = beside(path, ending);
    in_pieces(&mut File::create(&on_the_way)?, bytes)?;
    pause();
    fs::rename(on_the_way, path)?;
    Ok(())
}

const ARRIVALS: [(&str, Arrival); 12] = [
    ("at once", |path, bytes| Ok(fs::write(path, bytes)?)),
    ("crdownload", |path, bytes| under_another_name(path, bytes, ".crdownload")),
    ("part", |path, bytes| {
        // Firefox keeps the name with an empty file.
        File::create(path)?;
        under_another_name(path, bytes, ".part")
    }),
    ("tmp", |path, bytes| under_another_name(path, bytes, ".tmp")),
    ("download folder", |path, bytes| {
        let folder = beside(path, ".download");
        fs::create_dir(&folder)?;
        let inner = folder.join(path.file_name().context("a name")?);
        in_pieces(&mut File::create(&inner)?, bytes)?;
        fs::rename(inner, path)?;
        Ok(fs::remove_dir(folder)?)
    }),
    ("grows", |path, bytes| in_pieces(&mut File::create(path)?, bytes)),
    ("preallocated", |path, bytes| {
        let mut file = File::create(path)?;
        file.write_all(&vec![0; bytes.len()])?;
        pause();
        pause();
        pause();
        pause();
        std::io::Seek::rewind(&mut file)?;
        in_pieces(&mut file, bytes)
    }),
    ("aria2", |path, bytes| {
        let control = beside(path, ".aria2");
        fs::write(&control, "control")?;
        let mut file = File::create(path)?;
        file.set_len(bytes.len() as u64)?;
        in_pieces(&mut file, bytes)?;
        Ok(fs::remove_file(control)?)
    }),
    ("renamed", |path, bytes| under_another_name(path, bytes, ".bin")),
    ("replaced", |path, bytes| {
        fs::write(path, &bytes[..bytes.len() / 2])?;
        pause();
        under_another_name(path, bytes, ".new")
    }),
    ("truncated and regrown", |path, bytes| {
        fs::write(path, &bytes[..bytes.len() / 2])?;
        pause();
        let mut file = File::create(path)?;
        pause();
        in_pieces(&mut file, bytes)
    }),
    ("hidden by rsync", |path, bytes| {
        let name = path.file_name().and_then(|name| name.to_str()).context("a name")?;
        let on_the_way = path.with_file_name(format!(".{name}.Xy12Ab"));
        in_pieces(&mut File::create(&on_the_way)?, bytes)?;
        Ok(fs::rename(on_the_way, path)?)
    }),
];

#[tokio::test(flavor = "multi_thread")]
async fn downloads_of_every_kind_are_imported_once_and_whole() -> Result<()> {
    let play = Play::start().await?;
    let mut count = 0;
    for (_, arrival) in ARRIVALS {
        for (ending, bytes) in [("zip", zipped(count)?), ("json", export(count + 1))] {
            // Pieces of JSON end in no bracket, those of a ZIP have no directory.
            let path = play.at(&format!("conversations-{count:03}.{ending}"));
            tokio::task::spawn_blocking(move || arrival(&path, &bytes)).await??;
            count += 1;
        }
        count += 1;
    }
    let files = 2 * ARRIVALS.len();
    play.imported(files as u64).await?;
    play.looks_again().await;
    play.completed(files).await?;
    assert_eq!(play.conversations().await?, files as u64);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_download_waits_and_says_so() -> Result<()> {
    let play = Play::start().await?;
    let bytes = zipped(1)?;
    fs::write(play.at("export.zip"), &bytes[..bytes.len() - 30])?;
    fs::write(play.at("other.zip.crdownload"), "x")?;
    let source = play
        .until(|source| source.waiting_total == 2 && source.waiting[0].reason.starts_with("unfinished"))
        .await?;
    assert!(source.waiting[1].reason.contains("download is in progress"), "{source:?}");
    play.looks_again().await;
    play.completed(0).await?;
    fs::write(play.at("export.zip"), &bytes)?;
    fs::remove_file(play.at("other.zip.crdownload"))?;
    play.imported(1).await?;
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_stay_as_they_are() -> Result<()> {
    let play = Play::start().await?;
    fs::write(play.at("conversations.json"), export(1))?;
    fs::write(play.at("notes.txt"), "not an export")?;
    let stamp = |name: &str| -> Result<_> {
        let meta = fs::metadata(play.at(name))?;
        Ok((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.mode(), meta.nlink()))
    };
    let before = [stamp("conversations.json")?, stamp("notes.txt")?];
    play.until(|source| source.imported == 1 && source.unrecognized == 1 && at_rest(source)).await?;
    assert_eq!([stamp("conversations.json")?, stamp("notes.txt")?], before);
    assert_eq!(fs::read(play.at("conversations.json"))?, export(1));
    assert_eq!(fs::read_dir(&play.downloads)?.count(), 2);
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_under_another_name_are_not_read_again() -> Result<()> {
    let play = Play::start().await?;
    fs::write(play.at("a.json"), export(1))?;
    play.imported(1).await?;
    fs::copy(play.at("a.json"), play.at("a (1).json"))?;
    play.imported(2).await?;
    fs::rename(play.at("a.json"), play.at("b.json"))?;
    play.looks_again().await;
    play.imported(2).await?;
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_shown_and_imported_when_it_is_mended() -> Result<()> {
    let play = Play::start().await?;
    let bytes = zipped(1)?;
    let mut damaged = bytes.clone();
    // In the packed bytes: the directory is whole.
    damaged[60] ^= 0xff;
    fs::write(play.at("export.zip"), damaged)?;
    let source = play.until(|source| source.failed_total == 1 && at_rest(source)).await?;
    assert!(!source.failed[0].reason.is_empty());
    let problems = play.problems().await?;
    assert!(problems.iter().any(|one| one.reason == "SOURCE_FAILED" && one.message.contains("export.zip")));
    fs::write(play.at("export.zip"), bytes)?;
    play.imported(1).await?;
    assert_eq!(play.problems().await?, []);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_a_problem_until_it_may() -> Result<()> {
    if rustix::process::geteuid().is_root() {
        // To the superuser nothing is closed; `folder::tests` has it with a disk that refuses.
        return Ok(());
    }
    let play = Play::start().await?;
    fs::write(play.at("closed.json"), export(1))?;
    fs::set_permissions(play.at("closed.json"), Permissions::from_mode(0o000))?;
    fs::write(play.at("open.json"), export(2))?;
    play.until(|source| source.imported == 1).await?;
    let end = Instant::now() + PATIENCE;
    while !play.problems().await?.iter().any(|problem| problem.message.contains("closed.json")) {
        assert!(Instant::now() < end, "{:?}", play.source().await?);
        tokio::time::sleep(LOOK).await;
    }
    fs::set_permissions(play.at("closed.json"), Permissions::from_mode(0o600))?;
    play.imported(2).await?;
    assert_eq!(play.problems().await?, []);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_goes_is_picked_up_when_it_is_back() -> Result<()> {
    let play = Play::start().await?;
    fs::write(play.at("a.json"), export(1))?;
    play.imported(1).await?;
    let away = play.downloads.with_file_name("away");
    fs::rename(&play.downloads, &away)?;
    play.until(|source| source.state() == SourceState::Broken).await?;
    let problems = play.problems().await?;
    assert!(
        problems[0].message.contains("is not there") && problems[0].fix.contains("mount"),
        "{problems:?}"
    );
    fs::write(away.join("b.json"), export(2))?;
    fs::rename(&away, &play.downloads)?;
    play.imported(2).await?;
    play.completed(2).await?;
    assert_eq!(play.problems().await?, []);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_added_and_removed_at_run_time_and_kept() -> Result<()> {
    let play = Play::start().await?;
    let more = play.daemon.folder.path().join("more");
    fs::create_dir(&more)?;
    fs::write(more.join("a.json"), export(1))?;
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let add = |path: String| async { play.client().add_source(v1::AddSourceRequest { path }).await };
    assert!(add(path(&more)).await?.into_inner().added);
    assert!(!add(path(&more)).await?.into_inner().added);
    for (folder, code) in [
        (path(&play.daemon.folder.path().join("absent")), tonic::Code::InvalidArgument),
        (path(play.daemon.folder.path()), tonic::Code::FailedPrecondition),
        ("relative".to_owned(), tonic::Code::InvalidArgument),
    ] {
        assert_eq!(add(folder).await.err().map(|status| status.code()), Some(code));
    }
    let remove = |path: String| v1::RemoveSourceRequest { path };
    let refused = play.client().remove_source(remove(path(&play.downloads))).await;
    assert_eq!(refused.err().map(|status| status.code()), Some(tonic::Code::FailedPrecondition));
    let play = play.restart().await?;
    let end = Instant::now() + PATIENCE;
    while play.conversations().await? < 1 {
        assert!(Instant::now() < end);
        tokio::time::sleep(LOOK).await;
    }
    play.client().remove_source(remove(path(&more))).await?;
    let missing = play.client().remove_source(remove(path(&more))).await;
    assert_eq!(missing.err().map(|status| status.code()), Some(tonic::Code::NotFound));
    let play = play.restart().await?;
    let sources = play.client().list_sources(v1::ListSourcesRequest {}).await?.into_inner().sources;
    assert_eq!(sources.len(), 1);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_restarts_among_twenty_exports_imports_each_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let downloads = folder.path().join("downloads");
    fs::create_dir(&downloads)?;
    for number in 0..20 {
        fs::write(downloads.join(format!("conversations-{number:03}.json")), export(number))?;
    }
    let mut play = Play::start_in(folder).await?;
    for seen in [1, 4, 9] {
        play.until(|source| source.imported >= seen).await?;
        play = play.restart().await?;
    }
    play.imported(20).await?;
    let imports = play.imports().await?;
    let completed = imports.iter().filter(|import| import.status() == ImportStatus::Completed).count();
    assert_eq!((completed, play.conversations().await?), (20, 20));
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_arrive_one_by_one_end_as_if_they_had_come_together() -> Result<()> {
    let batch = sample("claude", "batched-archives");
    let together = Play::start().await?;
    copy(&batch, &together.at("together"))?;
    together.imported(1).await?;
    let all = counts(&together).await?;
    assert!(all.0 > 0 && all.1 > 0, "{all:?}");
    let apart = Play::start().await?;
    let place = tempfile::tempdir()?;
    copy(&batch, place.path())?;
    let parts = ["memories-000.zip", "light_metadata-000.zip", "conversations-000.zip"];
    for part in parts {
        fs::copy(place.path().join(part), apart.at(part))?;
        let done = |source: &v1::Source| source.imported + source.unrecognized;
        let before = done(&apart.source().await?);
        apart.until(|source| done(source) > before && at_rest(source)).await?;
    }
    assert_eq!(counts(&apart).await?, all);
    together.daemon.stop().await?;
    apart.daemon.stop().await?;
    Ok(())
}

async fn counts(play: &Play) -> Result<(u64, u64)> {
    let mut admin = AdminServiceClient::new(play.daemon.channel.clone());
    let stats = admin.get_stats(v1::GetStatsRequest {}).await?.into_inner();
    Ok((stats.conversations, stats.memories))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_does_not_wait_behind_a_flood() -> Result<()> {
    let play = Play::start().await?;
    let flood = 1_000;
    for number in 0..flood {
        fs::write(play.at(&format!("conversations-{number:03}.json")), export(number))?;
    }
    play.until(|source| source.imported > 0).await?;
    let own = play.daemon.folder.path().join("own.json");
    fs::write(&own, export(9_999))?;
    let job = play.daemon.import(&own).await?;
    assert_eq!(job.imports[0].status(), ImportStatus::Completed);
    let behind = play.source().await?;
    assert!(behind.imported < flood as u64, "the flood was over first: {behind:?}");
    play.imported(flood as u64).await?;
    play.completed(flood + 1).await?;
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_folder_is_seen_in_the_history_and_can_be_cancelled() -> Result<()> {
    let play = Play::start().await?;
    for number in 0..40 {
        fs::write(play.at(&format!("conversations-{number:03}.json")), export(number))?;
    }
    // The last of those that were handed on has not begun.
    let end = Instant::now() + PATIENCE;
    let mut cancelled = None;
    while cancelled.is_none() {
        assert!(Instant::now() < end, "{:?}", play.source().await?);
        let Some(item) = play.source().await?.reading.pop() else { continue };
        let job = play.client().cancel_import(v1::CancelImportRequest { id: item.job_id }).await;
        let begun = Instant::now();
        let Some(job) = job.ok().and_then(|answer| answer.into_inner().job) else { continue };
        let watch = v1::WatchImportRequest { id: job.id, min_interval: None };
        let mut views = play.client().watch_import(watch).await?.into_inner();
        let mut last = None;
        while let Some(view) = views.message().await? {
            last = view.job;
        }
        let state = last.context("the job's end")?.state();
        if state == v1::JobState::Cancelled {
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
            cancelled = Some(item.name);
        }
    }
    play.until(at_rest).await?;
    play.looks_again().await;
    let imports = play.imports().await?;
    let of = |status: ImportStatus| imports.iter().filter(|import| import.status() == status).count();
    assert!(of(ImportStatus::Cancelled) >= 1);
    assert_eq!(of(ImportStatus::Cancelled) + of(ImportStatus::Completed), 40);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_out_of_the_folder_is_not_followed() -> Result<()> {
    let play = Play::start().await?;
    let out = play.daemon.folder.path().join("out");
    fs::create_dir(&out)?;
    fs::write(out.join("secret.json"), export(7))?;
    std::os::unix::fs::symlink(out.join("secret.json"), play.at("secret.json"))?;
    std::os::unix::fs::symlink(&out, play.at("out"))?;
    fs::write(play.at("mine.json"), export(8))?;
    play.imported(1).await?;
    play.looks_again().await;
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_no_text_are_imported_and_shown_escaped() -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let play = Play::start().await?;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9\n.zip");
    let bytes = zipped(1)?;
    fs::write(play.downloads.join(name), &bytes[..bytes.len() - 20])?;
    let source = play.until(|source| source.waiting_total == 1).await?;
    assert_eq!(source.waiting[0].name, "caf\\xe9\n.zip");
    fs::write(play.downloads.join(name), &bytes)?;
    play.imported(1).await?;
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}
