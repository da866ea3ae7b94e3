//! What an importer is, as text for a person. All of it may come from a package, and is cleaned.

use satchel_proto::{
    integers::unsigned,
    v1::{Plugin, PluginInstallation, PluginManifest},
};

use super::state;
use crate::cli::{
    import::receipt,
    properties::Properties,
    style::{Paint, TerminalStyle},
    text,
    time::Calendar,
};

/// What every importer can see; the sandbox gives it nothing else.
const SEES: &str =
    "the files of an export that you import; nothing else: no network, no other files, no clock";
/// Formats, patterns and names that are listed; the rest is only counted.
const LISTED: usize = 5;
/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// Returns the lines of `plugins show`.
pub(super) fn plugin(plugin: &Plugin, calendar: &Calendar, style: TerminalStyle) -> String {
    let mut properties = Properties::new();
    properties.add_painted("importer", &format!("{} {}", plugin.name, plugin.version), Paint::Strong);
    let (words, paint) = state(plugin);
    properties.add_painted("state", &words, paint);
    if plugin.failures > 0 {
        let failures = text::count(u64::from(unsigned(plugin.failures)), "import", "imports in a row");
        properties.add_painted("broke off", &failures, Paint::Bad);
    }
    properties.add_painted("last failure", &plugin.last_failure, Paint::Warn);
    if let Some(manifest) = &plugin.manifest {
        add_signer(&mut properties, &plugin.signer, None);
        add_manifest(&mut properties, manifest, unsigned(plugin.size_bytes));
        properties.add("installed", &calendar.minute(plugin.installed_at.as_ref()));
    } else {
        properties.add("from", "satchel");
        properties.add("platform", &plugin.platform);
        properties.add("formats", &some(&plugin.formats));
        properties.add("can see", SEES);
    }
    properties.add_painted("sha256", &plugin.sha256, Paint::Dim);
    properties.render(style)
}

/// Returns the lines that `plugins install` shows before it asks.
pub(super) fn installation(installation: &PluginInstallation, style: TerminalStyle) -> String {
    let mut properties = Properties::new();
    let manifest = installation.manifest.clone().unwrap_or_default();
    properties.add_painted("importer", &format!("{} {}", manifest.name, manifest.version), Paint::Strong);
    let trusted = Some(installation.key_trusted);
    add_signer(&mut properties, &installation.signer, trusted);
    add_manifest(&mut properties, &manifest, unsigned(installation.size_bytes));
    properties.add_painted("sha256", &installation.sha256, Paint::Dim);
    if let Some((words, paint)) = replaces(installation) {
        properties.add_painted("replaces", &words, paint);
    }
    if !installation.replaces_built_in.is_empty() {
        let names = some(&installation.replaces_built_in);
        let words = format!("satchel's own importer for {names}, until it is removed");
        properties.add_painted("instead of", &words, Paint::Bad);
    }
    if !installation.similar_to.is_empty() {
        let words = format!("its name looks like {:?}, which is another importer", installation.similar_to);
        properties.add_painted("careful", &words, Paint::Bad);
    }
    properties.add_painted("read again", &read_again(installation).unwrap_or_default(), Paint::Warn);
    properties.render(style)
}

fn add_signer(properties: &mut Properties, signer: &str, trusted: Option<bool>) {
    let (words, paint) = match (signer.is_empty(), trusted) {
        (true, _) => ("nobody: nothing shows who made it, or whether it was changed".to_owned(), Paint::Bad),
        (false, Some(false)) => (
            format!("{signer}, which you do not trust yet: compare it with what its author published"),
            Paint::Warn,
        ),
        (false, Some(true)) => (format!("{signer}, which you trust"), Paint::Good),
        (false, None) => (signer.to_owned(), Paint::Plain),
    };
    properties.add_painted("signed by", &words, paint);
}

fn add_manifest(properties: &mut Properties, manifest: &PluginManifest, size: u64) {
    properties.add("about", &manifest.description);
    properties.add("authors", &some(&manifest.authors));
    properties.add("homepage", &manifest.homepage);
    properties.add("licence", &manifest.license);
    properties.add("platform", &manifest.platform);
    properties.add("formats", &some(&manifest.formats));
    properties.add("asked about", &asked_about(manifest));
    properties.add("size", &text::bytes(size));
    properties.add("may use", &format!("{} MiB of memory", unsigned(manifest.memory_bytes) / MIB));
    properties.add("can see", SEES);
    properties.add("api", &manifest.api_version);
    properties.add("built with", &manifest.toolchain);
}

/// Returns the files about which it is asked.
fn asked_about(manifest: &PluginManifest) -> String {
    let files = format!("files named {}", some(&manifest.files));
    if manifest.contains.is_empty() {
        return files;
    }
    format!("{files} that contain {}", some(&manifest.contains))
}

