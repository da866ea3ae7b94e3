//! Runs a tool and hands on what it prints.

use std::{
    collections::VecDeque,
    io::{self, BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use super::{BuildProjectError, Progress};

/// Last lines of a tool's output that an error has.
const MAX_LINES: usize = 60;

/// Runs `command` to its end.
pub(super) fn run(
    mut command: Command,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), BuildProjectError> {
    let program = PathBuf::from(command.get_program());
    let start_error = |source| BuildProjectError::Start { program: program.clone(), source };
    let (reader, writer) = io::pipe().map_err(start_error)?;
    command.stdout(writer.try_clone().map_err(start_error)?).stderr(writer).stdin(Stdio::null());
    command.env("NO_COLOR", "1");
    let mut child = command.spawn().map_err(start_error)?;
    // The command holds the writing end; the reader ends when the tool alone had it and has ended.
    drop(command);
    let mut last = VecDeque::new();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(start_error)? > 0 {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        progress(Progress::Output(&text));
        if last.len() == MAX_LINES {
            last.pop_front();
        }
        last.push_back(text);
        line.clear();
    }
    if child.wait().map_err(start_error)?.success() {
        return Ok(());
    }
    let output = last.into_iter().collect::<Vec<_>>().join("\n");
    Err(BuildProjectError::Tool { program, output })
}
