//! The terminal in full-screen mode, and its restoration however the program ends.

use std::{
    io::{self, IsTerminal as _, Stdout},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, ThreadId},
};

use crossterm::{
    cursor::Show,
    event::{DisableBracketedPaste, EnableBracketedPaste},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui::{Frame, Terminal, backend::CrosstermBackend, layout::Size};

use crate::cli::error::CliError;

/// True while the terminal is in full-screen mode.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Installs the panic hook once.
static HOOK: Once = Once::new();

/// The terminal in full-screen mode. Restored when dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// Refuses to draw where nobody sees it or types.
///
/// # Errors
/// Fails if stdin or stdout is not a terminal.
pub(super) fn require_terminal() -> Result<(), CliError> {
    for (terminal, name) in [(io::stdin().is_terminal(), "input"), (io::stdout().is_terminal(), "output")] {
        if !terminal {
            return Err(CliError::Usage(format!(
                "`satchel browse` needs a terminal, but the standard {name} is none; `satchel search` works without one"
            )));
        }
    }
    Ok(())
}

impl Screen {
    /// Switches the terminal to full-screen mode.
    ///
    /// # Errors
    /// Fails if the terminal refuses; it is restored then.
    pub(super) fn open() -> Result<Self, CliError> {
        let thread = thread::current().id();
        HOOK.call_once(|| restore_on_panic(thread));
        // The view uses colours only if they are wanted. Left to itself, crossterm would replace them by resets.
        crossterm::style::force_color_output(true);
        ACTIVE.store(true, Ordering::SeqCst);
        Self::enter().map_err(|error| {
            restore();
            CliError::step("cannot use the whole terminal", error)
        })
    }

    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(io::stdout()))? })
    }

    /// Returns the size of the terminal.
    ///
    /// # Errors
    /// Fails if the terminal does not tell it.
    pub(super) fn size(&self) -> Result<Size, CliError> {
        self.terminal.size().map_err(CliError::Output)
    }

    /// Draws the screen.
    ///
    /// # Errors
    /// Fails if the terminal cannot be written to.
    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> Result<(), CliError> {
        self.terminal.draw(view).map(drop).map_err(CliError::Output)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Leaves full-screen mode, if the terminal is in it.
fn restore() {
    if !ACTIVE.swap(false, Ordering::SeqCst) {
        return;
    }
    let left = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    if let Err(error) = left.and(disable_raw_mode()) {
        tracing::debug!(%error, "the terminal is gone");
    }
}

/// Restores the terminal before a panic of this thread is reported, so that the report can be read.
fn restore_on_panic(thread: ThreadId) {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == thread {
            restore();
        }
        report(info);
    }));
}