fn replaces(installation: &PluginInstallation) -> Option<(String, Paint)> {
    let version = &installation.replaces_version;
    if version.is_empty() {
        return None;
    }
    Some(if installation.downgrade {
        (format!("version {version}, which is NEWER and in use; it stays installed"), Paint::Bad)
    } else {
        (format!("version {version}, which stays installed"), Paint::Plain)
    })
}

/// Returns which earlier imports it would read differently; `None` if there are none.
fn read_again(installation: &PluginInstallation) -> Option<String> {
    let count = unsigned(installation.reads_differently);
    if count == 0 {
        return None;
    }
    let names: Vec<String> = installation.earlier_imports.iter().map(receipt::export_name).collect();
    let listed = names.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    let more = count.saturating_sub(LISTED as u64);
    let more = if more > 0 { format!(" and {} more", text::number(more)) } else { String::new() };
    let exports = text::count(count, "export that you imported", "exports that you imported");
    Some(format!("{exports} may be read differently: {listed}{more}"))
}

/// Returns the first of several texts, and how many more there are.
fn some(all: &[String]) -> String {
    let first = all.iter().take(LISTED).map(|one| text::one_line(one)).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(LISTED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{Import, PluginState};

    use super::*;
    use crate::cli::time;

    fn manifest() -> PluginManifest {
        PluginManifest {
            name: "example-notes".to_owned(),
            version: "1.1.0".to_owned(),
            platform: "example-notes".to_owned(),
            formats: (1..=7).map(|month| format!("notes/2026.0{month}")).collect(),
            newest_format: "notes/2026.07".to_owned(),
            description: "Reads the notes of Example Notes\u{1b}[2J".to_owned(),
            authors: vec!["Ana Silva".to_owned()],
            license: "Apache-2.0".to_owned(),
            files: vec!["*.json".to_owned()],
            contains: vec!["\"note_id\"".to_owned()],
            memory_bytes: 128 << 20,
            api_version: "1.0.0".to_owned(),
            ..PluginManifest::default()
        }
    }

    #[test]
    fn an_installation_shows_who_signed_it_and_what_it_changes() {
        let import = |source: &str| Import { source: source.to_owned(), ..Import::default() };
        let shown = PluginInstallation {
            manifest: Some(manifest()),
            sha256: "0123456789abcdef".repeat(4),
            size_bytes: 96_000,
            signer: "z6MkAna".to_owned(),
            replaces_version: "1.0.0".to_owned(),
            reads_differently: 2,
            earlier_imports: vec![import("notes.json"), import("more notes.json")],
            ..PluginInstallation::default()
        };
        let expected = "\
importer     example-notes 1.1.0
signed by    z6MkAna, which you do not trust yet: compare it with what its author published
about        Reads the notes of Example Notes\\u{1b}[2J
authors      Ana Silva
licence      Apache-2.0
platform     example-notes
formats      notes/2026.01, notes/2026.02, notes/2026.03, notes/2026.04, notes/2026.05 and 2 more
asked about  files named *.json that contain \"note_id\"
size         96 kB
may use      128 MiB of memory
can see      the files of an export that you import; nothing else: no network, no other files, no
             clock
api          1.0.0
sha256       0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
replaces     version 1.0.0, which stays installed
read again   2 exports that you imported may be read differently: notes.json, more notes.json
";
        assert_eq!(installation(&shown, TerminalStyle::plain(100)), expected);
    }

    #[test]
    fn what_a_person_should_notice_is_said() {
        let shown = PluginInstallation {
            manifest: Some(PluginManifest { name: "chatgtp".to_owned(), ..manifest() }),
            replaces_version: "2.0.0".to_owned(),
            downgrade: true,
            replaces_built_in: vec!["chatgpt".to_owned()],
            similar_to: "chatgpt".to_owned(),
            ..PluginInstallation::default()
        };
        let text = installation(&shown, TerminalStyle::plain(100));
        for expected in [
            "signed by    nobody:",
            "version 2.0.0, which is NEWER and in use",
            "instead of   satchel's own importer for chatgpt",
            "its name looks like \"chatgpt\"",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        assert!(!text.contains("read again"), "{text}");
    }

    #[test]
    fn an_importer_that_was_disabled_shows_why() {
        let shown = Plugin {
            name: "example-notes".to_owned(),
            version: "1.1.0".to_owned(),
            state: PluginState::DisabledAfterFailures.into(),
            unsigned: true,
            manifest: Some(manifest()),
            failures: 3,
            last_failure: "it made no progress for 30 s".to_owned(),
            installed_at: time::at("2026-03-11T10:00:00Z"),
            ..Plugin::default()
        };
        let text = plugin(&shown, &time::fixed(), TerminalStyle::plain(100));
        for expected in [
            "state         disabled after failures\n",
            "broke off     3 imports in a row\n",
            "last failure  it made no progress for 30 s\n",
            "signed by     nobody:",
            "installed     2026-03-11 10:00\n",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }
}
