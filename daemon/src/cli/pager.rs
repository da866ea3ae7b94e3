//! Shows long output in a pager, but only on a terminal.

use std::{
    ffi::{OsStr, OsString},
    io::{self, IsTerminal as _, Write as _},
    process::{Child, Command, Stdio},
};

/// The pager if none is named.
const DEFAULT_PAGER: &str = "less";
/// The default of `LESS`: exit if the text fits the screen, show colours, and leave the text on the screen.
const DEFAULT_LESS: &str = "FRX";

/// How long output is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pager {
    /// Without a pager: it is printed.
    #[default]
    None,
    /// A shell command, and the value of `LESS` in case the command runs `less`.
    Command { command: OsString, less: OsString },
}

impl Pager {
    /// Chooses the pager: none with `--no-pager`, if stdout is not a terminal, or if `PAGER` is empty or `cat`.
    pub(crate) fn choose(
        unwanted: bool,
        terminal: bool,
        named: Option<&OsStr>,
        less: Option<&OsStr>,
    ) -> Self {
        let plain = named.is_some_and(|named| named.is_empty() || named == "cat");
        if unwanted || !terminal || plain {
            return Self::None;
        }
        let command = named.unwrap_or(OsStr::new(DEFAULT_PAGER)).to_owned();
        Self::Command { command, less: less.unwrap_or(OsStr::new(DEFAULT_LESS)).to_owned() }
    }

    /// Chooses the pager for this process.
    pub(crate) fn for_process(unwanted: bool, named: Option<&OsStr>, less: Option<&OsStr>) -> Self {
        Self::choose(unwanted, io::stdout().is_terminal(), named, less)
    }

    /// Shows the text until the reader quits. Returns false if no pager could be run, so that the text has to be
    /// printed.
    ///
    /// # Errors
    /// Fails if waiting for the pager fails.
    pub(crate) fn show_text(&self, text: &str) -> io::Result<bool> {
        let Some(mut shown) = self.start() else { return Ok(false) };
        shown.push(text);
        shown.end()
    }

    /// Begins to show a text that arrives in pieces; `None` if no pager can be run.
    pub(crate) fn start(&self) -> Option<PagerProcess> {
        let Self::Command { command, less } = self else { return None };
        match start(command, less) {
            Ok(child) => Some(PagerProcess(child)),
            Err(error) => {
                tracing::debug!(%error, "no pager");
                None
            }
        }
    }
}

/// A running pager.
pub(crate) struct PagerProcess(Child);

impl PagerProcess {
    /// Passes a piece to the pager. Returns false once the reader has quit.
    pub(crate) fn push(&mut self, text: &str) -> bool {
        let Some(pipe) = &mut self.0.stdin else { return false };
        let Err(error) = pipe.write_all(text.as_bytes()) else { return true };
        if error.kind() != io::ErrorKind::BrokenPipe {
            tracing::debug!(%error, "cannot write to the pager");
        }
        false
    }

    /// Waits until the reader quits. Returns false if no pager could be run, so that the text has to be printed.
    ///
    /// # Errors
    /// Fails if waiting for the pager fails.
    pub(crate) fn end(mut self) -> io::Result<bool> {
        drop(self.0.stdin.take());
        // The shell exits with 126 or 127 if it could not run the command.
        Ok(!matches!(self.0.wait()?.code(), Some(126 | 127)))
    }
}

fn start(command: &OsStr, less: &OsStr) -> io::Result<Child> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).env("LESS", less).stdin(Stdio::piped()).spawn()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn pager(command: &str) -> Pager {
        Pager::Command { command: command.into(), less: DEFAULT_LESS.into() }
    }

    #[test]
    fn a_pager_is_used_only_on_a_terminal_and_only_if_wanted() {
        let choose = |unwanted, terminal, named: Option<&str>| {
            Pager::choose(unwanted, terminal, named.map(OsStr::new), None)
        };
        assert_eq!(choose(false, true, None), pager("less"));
        assert_eq!(choose(false, true, Some("most -w")), pager("most -w"));
        for (unwanted, terminal, named) in
            [(true, true, None), (false, false, None), (false, true, Some("cat")), (false, true, Some(""))]
        {
            assert_eq!(choose(unwanted, terminal, named), Pager::None);
        }
    }

    #[test]
    fn a_pager_receives_the_text_and_a_missing_one_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let to_file = pager(&format!("cat > '{}'", seen.display()));
        assert!(to_file.show_text("one\ntwo\n").unwrap());
        assert_eq!(std::fs::read_to_string(seen).unwrap(), "one\ntwo\n");
        assert!(!pager("no-such-pager-anywhere 2> /dev/null").show_text("text").unwrap());
        assert!(!Pager::None.show_text("text").unwrap());
        // A reader that quits early is not an error, however much text is left.
        assert!(pager("head -c 1 > /dev/null").show_text(&"x".repeat(1 << 20)).unwrap());
    }
}
