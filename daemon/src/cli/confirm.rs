//! Asks a person at the terminal for a yes or no.

use std::{
    io::{self, BufRead as _, Write as _},
    thread,
};

use tokio::sync::oneshot;

use super::error::CliError;

/// Asks the question and returns whether the answer is yes. The caller has checked that there is a terminal.
///
/// # Errors
/// Fails if the terminal cannot be read.
pub(super) async fn ask(question: String) -> Result<bool, CliError> {
    Ok(is_yes(&ask_for_line(question).await?))
}

/// Asks the question and returns the line that is typed; empty at the end of the input. The caller has checked that
/// there is a terminal.
///
/// # Errors
/// Fails if the terminal cannot be read.
pub(super) async fn ask_for_line(question: String) -> Result<String, CliError> {
    let (sender, answer) = oneshot::channel();
    // Not a task of the runtime, which would wait for the answer even after Ctrl-C.
    thread::spawn(move || drop(sender.send(prompt(&question))));
    answer.await.map_err(|_| CliError::Cancelled)?.map_err(CliError::Output)
}

fn prompt(question: &str) -> io::Result<String> {
    io::stderr().write_all(question.as_bytes())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_yes_is_yes() {
        assert!(["y\n", " YES \n", "yes"].into_iter().all(is_yes));
        assert!(!["", "\n", "n\n", "yep\n", "y n\n"].into_iter().any(is_yes));
    }
}
