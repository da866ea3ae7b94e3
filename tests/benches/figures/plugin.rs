//! An importer alone: bytes of a file in, typed records on the host out, beside native `serde_json` over the same bytes.

use std::{path::Path, sync::Arc, time::Instant};

use anyhow::{Context as _, Result};
use satchel_daemon::intake::{Limits as IntakeLimits, Source};
use satchel_host::{CancelToken, Emitted, Host, HostOptions, Limits, Verdict};

use crate::{RUNS, median, megabytes, native, say};

/// Prints the ratio of the importer to native whole-file parsing, runs taking turns.
pub(crate) fn figures(provider: &str, folder: &Path) -> Result<()> {
    let host = Host::new(HostOptions::default())?;
    let built_in =
        satchel_plugins::BUILT_IN.iter().find(|one| one.name == provider).context("no such importer")?;
    let plugin = host.load(built_in.wasm)?;
    let bundle = Source::at(folder)?.open(&IntakeLimits::default())?;
    let detection = plugin.detect(Arc::new(bundle.clone()))?.into_iter().next().context("not recognised")?;
    let size = megabytes(folder)?;
    let (mut wasm, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let start = Instant::now();
        let text = native::parse(provider, folder)?;
        peer.push(start.elapsed().as_secs_f64());
        anyhow::ensure!(text > 0, "the peer read nothing");
        let start = Instant::now();
        let mut messages = 0;
        let files = Arc::new(bundle.subset(&detection.files));
        plugin.run(files, &detection.format, &Limits::default(), &CancelToken::new(), &mut |emitted| {
            if let Emitted::Conversation(conversation) = emitted {
                messages += conversation.messages.len();
            }
            Verdict::Proceed
        })?;
        wasm.push(start.elapsed().as_secs_f64());
        anyhow::ensure!(messages > 0, "the importer read nothing");
    }
    let (wasm, peer) = (median(wasm), median(peer));
    say(&format!(
        "{provider}: importer in wasm to typed records {:.0} MB/s, native serde_json {:.0} MB/s, ratio {:.2}",
        size / wasm,
        size / peer,
        peer / wasm
    ));
    Ok(())
}
