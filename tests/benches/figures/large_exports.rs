//! Exports of many gigabytes: what they cost, whether other imports continue meanwhile, how fast they stop.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use satchel_proto::v1::{Operation, OperationPhase, OperationState};
use satchel_tests::generate::{self, Rng};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::{
    client::{Client, FollowedJob},
    daily::import,
    print_line,
    process::{DaemonProcess, satchel_program},
    setting,
};

/// Size in MB of the single `conversations.json`.
const JSON_MB: u64 = 2_000;
/// Size in MB of the archive: one tenth conversations, the rest pictures.
const ZIP_MB: u64 = 5_000;
/// Size in MB of one file with conversations in the archive.
const SHARD_MB: u64 = 100;
/// Size of a picture in bytes.
const PICTURE_BYTES: usize = 450_000;
/// Prefix of a picture's id in a conversation.
const FILE_POINTER: &str = "sediment://";
/// Length of such an id.
const FILE_ID_LENGTH: usize = "file_00000000-0000-4000-8000-000000000000".len();
/// Pause between two imports of the other client.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) fn all(folder: &Path, _: u64) -> Result<()> {
    let megabytes = setting("SATCHEL_BENCH_JSON_MB", JSON_MB);
    let export = folder.join("huge");
    generate::chatgpt(&export, megabytes * 1_000_000, 11)?;
    measure_import(
        &format!("conversations.json of {megabytes} MB"),
        &export.join("conversations.json"),
        folder,
    )?;
    fs::remove_dir_all(&export)?;
    let megabytes = setting("SATCHEL_BENCH_ZIP_MB", ZIP_MB);
    let export = folder.join("huge.zip");
    write_zip_export(&export, megabytes * 1_000_000, folder)?;
    measure_import(&format!("ZIP of {megabytes} MB"), &export, folder)?;
    Ok(fs::remove_file(&export)?)
}

/// Writes an export as a ZIP: compressed conversations in shards, and the incompressible pictures that they reference.
fn write_zip_export(path: &Path, bytes: u64, scratch: &Path) -> Result<()> {
    let mut zip = ZipWriter::new(BufWriter::with_capacity(1 << 20, File::create(path)?));
    let (packed, shards) = (SimpleFileOptions::default(), (bytes / 10_000_000 / SHARD_MB).max(1));
    let (made, mut names) = (scratch.join("shard"), Vec::new());
    for shard in 0..shards {
        generate::chatgpt(&made, SHARD_MB * 1_000_000, 100 + shard)?;
        let text = fs::read_to_string(made.join("conversations.json"))?;
        zip.start_file(format!("conversations-{shard:03}.json"), packed)?;
        zip.write_all(text.as_bytes())?;
        names.extend(
            text.split(FILE_POINTER).skip(1).filter_map(|rest| Some(rest.get(..FILE_ID_LENGTH)?.to_owned())),
        );
    }
    let mut rng = Rng::new(12);
    let stored = packed.compression_method(CompressionMethod::Stored);
    let mut picture = Vec::with_capacity(PICTURE_BYTES);
    for name in names.iter().take(usize::try_from(bytes / 10 * 9)? / PICTURE_BYTES) {
        picture.clear();
        picture.extend(b"\x89PNG\r\n\x1a\n");
        while picture.len() < PICTURE_BYTES {
            picture.extend(rng.next_u64().to_le_bytes());
        }
        zip.start_file(format!("{name}-photo.png"), stored)?;
        zip.write_all(&picture)?;
    }
    zip.finish()?.flush()?;
    Ok(fs::remove_dir_all(&made)?)
}

/// Imports the export, after one attempt that was cancelled on the way, while another client imports small exports.
fn measure_import(label: &str, export: &Path, scratch: &Path) -> Result<()> {
    let program = satchel_program()?;
    let data = scratch.join("heavy");
    let daemon = DaemonProcess::start(&program, &data)?;
    let client = Client::connect(&data)?;
    // Compiles the importers, so that this is not part of the measurement.
    import(&program, &data, &write_small_export(scratch, 0)?)?;
    let memory = daemon.memory();
    let stopped = cancel_in_phase(&client, export, OperationPhase::Reading)?;
    let over = AtomicBool::new(false);
    let (followed, others) = thread::scope(|scope| {
        let others = scope.spawn(|| import_small_exports(&program, &data, scratch, &over));
        let followed = import_all(&client, export);
        over.store(true, Ordering::Relaxed);
        let others = others.join().map_err(|_| anyhow::anyhow!("the other imports panicked"))??;
        anyhow::Ok((followed?, others))
    })?;
    let peak = memory.peak()?;
    let (silence, phase) = followed.longest_stall;
    #[expect(clippy::cast_precision_loss, reason = "a size")]
    let rate = fs::metadata(export)?.len() as f64 / 1e6 / followed.seconds;
    print_line(&format!(
        "{label}: {:.1} s, {rate:.0} MB/s, private memory at most {peak} MiB, {} MiB afterwards; longest stall {silence:.2} s ({}); \
         cancelled within {stopped:.2} s; {} small imports of others meanwhile, each within {:.2} s",
        followed.seconds,
        daemon.private_mib()?,
        phase.as_str_name(),
        others.len(),
        others.iter().copied().fold(0.0, f64::max)
    ));
    drop(daemon);
    Ok(fs::remove_dir_all(&data)?)
}

fn import_all(client: &Client, export: &Path) -> Result<FollowedJob> {
    let followed = client.follow(&client.start_import(export)?, |_| false)?;
    ensure!(followed.job.state() == OperationState::Succeeded, "{:?}", followed.job);
    Ok(followed)
}

/// Cancels an import when it is well into `phase`; returns the seconds from the cancel request to the end of the job.
fn cancel_in_phase(client: &Client, export: &Path, phase: OperationPhase) -> Result<f64> {
    let job = client.start_import(export)?;
    let well_in = |job: &Operation| {
        job.progress.is_some_and(|at| at.phase() == phase && at.bytes_done > at.bytes_total.unwrap_or(0) / 10)
    };
    client.follow(&job, well_in)?;
    let asked = Instant::now();
    client.cancel(&job)?;
    let followed = client.follow(&job, |_| false)?;
    ensure!(followed.job.state() == OperationState::Cancelled, "{:?}", followed.job);
    Ok(asked.elapsed().as_secs_f64())
}

/// Imports small exports one after the other until `over` is set; returns the seconds of each.
fn import_small_exports(
    program: &PathBuf,
    data: &Path,
    scratch: &Path,
    over: &AtomicBool,
) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for number in 1.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let (seconds, receipt) = import(program, data, &write_small_export(scratch, number)?)?;
        ensure!(receipt["conversations"]["new"].as_u64() > Some(0), "nothing was new: {receipt}");
        times.push(seconds);
        thread::sleep(PAUSE);
    }
    Ok(times)
}

/// Writes a small export for the other client.
fn write_small_export(scratch: &Path, number: u64) -> Result<PathBuf> {
    let folder = scratch.join("own");
    generate::claude(&folder, 200_000, 500 + number)?;
    Ok(folder)
}
