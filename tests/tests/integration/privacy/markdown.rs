//! The Markdown export: one complete file for each conversation, with working links, whatever its texts and titles are.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::export::{ExportFormat, ExportRecord, ExportRequest, Selection};
use satchel_tests::test_core::{ExportedState, TestCore, demo_folder, full_export};
use serde_json::{Value, json};

use super::files;

fn export(core: &TestCore, output: &Path) -> Result<ExportRecord> {
    let request =
        ExportRequest { format: ExportFormat::Markdown, attachments: true, ..full_export(output.to_owned()) };
    core.export_with(&request)
}

fn relative_paths(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let relative = |path: PathBuf| path.strip_prefix(folder).map(Path::to_owned);
    Ok(files(folder)?.into_iter().map(relative).collect::<Result<_, _>>()?)
}

/// Returns the text of each quote in a file.
fn quotes(text: &str) -> Vec<String> {
    let mut found: Vec<Vec<&str>> = Vec::new();
    let mut inside = false;
    for line in text.split('\n') {
        match line.strip_prefix("> ").or_else(|| (line == ">").then_some("")) {
            Some(line) if inside => found.last_mut().into_iter().for_each(|quote| quote.push(line)),
            Some(line) => found.push(vec![line]),
            None => {}
        }
        inside = line.starts_with('>');
    }
    found.into_iter().map(|lines| lines.join("\n")).collect()
}

/// Checks that every link to a file of the export has a target and that every anchor exists; returns the number of
/// links.
fn assert_links_resolve(folder: &Path) -> Result<usize> {
    let mut count = 0;
    for path in files(folder)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(&path)?;
        let unquoted = text.lines().filter(|line| !line.starts_with('>')).collect::<Vec<_>>().join("\n");
        for link in unquoted.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with('<') {
                continue;
            }
            let (file, anchor) =
                link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let target =
                if file.is_empty() { path.clone() } else { path.parent().context("a folder")?.join(file) };
            ensure!(target.exists(), "{link} of {path:?} leads nowhere");
            if let Some(anchor) = anchor {
                let there = fs::read_to_string(&target)?.contains(&format!("<a id=\"{anchor}\"></a>"));
                ensure!(there, "{link} of {path:?} has no anchor");
            }
            count += 1;
        }
    }
    Ok(count)
}

#[test]
fn everything_is_exported_with_working_links_and_stable_names() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    core.import(&demo_folder().join("claude-export"))?;
    let (one, two, pam) = (folder.path().join("one"), folder.path().join("two"), folder.path().join("pam"));
    let made = export(&core, &one)?;
    export(&core, &two)?;
    core.export(&pam)?;
    assert_eq!(relative_paths(&one)?, relative_paths(&two)?);
    let state = ExportedState::read(&pam)?;
    assert_eq!(
        (made.memories, made.conversations),
        (state.memories.len() as u64, state.conversations.len() as u64)
    );
    ensure!(assert_links_resolve(&one)? > state.memories.len(), "there are too few links");
    let all: String = files(&one)?
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .map(|path| Ok(fs::read_to_string(path)?))
        .collect::<Result<_>>()?;
    let quoted: BTreeSet<String> = quotes(&all).into_iter().collect();
    for memory in &state.memories {
        ensure!(quoted.contains(memory["content"].as_str().context("content")?), "{memory}");
    }
    // Every visible message, in all branches.
    let mut shown = 0;
    for message in
        state.conversations.values().flat_map(|one| one["messages"].as_array().into_iter().flatten())
    {
        let Some(text) = message["content"]["text"].as_str().filter(|text| !text.is_empty()) else {
            continue;
        };
        if message["raw_metadata"]["hidden"] != true {
            ensure!(quoted.contains(text), "{text:?} is missing");
            shown += 1;
        }
    }
    ensure!(shown > 5 && all.contains("# Other branches"));
    ensure!(
        relative_paths(&one)?.iter().any(|name| name.starts_with("attachments")),
        "attachments are missing"
    );
    Ok(())
}

