//! Checks README and manual: links lead somewhere, and command lines and configurations are accepted.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Parser as _;
use home::{TestHome, code, stderr};
use satchel_daemon::cli::args::Cli;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the pages that people read, as paths relative to the root.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = fs::read_dir(root().join("daemon/docs"))
        .unwrap()
        .map(|entry| Path::new("daemon/docs").join(entry.unwrap().file_name()))
        .collect();
    pages.extend(
        [
            "README.md",
            "daemon/ARCHITECTURE.md",
            ".github/CONTRIBUTING.md",
            "tests/README.md",
            "proto/README.md",
        ]
        .map(PathBuf::from),
    );
    pages.sort();
    pages
}

fn text(page: &Path) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// Returns the bodies of the code blocks in a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0.to_owned())).collect()
}

/// Returns the anchor of a heading, as Markdown hosts generate it.
fn anchor(heading: &str) -> String {
    let slug = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    slug.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_link_has_a_target() {
    for page in pages() {
        let whole = text(&page);
        for target in whole.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.contains(' ') {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            assert!(root().join(&file).exists(), "{}: {target} leads nowhere", page.display());
            let headings: Vec<String> = if heading.is_empty() { Vec::new() } else { headings(&text(&file)) };
            assert!(
                heading.is_empty() || headings.iter().any(|one| one == heading),
                "{}: there is no heading for {target}",
                page.display()
            );
        }
    }
}

fn headings(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

/// Splits a line into words as a shell does; text after `#` is a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_command_line_parses() {
    let mut checked = 0;
    for page in pages() {
        for line in blocks(&text(&page), "sh").iter().flat_map(|block| block.lines().collect::<Vec<_>>()) {
            let words = words(line);
            if words.first().is_some_and(|word| word == "satchel") {
                let parsed = Cli::try_parse_from(&words);
                assert!(parsed.is_ok(), "{}: {line}\n{}", page.display(), parsed.unwrap_err());
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "only {checked} command lines were found");
}

#[test]
fn every_configuration_is_valid() {
    let mut checked = 0;
    for page in pages().iter().filter(|page| !page.ends_with("CONTRIBUTING.md")) {
        for block in blocks(&text(page), "toml") {
            let home = TestHome::new();
            let block = block.replace("/home/ana", home.path().to_str().unwrap());
            home.file(".config/satchel/satchel.toml", block.clone());
            let done = home.command(&["config", "check"]).output().unwrap();
            assert_eq!(code(&done), Some(0), "{}:\n{block}\n{}", page.display(), stderr(&done));
            checked += 1;
        }
    }
    assert!(checked > 4, "only {checked} configurations were found");
}
