//! The outputs of a command: results go to stdout, everything else to stderr.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::{
    Environment,
    args::Global,
    error::CliError,
    pager::{Pager, PagerProcess},
    style::{Paint, TerminalStyle},
    text,
};

/// Interval between two frames of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// The two outputs of one command, and their styles.
pub(crate) struct Output {
    pub style: TerminalStyle,
    /// The style of stderr, which may be a terminal if stdout is not.
    pub notes_style: TerminalStyle,
    pub json: bool,
    pub quiet: bool,
    /// True if stderr is a terminal, so that bars can be drawn.
    pub bars: bool,
    /// Shows long results.
    pager: Pager,
    results: Box<dyn Write + Send>,
    notes: Box<dyn Write + Send>,
}

impl Output {
    /// Returns the outputs of this process.
    pub(crate) fn for_process(global: &Global, environment: &Environment) -> Self {
        let Environment { no_color, pager, less, .. } = environment;
        let no_color = *no_color;
        let bars = io::stderr().is_terminal();
        Self {
            style: TerminalStyle::detect(global.color, io::stdout().is_terminal(), no_color),
            notes_style: TerminalStyle::detect(global.color, bars, no_color),
            json: global.json,
            quiet: global.quiet,
            bars,
            pager: Pager::for_process(global.no_pager || global.json, pager.as_deref(), less.as_deref()),
            results: Box::new(io::BufWriter::new(io::stdout())),
            notes: Box::new(io::stderr()),
        }
    }

    /// Returns outputs that discard everything, for work that no person watches.
    pub(crate) fn silent() -> Self {
        let style = TerminalStyle::plain(80);
        Self {
            style,
            notes_style: style,
            json: false,
            quiet: true,
            bars: false,
            pager: Pager::None,
            results: Box::new(io::sink()),
            notes: Box::new(io::sink()),
        }
    }

    /// Prints a result that contains its own line ends.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CliError> {
        self.results.write_all(text.as_bytes()).and_then(|()| self.results.flush()).map_err(CliError::Output)
    }

    /// Prints a result that may be long. It is shown in a pager if there is one and the result does not fit the
    /// screen.
    pub(crate) fn print_paged(&mut self, text: &str) -> Result<(), CliError> {
        let lines = text.lines().count();
        let fits = self.style.rows.is_some_and(|rows| lines < rows);
        if !fits && self.pager.show_text(text).map_err(CliError::Output)? {
            return Ok(());
        }
        self.print(text)
    }

    /// Begins a result that arrives in pieces and may be long.
    pub(crate) fn paged(&mut self) -> PagedOutput<'_> {
        let direct = self.pager == Pager::None;
        PagedOutput { out: self, text: String::new(), lines: 0, pager: None, direct, reader_quit: false }
    }

    /// Prints a result as the single JSON document.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| CliError::step("cannot write the result as JSON", error))?;
        self.print(&text::escape_json(&text))?;
        self.print("\n")
    }

    /// Shows a spinner on a terminal for work of unknown length. The caller removes it.
    pub(crate) fn spinner(&self, what: &'static str) -> ProgressBar {
        let target = if self.bars && !self.quiet {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let spinner = ProgressBar::with_draw_target(None, target)
            .with_style(ProgressStyle::default_spinner())
            .with_message(what);
        spinner.enable_steady_tick(TICK);
        spinner
    }

    /// Prints a note on stderr, unless `--quiet` is set.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.quiet {
            let line = self.notes_style.paint(Paint::Dim, text);
            if let Err(error) = writeln!(self.notes, "{line}") {
                tracing::debug!(%error, "stderr is closed");
            }
        }
    }
}

/// A long result that arrives in pieces. It is shown as soon as it fills the screen, so that the reader does not
/// have to wait for its end.
pub(crate) struct PagedOutput<'a> {
    out: &'a mut Output,
    /// The whole text, in case the pager cannot be run.
    text: String,
    lines: usize,
    pager: Option<PagerProcess>,
    /// True if the result is printed directly.
    direct: bool,
    /// True if the reader has quit.
    reader_quit: bool,
}

