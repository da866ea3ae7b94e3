//! One importer alone, from the bytes of files to typed records on the host, compared with native readers of the same
//! bytes.

use std::{ffi::OsString, path::Path, sync::Arc, time::Instant};

use anyhow::{Context as _, Result, ensure};
use satchel_host::{CodeCache, Emitted, Host, HostOptions, PluginLimits, SinkVerdict};
use satchel_source::{CancelToken, Limits as IntakeLimits, Source};

use crate::{RUNS, median, megabytes, native_readers::NativeReader, print_line, process};

/// The argument with which this program runs one importer and nothing else, so that its memory can be measured.
pub(crate) const IMPORTER_ARGUMENT: &str = "--importer";

/// Prints the ratio of the importer to its native peers, measured in alternating runs, and its private memory.
pub(crate) fn measure(
    provider: &str,
    peers: &[(&'static str, NativeReader)],
    folder: &Path,
    cache: &Path,
) -> Result<()> {
    let size = megabytes(folder)?;
    let (mut wasm, mut native) = (Vec::new(), vec![Vec::new(); peers.len()]);
    // The first run compiles the importer into the cache; it is not measured.
    run_importer(provider, folder, cache)?;
    for _ in 0..RUNS {
        for ((_, peer), seconds) in peers.iter().zip(&mut native) {
            let start = Instant::now();
            ensure!(peer(folder)? > 0, "the native reader read nothing");
            seconds.push(start.elapsed().as_secs_f64());
        }
        wasm.push(run_importer(provider, folder, cache)?);
    }
    let arguments: [OsString; 4] = [IMPORTER_ARGUMENT.into(), provider.into(), folder.into(), cache.into()];
    let cost = process::run(&std::env::current_exe()?, &arguments)?;
    let wasm = median(wasm);
    let mut line = format!(
        "{provider}: importer in wasm to typed records {:.0} MB/s, {} MiB private memory",
        size / wasm,
        cost.private_mib
    );
    for ((name, _), seconds) in peers.iter().zip(native) {
        let seconds = median(seconds);
        line.push_str(&format!("; native {name} {:.0} MB/s, ratio {:.2}", size / seconds, seconds / wasm));
    }
    print_line(&line);
    Ok(())
}

/// Runs a built-in importer once; returns the seconds in which it produced its records, without the time to load the
/// component.
pub(crate) fn run_importer(provider: &str, folder: &Path, cache: &Path) -> Result<f64> {
    let built_in =
        satchel_plugins::BUILT_IN.iter().find(|one| one.name == provider).context("no such importer")?;
    Ok(run_component(built_in.wasm, folder, cache)?.seconds)
}

/// What one run of an importer took.
pub(crate) struct ImporterRun {
    /// Without the time to load the component.
    pub(crate) seconds: f64,
    /// The memory of the importer, in MiB.
    pub(crate) memory_mib: usize,
}

/// Runs a component once, on every export in the folder.
pub(crate) fn run_component(component: &[u8], folder: &Path, cache: &Path) -> Result<ImporterRun> {
    let cache = CodeCache { folder: cache.join("code"), key_file: cache.join("key/code-cache.key") };
    let host = Host::new(HostOptions { cache: Some(cache), ..HostOptions::default() })?;
    let plugin = host.load(component)?;
    let bundle = Source::at(folder)?.open(&IntakeLimits::default())?;
    let detections = plugin.detect(Arc::new(bundle.clone()))?;
    let start = Instant::now();
    let (mut messages, mut memory_bytes) = (0, 0);
    let limits = PluginLimits::default();
    for detection in detections {
        let files = Arc::new(bundle.subset(&detection.files));
        let summary = plugin.run(files, &detection.format, &limits, &CancelToken::new(), &mut |emitted| {
            if let Emitted::Conversation(conversation) = emitted {
                messages += conversation.messages.len();
            }
            SinkVerdict::Proceed
        })?;
        memory_bytes = summary.memory_bytes.max(memory_bytes);
    }
    ensure!(messages > 0, "the importer read nothing");
    Ok(ImporterRun { seconds: start.elapsed().as_secs_f64(), memory_mib: memory_bytes >> 20 })
}
