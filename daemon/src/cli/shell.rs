//! `completions` and `man`: shell completions and manual pages for the commands.

use std::{fs, path::Path};

use clap::CommandFactory;
use clap_complete::Shell;

use super::{args::Cli, error::CliError, output::Output};

const NAME: &str = "satchel";

/// Prints the completion script.
///
/// # Errors
/// Fails if stdout cannot be written to.
pub(crate) fn completions(shell: Shell, out: &mut Output) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    out.print(&String::from_utf8_lossy(&script))
}

/// Prints the manual page, or writes the pages of all commands into `folder`.
///
/// # Errors
/// Fails if stdout or the file system refuses.
pub(crate) fn man(folder: Option<&Path>, out: &mut Output) -> Result<(), CliError> {
    let mut root = Cli::command();
    root.build();
    let Some(folder) = folder else { return out.print(&page(&root, NAME)?) };
    fs::create_dir_all(folder).map_err(CliError::file("create", folder))?;
    for (name, command) in pages(&root) {
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, page(&command, &name)?).map_err(CliError::file("write", &path))?;
        out.note(&path.display().to_string());
    }
    Ok(())
}

/// Returns every command with the name of its page, such as `satchel-memories-list`.
fn pages(root: &clap::Command) -> Vec<(String, clap::Command)> {
    let mut all = vec![(NAME.to_owned(), root.clone())];
    let mut at = 0;
    while let Some((name, command)) = all.get(at).cloned() {
        let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
        all.extend(inner.map(|inner| (format!("{name}-{}", inner.get_name()), inner.clone())));
        at += 1;
    }
    all
}

fn page(command: &clap::Command, name: &str) -> Result<String, CliError> {
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command.clone()).title(name.to_owned());
    man.render(&mut page).map_err(CliError::Output)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_completion_script() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let (mut out, results, _) = Output::in_memory(false);
            completions(shell, &mut out).unwrap();
            assert!(
                results.text().contains("conversations") && results.text().contains("dry-run"),
                "{shell}"
            );
        }
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        let (mut out, ..) = Output::in_memory(false);
        man(Some(&folder.path().join("man1")), &mut out).unwrap();
        for name in ["satchel", "satchel-import", "satchel-memories-list", "satchel-conversations-show"] {
            let text = fs::read_to_string(folder.path().join(format!("man1/{name}.1"))).unwrap();
            assert!(text.starts_with(".ie") && text.contains("SYNOPSIS"), "{name}: {text}");
        }
        let (mut out, results, _) = Output::in_memory(false);
        man(None, &mut out).unwrap();
        assert!(results.text().contains("Portable AI"));
    }
}
