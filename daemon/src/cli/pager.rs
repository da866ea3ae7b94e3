//! Long output goes through a pager, on a terminal and nowhere else.

use std::{
    ffi::{OsStr, OsString},
    io::{self, IsTerminal as _, Write as _},
    process::{Child, Command, Stdio},
};

/// What is run where nothing else is named.
const USUAL: &str = "less";
/// Its options, as `LESS` has them: it ends where the text fits the screen, shows colours, and leaves the text there.
const OPTIONS: &str = "FRX";

/// What long output is shown with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pager {
    /// Nothing: it is printed.
    #[default]
    None,
    /// A command of the shell, and the options of `less` in case it runs that.
    Command { command: OsString, less: OsString },
}

impl Pager {
    /// Chooses: none with `--no-pager`, where stdout is no terminal, and where `PAGER` is empty or `cat`.
    pub(crate) fn of(unwanted: bool, terminal: bool, named: Option<&OsStr>, less: Option<&OsStr>) -> Self {
        let plain = named.is_some_and(|named| named.is_empty() || named == "cat");
        if unwanted || !terminal || plain {
            return Self::None;
        }
        let command = named.unwrap_or(OsStr::new(USUAL)).to_owned();
        Self::Command { command, less: less.unwrap_or(OsStr::new(OPTIONS)).to_owned() }
    }

    /// Chooses for this process.
    pub(crate) fn of_process(unwanted: bool, named: Option<&OsStr>, less: Option<&OsStr>) -> Self {
        Self::of(unwanted, io::stdout().is_terminal(), named, less)
    }

    /// Shows the text until its reader has seen enough; false if nothing could be run, so that it has to be printed.
    ///
    /// # Errors
    /// When the pager cannot be waited for.
    pub(crate) fn show(&self, text: &str) -> io::Result<bool> {
        let Some(mut shown) = self.start() else { return Ok(false) };
        shown.push(text);
        shown.end()
    }

    /// Begins to show a text that comes piece by piece; none if nothing can be run.
    pub(crate) fn start(&self) -> Option<Shown> {
        let Self::Command { command, less } = self else { return None };
        match start(command, less) {
            Ok(child) => Some(Shown(child)),
            Err(error) => {
                tracing::debug!(%error, "no pager");
                None
            }
        }
    }
}

/// A pager that runs.
pub(crate) struct Shown(Child);

impl Shown {
    /// Hands on a piece; false once the reader has seen enough.
    pub(crate) fn push(&mut self, text: &str) -> bool {
        let Some(pipe) = &mut self.0.stdin else { return false };
        let Err(error) = pipe.write_all(text.as_bytes()) else { return true };
        if error.kind() != io::ErrorKind::BrokenPipe {
            tracing::debug!(%error, "the pager takes no more");
        }
        false
    }

    /// Waits until its reader has seen enough; false if nothing was run, so that the text has to be printed.
    ///
    /// # Errors
    /// When the pager cannot be waited for.
    pub(crate) fn end(mut self) -> io::Result<bool> {
        drop(self.0.stdin.take());
        // 126 and 127 are the shell's: it ran nothing.
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
        Pager::Command { command: command.into(), less: OPTIONS.into() }
    }

    #[test]
    fn only_a_terminal_has_a_pager_and_only_if_one_is_wanted() {
        let of = |unwanted, terminal, named: Option<&str>| {
            Pager::of(unwanted, terminal, named.map(OsStr::new), None)
        };
        assert_eq!(of(false, true, None), pager("less"));
        assert_eq!(of(false, true, Some("most -w")), pager("most -w"));
        for (unwanted, terminal, named) in
            [(true, true, None), (false, false, None), (false, true, Some("cat")), (false, true, Some(""))]
        {
            assert_eq!(of(unwanted, terminal, named), Pager::None);
        }
    }

    #[test]
    fn a_pager_gets_the_text_and_one_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let to_file = pager(&format!("cat > '{}'", seen.display()));
        assert!(to_file.show("one\ntwo\n").unwrap());
        assert_eq!(std::fs::read_to_string(seen).unwrap(), "one\ntwo\n");
        assert!(!pager("no-such-pager-anywhere 2> /dev/null").show("text").unwrap());
        assert!(!Pager::None.show("text").unwrap());
        // A reader that has seen enough is no error, however much is left.
        assert!(pager("head -c 1 > /dev/null").show(&"x".repeat(1 << 20)).unwrap());
    }
}