impl PagedOutput<'_> {
    /// Takes the next piece. Returns false once the reader has quit.
    pub(crate) fn push(&mut self, piece: &str) -> Result<bool, CliError> {
        if self.reader_quit {
            return Ok(false);
        }
        if self.direct {
            self.out.print(piece)?;
            return Ok(true);
        }
        self.text.push_str(piece);
        if let Some(shown) = &mut self.pager {
            return if shown.push(piece) { Ok(true) } else { self.finish_pager() };
        }
        self.lines += piece.lines().count();
        if self.out.style.rows.is_some_and(|rows| self.lines < rows) {
            return Ok(true);
        }
        match self.out.pager.start() {
            Some(mut shown) => {
                let taken = shown.push(&self.text);
                self.pager = Some(shown);
                if taken { Ok(true) } else { self.finish_pager() }
            }
            None => self.print_all(),
        }
    }

    /// Ends the result. A result that fits the screen is printed.
    pub(crate) fn end(mut self) -> Result<(), CliError> {
        match self.pager {
            Some(_) => self.finish_pager().map(drop),
            None if self.direct || self.reader_quit => Ok(()),
            None => self.print_all().map(drop),
        }
    }

    /// Handles the end of the pager: it accepts no more, or there is no more. If it could not be run, prints
    /// everything.
    fn finish_pager(&mut self) -> Result<bool, CliError> {
        let Some(shown) = self.pager.take() else { return Ok(false) };
        if shown.end().map_err(CliError::Output)? {
            self.reader_quit = true;
            return Ok(false);
        }
        self.print_all()
    }

    fn print_all(&mut self) -> Result<bool, CliError> {
        self.direct = true;
        let text = std::mem::take(&mut self.text);
        self.out.print(&text)?;
        Ok(true)
    }
}

/// An output into memory, for tests.
#[cfg(test)]
pub(crate) mod memory {
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    pub(crate) struct MemoryBuffer(Arc<Mutex<Vec<u8>>>);

    impl MemoryBuffer {
        pub(crate) fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
        }
    }

    impl Write for MemoryBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output {
        /// Returns an output, and the buffers with its results and notes.
        pub(crate) fn in_memory(json: bool) -> (Self, MemoryBuffer, MemoryBuffer) {
            let (results, notes) = (MemoryBuffer::default(), MemoryBuffer::default());
            let style = TerminalStyle::plain(80);
            let out = Self {
                style,
                notes_style: style,
                json,
                quiet: false,
                bars: false,
                pager: Pager::None,
                results: Box::new(results.clone()),
                notes: Box::new(notes.clone()),
            };
            (out, results, notes)
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_control_characters_without_changing_its_meaning() {
        let (mut out, results, _) = Output::in_memory(true);
        let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}\u{e0041}\u{7f} grüße 👩‍💻";
        out.json(&[hostile]).unwrap();
        let text = results.text();
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{e0041}', '\u{7f}']), "{text}");
        assert!(text.contains("grüße 👩‍💻"));
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [hostile]);
    }

    fn shows(pager: &str, rows: usize, pieces: &[&str]) -> (String, Vec<bool>) {
        let (mut out, results, _) = Output::in_memory(false);
        out.style.rows = Some(rows);
        out.pager = Pager::Command { command: pager.into(), less: "FRX".into() };
        let mut screen = out.paged();
        let wanted = pieces.iter().map(|piece| screen.push(piece).unwrap()).collect();
        screen.end().unwrap();
        (results.text(), wanted)
    }

    #[test]
    fn a_long_result_is_paged_while_it_arrives_and_a_short_one_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let to_file = format!("cat > '{}'", seen.display());
        assert_eq!(shows(&to_file, 9, &["a\nb\n", "c\n"]), ("a\nb\nc\n".to_owned(), vec![true, true]));
        assert!(!seen.exists());
        assert_eq!(shows(&to_file, 3, &["a\nb\n", "c\n", "d\n"]).0, "");
        assert_eq!(std::fs::read_to_string(&seen).unwrap(), "a\nb\nc\nd\n");
    }

    #[test]
    fn a_missing_pager_falls_back_to_printing_and_quitting_the_pager_ends_the_output() {
        let long = "x\n".repeat(1 << 19);
        let (printed, wanted) = shows("no-such-pager-anywhere 2> /dev/null", 1, &[&long, "y\n"]);
        assert_eq!((printed, wanted), (format!("{long}y\n"), vec![true, true]));
        let (printed, wanted) = shows("head -c 1 > /dev/null", 1, &[&long, &long]);
        assert_eq!((printed, wanted), (String::new(), vec![false, false]));
    }

    #[test]
    fn quiet_suppresses_notes() {
        let (mut out, results, notes) = Output::in_memory(false);
        out.note("one");
        out.quiet = true;
        out.note("two");
        out.print("result\n").unwrap();
        assert_eq!((notes.text(), results.text()), ("one\n".to_owned(), "result\n".to_owned()));
    }
}
