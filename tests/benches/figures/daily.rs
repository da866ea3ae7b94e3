//! Everyday work of a daemon: the same export again, a newer export, reads during an import, a restart after a kill.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    ListConversationsRequest, ListMessagesRequest, conversation_service_client::ConversationServiceClient,
};
use satchel_tests::generate;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    megabytes, print_line,
    process::{DaemonProcess, run, satchel_program},
};

/// Number of clients that read while an import runs.
const READERS: usize = 8;
/// How long reads are measured while nothing else runs.
const IDLE: Duration = Duration::from_secs(5);

/// Imports an export with the command line; returns the seconds it took and its receipt.
pub(crate) fn import(program: &PathBuf, data: &Path, export: &Path) -> Result<(f64, Value)> {
    let words =
        ["--data-dir".as_ref(), data.as_os_str(), "--json".as_ref(), "import".as_ref(), export.as_os_str()];
    let cost = run(program, &words)?;
    let answer: Value = serde_json::from_slice(&cost.output)?;
    Ok((cost.seconds, answer["imports"][0].clone()))
}

/// Measures the first import, the same bytes again, and a newer export in which one conversation in fifty was
/// continued.
pub(crate) fn newer(scratch: &Path, bytes: u64) -> Result<()> {
    let program = satchel_program()?;
    let (older, later, data) = (scratch.join("older"), scratch.join("later"), scratch.join("monthly"));
    generate::chatgpt(&older, bytes, 3)?;
    generate::chatgpt_later(&later, bytes, 3, 1)?;
    let daemon = DaemonProcess::start(&program, &data)?;
    let list = ["--data-dir".as_ref(), data.as_os_str(), "plugins".as_ref(), "list".as_ref()];
    run(&program, &list)?;
    let (first, _) = import(&program, &data, &older)?;
    let (newer, receipt) = import(&program, &data, &later)?;
    ensure!(receipt["conversations"]["updated"].as_u64() > Some(0), "no conversation was updated: {receipt}");
    let (again, receipt) = import(&program, &data, &older)?;
    ensure!(receipt["status"] == "unchanged", "the unchanged export was read again: {receipt}");
    drop(daemon);
    let start = Instant::now();
    sha256(&older.join("conversations.json"))?;
    let hashed = start.elapsed().as_secs_f64();
    print_line(&format!(
        "{:.0} MB of ChatGPT: first import {first:.2} s; with 2 % changes {newer:.2} s, {:.1} times as fast; unchanged \
         {again:.2} s, {:.2} of the speed of sha256 alone",
        megabytes(&older)?,
        first / newer,
        hashed / again
    ));
    for folder in [older, later, data] {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

fn sha256(path: &Path) -> Result<()> {
    let (mut file, mut hasher, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    ensure!(hasher.finalize()[..] != [0; 32], "no digest");
    Ok(())
}

/// Measures the reads of eight clients, first while nothing else runs and then during an import.
pub(crate) fn reads(scratch: &Path, bytes: u64) -> Result<()> {
    let program = satchel_program()?;
    let (stored, export, data) = (scratch.join("stored"), scratch.join("export"), scratch.join("asked"));
    generate::chatgpt(&stored, 20_000_000, 4)?;
    generate::chatgpt(&export, bytes, 5)?;
    let daemon = DaemonProcess::start(&program, &data)?;
    import(&program, &data, &stored)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let until = Arc::new(AtomicBool::new(false));
    let idle = runtime.block_on(async {
        let reading = tokio::spawn(query_clients(data.clone(), Arc::clone(&until)));
        tokio::time::sleep(IDLE).await;
        until.store(true, Ordering::Relaxed);
        reading.await?
    })?;
    until.store(false, Ordering::Relaxed);
    let reading = runtime.spawn(query_clients(data.clone(), Arc::clone(&until)));
    let (seconds, _) = import(&program, &data, &export)?;
    until.store(true, Ordering::Relaxed);
    let busy = runtime.block_on(reading)??;
    drop(daemon);
    print_line(&format!(
        "reads of {READERS} clients: median and p99 {:.1} and {:.1} ms idle, {:.1} and {:.1} ms while {:.0} MB are imported in \
         {seconds:.1} s, ratio of p99 {:.1}",
        percentile(&idle, 50),
        percentile(&idle, 99),
        percentile(&busy, 50),
        percentile(&busy, 99),
        megabytes(&export)?,
        percentile(&busy, 99) / percentile(&idle, 99)
    ));
    for folder in [stored, export, data] {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// Sends requests from all clients until `until` is set; returns the milliseconds of each answer.
async fn query_clients(data: PathBuf, until: Arc<AtomicBool>) -> Result<Vec<f64>> {
    let clients: Vec<_> =
        (0..READERS).map(|_| tokio::spawn(query_client(data.clone(), Arc::clone(&until)))).collect();
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await??);
    }
    Ok(all)
}

async fn query_client(data: PathBuf, until: Arc<AtomicBool>) -> Result<Vec<f64>> {
    let mut client = ConversationServiceClient::new(satchel_server::connect::connect(&data).await?)
        .max_decoding_message_size(4 << 20);
    let mut times = Vec::new();
    while !until.load(Ordering::Relaxed) {
        let start = Instant::now();
        let list = ListConversationsRequest { page_size: 20, ..ListConversationsRequest::default() };
        let page = client.list_conversations(list).await?.into_inner();
        times.push(start.elapsed().as_secs_f64() * 1e3);
        let conversation = page.conversations.into_iter().next().context("a conversation")?;
        let start = Instant::now();
        let messages = ListMessagesRequest {
            conversation_id: conversation.id,
            page_size: 20,
            ..ListMessagesRequest::default()
        };
        client.list_messages(messages).await?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        // People do not send requests without a pause.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(times)
}

fn percentile(times: &[f64], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
}

/// Kills a daemon with a million messages in its store and measures how long the next one takes to answer.
pub(crate) fn reopen(scratch: &Path, messages: u64) -> Result<()> {
    let program = satchel_program()?;
    let (export, data) = (scratch.join("many"), scratch.join("killed"));
    let counts = generate::chatgpt_short(&export, messages, 6)?;
    let daemon = DaemonProcess::start(&program, &data)?;
    import(&program, &data, &export)?;
    drop(daemon);
    let start = Instant::now();
    let daemon = DaemonProcess::start(&program, &data)?;
    let status = ["--data-dir".as_ref(), data.as_os_str(), "--json".as_ref(), "status".as_ref()];
    let answer: Value = serde_json::from_slice(&run(&program, &status)?.output)?;
    let seconds = start.elapsed().as_secs_f64();
    drop(daemon);
    ensure!(answer.to_string().contains(&counts.messages.to_string()), "messages are missing: {answer}");
    print_line(&format!(
        "an answer after a kill with {} messages in the store: {seconds:.2} s",
        counts.messages
    ));
    std::fs::remove_dir_all(export)?;
    std::fs::remove_dir_all(data)?;
    Ok(())
}
