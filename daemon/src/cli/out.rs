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
    look::{Look, Paint},
    pager::{Pager, Shown},
    text,
};

/// Interval between two frames of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// The two outputs of one command, and their look.
pub(crate) struct Out {
    pub look: Look,
    /// The look of stderr, which may be a terminal if stdout is not.
    pub notes_look: Look,
    pub json: bool,
    pub quiet: bool,
    /// True if stderr is a terminal, so that bars can be drawn.
    pub bars: bool,
    /// Shows long results.
    pager: Pager,
    results: Box<dyn Write + Send>,
    notes: Box<dyn Write + Send>,
}

impl Out {
    /// Returns the outputs of this process.
    pub(crate) fn of_process(global: &Global, environment: &Environment) -> Self {
        let Environment { no_color, pager, less, .. } = environment;
        let no_color = *no_color;
        let bars = io::stderr().is_terminal();
        Self {
            look: Look::of(global.color, io::stdout().is_terminal(), no_color),
            notes_look: Look::of(global.color, bars, no_color),
            json: global.json,
            quiet: global.quiet,
            bars,
            pager: Pager::of_process(global.no_pager || global.json, pager.as_deref(), less.as_deref()),
            results: Box::new(io::BufWriter::new(io::stdout())),
            notes: Box::new(io::stderr()),
        }
    }

    /// Prints a result that contains its own line ends.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CliError> {
        self.results.write_all(text.as_bytes()).and_then(|()| self.results.flush()).map_err(CliError::Output)
    }

    /// Prints a result that may be long. It is shown in a pager if there is one and the result does not fit the
    /// screen.
    pub(crate) fn page(&mut self, text: &str) -> Result<(), CliError> {
        let lines = text.lines().count();
        let fits = self.look.rows.is_some_and(|rows| lines < rows);
        if !fits && self.pager.show(text).map_err(CliError::Output)? {
            return Ok(());
        }
        self.print(text)
    }

    /// Begins a result that arrives in pieces and may be long.
    pub(crate) fn screen(&mut self) -> Screen<'_> {
        let direct = self.pager == Pager::None;
        Screen { out: self, text: String::new(), lines: 0, shown: None, direct, left: false }
    }

    /// Prints a result as the single JSON document.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(value).map_err(|error| CliError::Step {
            what: "cannot write the result as JSON".to_owned(),
            source: error.into(),
        })?;
        self.print(&text::harmless_json(&text))?;
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
            let line = self.notes_look.paint(Paint::Dim, text);
            if let Err(error) = writeln!(self.notes, "{line}") {
                tracing::debug!(%error, "stderr is closed");
            }
        }
    }
}

/// A long result that arrives in pieces. It is shown as soon as it fills the screen, so that the reader does not
/// have to wait for its end.
pub(crate) struct Screen<'a> {
    out: &'a mut Out,
    /// The whole text, in case the pager cannot be run.
    text: String,
    lines: usize,
    shown: Option<Shown>,
    /// True if the result is printed directly.
    direct: bool,
    /// True if the reader has quit.
    left: bool,
}

impl Screen<'_> {
    /// Takes the next piece. Returns false once the reader has quit.
    pub(crate) fn push(&mut self, piece: &str) -> Result<bool, CliError> {
        if self.left {
            return Ok(false);
        }
        if self.direct {
            self.out.print(piece)?;
            return Ok(true);
        }
        self.text.push_str(piece);
        if let Some(shown) = &mut self.shown {
            return if shown.push(piece) { Ok(true) } else { self.look_after() };
        }
        self.lines += piece.lines().count();
        if self.out.look.rows.is_some_and(|rows| self.lines < rows) {
            return Ok(true);
        }
        match self.out.pager.start() {
            Some(mut shown) => {
                let taken = shown.push(&self.text);
                self.shown = Some(shown);
                if taken { Ok(true) } else { self.look_after() }
            }
            None => self.print_all(),
        }
    }

    /// Ends the result. A result that fits the screen is printed.
    pub(crate) fn end(mut self) -> Result<(), CliError> {
        match self.shown {
            Some(_) => self.look_after().map(drop),
            None if self.direct || self.left => Ok(()),
            None => self.print_all().map(drop),
        }
    }

    /// Handles the end of the pager: it accepts no more, or there is no more. If it could not be run, prints
    /// everything.
    fn look_after(&mut self) -> Result<bool, CliError> {
        let Some(shown) = self.shown.take() else { return Ok(false) };
        if shown.end().map_err(CliError::Output)? {
            self.left = true;
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
    pub(crate) struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        pub(crate) fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
        }
    }

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Out {
        /// Returns an output, and the buffers with its results and notes.
        pub(crate) fn in_memory(json: bool) -> (Self, Page, Page) {
            let (results, notes) = (Page::default(), Page::default());
            let look = Look::plain(80);
            let out = Self {
                look,
                notes_look: look,
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
    fn json_holds_nothing_that_steers_a_terminal_and_means_the_same() {
        let (mut out, results, _) = Out::in_memory(true);
        let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}\u{e0041}\u{7f} grüße 👩‍💻";
        out.json(&[hostile]).unwrap();
        let text = results.text();
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{e0041}', '\u{7f}']), "{text}");
        assert!(text.contains("grüße 👩‍💻"));
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [hostile]);
    }

    fn shows(pager: &str, rows: usize, pieces: &[&str]) -> (String, Vec<bool>) {
        let (mut out, results, _) = Out::in_memory(false);
        out.look.rows = Some(rows);
        out.pager = Pager::Command { command: pager.into(), less: "FRX".into() };
        let mut screen = out.screen();
        let wanted = pieces.iter().map(|piece| screen.push(piece).unwrap()).collect();
        screen.end().unwrap();
        (results.text(), wanted)
    }

    #[test]
    fn a_long_result_is_shown_as_it_comes_and_a_short_one_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let to_file = format!("cat > '{}'", seen.display());
        assert_eq!(shows(&to_file, 9, &["a\nb\n", "c\n"]), ("a\nb\nc\n".to_owned(), vec![true, true]));
        assert!(!seen.exists());
        assert_eq!(shows(&to_file, 3, &["a\nb\n", "c\n", "d\n"]).0, "");
        assert_eq!(std::fs::read_to_string(&seen).unwrap(), "a\nb\nc\nd\n");
    }

    #[test]
    fn a_pager_that_is_not_there_is_done_without_and_one_that_is_left_ends_it() {
        let long = "x\n".repeat(1 << 19);
        let (printed, wanted) = shows("no-such-pager-anywhere 2> /dev/null", 1, &[&long, "y\n"]);
        assert_eq!((printed, wanted), (format!("{long}y\n"), vec![true, true]));
        let (printed, wanted) = shows("head -c 1 > /dev/null", 1, &[&long, &long]);
        assert_eq!((printed, wanted), (String::new(), vec![false, false]));
    }

    #[test]
    fn quiet_leaves_notes_out() {
        let (mut out, results, notes) = Out::in_memory(false);
        out.note("one");
        out.quiet = true;
        out.note("two");
        out.print("result\n").unwrap();
        assert_eq!((notes.text(), results.text()), ("one\n".to_owned(), "result\n".to_owned()));
    }
}
