//! Figures for the session of an agent that grows in a watched folder: how long until a line can be queried, and what it
//! costs.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use satchel_tests::generate::Rng;
use serde_json::json;

use crate::{
    RUNS,
    client::Client,
    median, print_line,
    process::{DaemonProcess, run, satchel_program},
};

/// Bytes of the text of one message.
const TEXT: usize = 3_000;
/// Longer than the pause after an import of the longest session, and than what the daemon does afterwards.
const PAUSE: Duration = Duration::from_secs(20);

pub(crate) fn all(scratch: &Path, megabytes: u64) -> Result<()> {
    [1, 10, megabytes].into_iter().try_for_each(|megabytes| growing_session(scratch, megabytes))
}

/// Measures one line that is appended to a session of this size.
fn growing_session(scratch: &Path, megabytes: u64) -> Result<()> {
    let program = satchel_program()?;
    let (folder, data) = (scratch.join("sessions"), scratch.join("sessions-data"));
    fs::create_dir(&folder)?;
    let path = folder.join("5e551000-0000-4000-8000-000000000001.jsonl");
    let mut session = Session { file: BufWriter::new(File::create(&path)?), rng: Rng::new(5), lines: 0 };
    while session.file.get_ref().metadata()?.len() < megabytes * 1_000_000 {
        session.append()?;
    }
    session.file.flush()?;
    let daemon = DaemonProcess::start(&program, &data)?;
    let words = [
        "--data-dir".as_ref(),
        data.as_os_str(),
        "sources".as_ref(),
        "add".as_ref(),
        folder.as_os_str(),
        "--sessions".as_ref(),
    ];
    run(&program, &words)?;
    let client = Client::connect(&data)?;
    let (mut delays, mut costs) = (Vec::new(), Vec::new());
    // The first turn imports the whole session.
    for turn in 0..=RUNS {
        let before = daemon.processor_time()?;
        if turn > 0 {
            session.append()?;
            session.file.flush()?;
        }
        let start = Instant::now();
        while client.messages()? < session.lines {
            thread::sleep(Duration::from_millis(1));
        }
        delays.push(start.elapsed().as_secs_f64() * 1e3);
        thread::sleep(PAUSE);
        costs.push(daemon.processor_time()?.saturating_sub(before).as_secs_f64() * 1e3);
    }
    drop(daemon);
    print_line(&format!(
        "a line appended to a session of {megabytes} MB in a watched folder can be queried after {:.0} ms, for {:.0} ms of \
         processor time",
        median(delays.split_off(1)),
        median(costs.split_off(1))
    ));
    fs::remove_dir_all(&folder)?;
    Ok(fs::remove_dir_all(&data)?)
}

/// A session of Claude Code that is being written.
struct Session {
    file: BufWriter<File>,
    rng: Rng,
    lines: u64,
}

impl Session {
    fn append(&mut self) -> Result<()> {
        let id = |number: u64| format!("00000000-0000-4000-8000-{number:012}");
        let (number, mut text) = (self.lines, String::new());
        while text.len() < TEXT {
            text.push_str(&format!("{:x} ", self.rng.below(u64::MAX)));
        }
        let line = json!({
            "type": "user", "uuid": id(number), "parentUuid": number.checked_sub(1).map(id),
            "sessionId": "5e551000-0000-4000-8000-000000000001", "isSidechain": false,
            "timestamp": format!("2026-05-{:02}T09:{:02}:{:02}.000Z", 1 + number / 3600, number / 60 % 60, number % 60),
            "cwd": "/home/mara/bakery", "version": "2.1.0", "message": {"role": "user", "content": text},
        });
        writeln!(self.file, "{line}")?;
        self.lines += 1;
        Ok(())
    }
}
