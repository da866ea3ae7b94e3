//! The code on the page.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};

const PAGE: &str = "../daemon/docs/clients.md";

/// Returns the code blocks in a language.
fn blocks(language: &str) -> Result<Vec<String>> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE))?;
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned()));
    let blocks: Vec<String> = blocks.collect();
    ensure!(!blocks.is_empty(), "{PAGE} has no code in {language}");
    Ok(blocks)
}

/// Returns the program whose first line, its usage, names this file.
pub(super) fn program(language: &str, file: &str) -> Result<String> {
    let named = |block: &String| block.lines().next().is_some_and(|usage| usage.contains(file));
    blocks(language)?.into_iter().find(named).with_context(|| format!("{PAGE} has no {file}"))
}

/// Returns the lines for a shell that begin with this word.
pub(super) fn shell_lines(word: &str) -> Result<Vec<String>> {
    let lines = blocks("sh")?.concat();
    let lines = lines.lines().filter(|line| line.split(' ').next() == Some(word));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    ensure!(!lines.is_empty(), "{PAGE} has no line that begins with {word}");
    Ok(lines)
}