/// Titles and texts that try to break out of names, front matter and files.
#[test]
fn hostile_titles_and_texts_are_contained() -> Result<()> {
    let long = "x/".repeat(300);
    let titles = [
        "CON",
        "nul.txt",
        "../../../etc/passwd",
        "a\u{0}b",
        &long,
        "\u{202e}gpj.exe",
        "שיחה על דבורים",
        "Same",
        "same",
        "Same",
        "---\nid: forged\n---",
        "",
        "\"quoted\": [yaml, *anchor]",
        "#heading <b>",
        "..",
    ];
    let texts = [
        "---\ntitle: forged\n---\n# Forged",
        "```\nnever closed",
        "~~~~\n# x\n> y",
        "<!-- never closed",
        "# Forged heading",
        "line\r\n---\rforged\u{2028}---",
        "> quoted\n\n    code",
        "\u{0}\u{1b}[2J",
        "````\n```\n````",
    ];
    let folder = tempfile::tempdir()?;
    let conversation = |(number, title): (usize, &&str)| {
        let node = |id: &str, parent: Option<&str>, child: Option<&str>, role: &str, text: &str| {
            json!({"id": id, "parent": parent, "children": child.into_iter().collect::<Vec<_>>(), "message": {
                "id": format!("{number}-{id}"), "author": {"role": role}, "create_time": 1_746_180_000,
                "content": {"content_type": "text", "parts": [text]}, "metadata": {}, "recipient": "all"}})
        };
        json!({"title": title, "create_time": 1_746_180_000, "conversation_id": format!("c-{number}"),
            "current_node": "a", "mapping": {
                "q": node("q", None, Some("a"), "user", texts[number % texts.len()]),
                "a": node("a", Some("q"), None, "assistant", "The end of it")}})
    };
    let all: Vec<Value> = titles.iter().enumerate().map(conversation).collect();
    let input = folder.path().join("input");
    fs::create_dir(&input)?;
    fs::write(input.join("conversations.json"), serde_json::to_vec(&all)?)?;
    let core = TestCore::open(&folder.path().join("data"))?;
    core.import(&input)?;
    let out = folder.path().join("out");
    assert_eq!(export(&core, &out)?.conversations, titles.len() as u64);
    let mut seen = BTreeSet::new();
    for name in relative_paths(&out)?.into_iter().filter(|name| name.starts_with("conversations")) {
        let file = name.file_name().context("a name")?.to_str().context("UTF-8")?.to_owned();
        ensure!(file.len() < 200 && file.starts_with("2025-05-02-"), "{file}");
        ensure!(file.chars().all(|c| c.is_alphanumeric() || "-.".contains(c)), "{file}");
        ensure!(
            seen.insert(file.to_lowercase()),
            "{file} is one with another where letter case does not count"
        );
        let text = fs::read_to_string(out.join(&name))?;
        let mut parts = text.splitn(3, "---\n");
        ensure!(parts.next() == Some(""), "{text}");
        let front = parts.next().context("front matter")?;
        ensure!(front.lines().filter(|line| line.starts_with("id: ")).count() == 1, "{front}");
        for line in front.lines() {
            let (_, value) = line.split_once(": ").context("a key")?;
            let plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":.-".contains(&byte));
            ensure!(plain || serde_json::from_str::<Value>(value).is_ok(), "{line}");
        }
        let body = parts.next().context("a body")?;
        // All foreign text is quoted, and no line begins with text outside a quote.
        let headings = body.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!(headings, 3, "{body}");
        let safe = |line: &&str| ["#", ">"].iter().any(|start| line.starts_with(start)) || line.is_empty();
        ensure!(body.split(['\n', '\r', '\u{2028}']).all(|line| safe(&line)), "{body}");
        ensure!(quotes(body).last().map(String::as_str) == Some("The end of it"), "{body}");
    }
    assert_eq!(seen.len(), titles.len());
    assert_links_resolve(&out)?;
    Ok(())
}

#[test]
fn a_stripped_selection_names_nobody_and_describes_itself() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    core.import(&demo_folder().join("claude-export"))?;
    let memories = satchel_store::MemoryQuery { platforms: vec!["claude".into()], ..Default::default() };
    let selection = Selection { memories, strip: true };
    let out = folder.path().join("out");
    let request = ExportRequest { format: ExportFormat::Markdown, selection, ..full_export(out.clone()) };
    let made = core.export_with(&request)?;
    ensure!(made.memories > 0 && made.conversations > 0 && made.selection.is_some(), "{made:?}");
    for removed in ["account:", "user-noor-example", "platform: \"chatgpt\"", "from: chatgpt"] {
        let found = super::files_containing(&out, removed)?;
        ensure!(found.is_empty(), "{removed:?} is in {found:?}");
    }
    let index = fs::read_to_string(out.join("index.md"))?;
    ensure!(
        index.contains("This is a selection by platform, without identifiers: no copy of everything."),
        "{index}"
    );
    assert_links_resolve(&out)?;
    Ok(())
}
