//! Installed importers: which files they get, what receipts say of them, and what becomes of those that fail.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::{fs, path::Path, sync::Arc};

use anyhow::{Result, ensure};
use satchel_core::ingest::{
    ImportRequest,
    receipt::{ImportRecord, ImportStatus},
};
use satchel_registry::{
    InstalledState, Plugins,
    package::{AuthorKey, Package},
};
use satchel_tests::{
    packages::{AGREED, manifest, signed, signing_key, unsigned},
    test_core::{TestCore, only_import},
};

/// Guests that end their own run badly.
const FAULTY: [&str; 8] = [
    "endless_loop",
    "memory_bomb",
    "out_of_bounds",
    "panic",
    "record_flood",
    "recursion",
    "amplification",
    "trap_with_pending",
];

const CHATGPT: &str = r#"[{"title": "Bees", "create_time": 1746180000, "conversation_id": "c1", "current_node": "a", "mapping": {
    "q": {"id": "q", "parent": null, "children": ["a"], "message": {"id": "q", "author": {"role": "user"}, "create_time": 1746180000,
        "content": {"content_type": "text", "parts": ["Which hive?"]}, "metadata": {}, "recipient": "all"}},
    "a": {"id": "a", "parent": "q", "children": [], "message": {"id": "a", "author": {"role": "assistant"}, "create_time": 1746180001,
        "content": {"content_type": "text", "parts": ["The red one."]}, "metadata": {}, "recipient": "all"}}}}]"#;

struct Place {
    dir: tempfile::TempDir,
    core: TestCore,
    plugins: Arc<Plugins>,
}

impl Place {
    fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let (core, plugins) = TestCore::with_installed_plugins(&dir.path().join("data"))?;
        Ok(Self { dir, core, plugins })
    }

    fn file(&self, folder: &str, content: &str) -> Result<std::path::PathBuf> {
        let folder = self.dir.path().join(folder);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("a.json"), content)?;
        Ok(folder)
    }

    fn import(&self, path: &Path, plugin: Option<&str>) -> Result<ImportRecord> {
        only_import(self.core.run(ImportRequest {
            path: path.to_owned(),
            provider: None,
            plugin: plugin.map(str::to_owned),
            again: false,
            dry_run: false,
            apply: None,
        })?)
    }
}

#[test]
fn a_receipt_names_the_importer_its_version_and_its_key() -> Result<()> {
    let place = Place::new()?;
    let package = signed("good", "journal", "1.2.3", 1)?;
    place.plugins.install(&package, AGREED, 0)?;
    let record = place.import(&place.file("in", "{}")?, None)?;
    ensure!(record.status == ImportStatus::CompletedWithSkips, "{record:?}");
    ensure!(record.plugin.as_deref() == Some("journal/1.2.3"), "{record:?}");
    ensure!(record.plugin_sha256 == Some(package.sha256_hex()), "{record:?}");
    ensure!(record.plugin_signer == Some(AuthorKey::of(&signing_key(1)).to_string()), "{record:?}");
    ensure!(
        (record.conversations.new, record.messages.new, record.messages.skipped) == (1, 2, 1),
        "{record:?}"
    );
    // The platform of an installed importer can be selected, and the same bytes are not read twice.
    let again = place.import(&place.file("again", "{}")?, Some("journal"))?;
    ensure!(again.status == ImportStatus::Unchanged, "{again:?}");
    // Another version reads them again.
    place.plugins.install(&signed("good", "journal", "1.3.0", 1)?, AGREED, 0)?;
    let newer = place.import(&place.file("in", "{}")?, None)?;
    ensure!(
        newer.plugin.as_deref() == Some("journal/1.3.0") && newer.conversations.unchanged == 1,
        "{newer:?}"
    );
    Ok(())
}

#[test]
fn removing_an_importer_keeps_what_it_imported() -> Result<()> {
    let place = Place::new()?;
    place.plugins.install(&unsigned("good", "journal", "1.2.3")?, AGREED, 0)?;
    let record = place.import(&place.file("in", "{}")?, None)?;
    ensure!(record.plugin_sha256.is_some() && record.plugin_signer.is_none(), "{record:?}");
    place.plugins.remove("journal", None)?;
    ensure!(place.core.store.stats()?.conversations == 1);
    let unknown = place.import(&place.file("other", "[]")?, None)?;
    ensure!(unknown.status == ImportStatus::Unrecognized, "{unknown:?}");
    Ok(())
}

#[test]
fn an_importer_that_claims_everything_takes_nothing_from_a_built_in_one() -> Result<()> {
    let place = Place::new()?;
    // It claims a.json with the highest confidence there is.
    place.plugins.install(&signed("good", "aaaaaaa", "1.2.3", 1)?, AGREED, 0)?;
    let record = place.import(&place.file("in", CHATGPT)?, None)?;
    ensure!(record.plugin.as_deref().is_some_and(|plugin| plugin.starts_with("chatgpt/")), "{record:?}");
    let told = record.warnings.iter().any(|warning| {
        warning.locator == "a.json"
            && warning.message.contains("aaaaaaa/1.2.3")
            && warning.message.contains("--plugin")
    });
    ensure!(told, "{:?}", record.warnings);
    let chosen = place.import(&place.file("other", CHATGPT)?, Some("aaaaaaa"))?;
    ensure!(chosen.plugin.as_deref() == Some("aaaaaaa/1.2.3"), "{chosen:?}");
    Ok(())
}

#[test]
fn among_installed_importers_the_first_name_gets_the_file() -> Result<()> {
    let place = Place::new()?;
    for name in ["zebra-z", "journal"] {
        place.plugins.install(&signed("good", name, "1.2.3", 1)?, AGREED, 0)?;
    }
    let record = place.import(&place.file("in", "{}")?, None)?;
    ensure!(record.plugin.as_deref() == Some("journal/1.2.3"), "{record:?}");
    ensure!(record.warnings.iter().any(|warning| warning.message.contains("zebra-z/1.2.3")), "{record:?}");
    Ok(())
}

#[test]
fn an_importer_cannot_change_a_conversation_of_another_platform() -> Result<()> {
    let place = Place::new()?;
    place.plugins.install(&signed("good", "journal", "1.2.3", 1)?, AGREED, 0)?;
    let before = place.import(&place.file("chatgpt", CHATGPT)?, None)?;
    ensure!(before.conversations.new == 1, "{before:?}");
    // Both say that their conversation is "c1".
    let record = place.import(&place.file("in", "{}")?, None)?;
    ensure!((record.conversations.new, record.conversations.updated) == (1, 0), "{record:?}");
    let again = place.core.import_again(&place.dir.path().join("chatgpt"))?;
    ensure!(again[0].conversations.unchanged == 1, "{again:?}");
    ensure!(place.core.store.stats()?.conversations == 2);
    Ok(())
}

#[test]
fn an_unknown_importer_is_refused_before_anything_is_read() -> Result<()> {
    let place = Place::new()?;
    let error = place.import(&place.file("in", "{}")?, Some("journal")).unwrap_err();
    ensure!(error.to_string().contains("journal") && error.to_string().contains("chatgpt"), "{error}");
    Ok(())
}

#[test]
fn three_bad_runs_in_a_row_disable_an_importer() -> Result<()> {
    let place = Place::new()?;
    place.plugins.install(&signed("panic", "journal", "1.2.3", 1)?, AGREED, 0)?;
    for run in 1..=3_u32 {
        let record = place.import(&place.file("in", &"{}\n".repeat(run as usize))?, None)?;
        ensure!(record.status == ImportStatus::Failed, "{record:?}");
        let disabled =
            record.warnings.iter().any(|warning| warning.message.contains("plugins enable journal"));
        ensure!(disabled == (run == 3), "{run}: {:?}", record.warnings);
    }
    let installed = place.plugins.installed().remove(0);
    ensure!(installed.state == InstalledState::DisabledAfterFailures, "{installed:?}");
    ensure!(installed.last_failure.is_some_and(|reason| reason.contains("panicked")));
    let after = place.import(&place.file("in", "{}")?, None)?;
    ensure!(after.status == ImportStatus::Unrecognized, "{after:?}");
    // The state is on the disk.
    let (_, again) = TestCore::with_installed_plugins(&place.dir.path().join("other")).map(|(core, _)| {
        (
            core,
            Plugins::open(
                &place.dir.path().join("data/plugins"),
                satchel_registry::PluginsOptions::default(),
            ),
        )
    })?;
    ensure!(again.installed()[0].state == InstalledState::DisabledAfterFailures);
    Ok(())
}

#[test]
fn no_faulty_importer_harms_another_import() -> Result<()> {
    let place = Place::new()?;
    for (at, guest) in FAULTY.into_iter().enumerate() {
        let name = format!("faulty{at}");
        place.plugins.install(&signed(guest, &name, "1.2.3", 1)?, AGREED, 0)?;
        let record = place.import(&place.file(&name, "{}")?, None)?;
        ensure!(record.status == ImportStatus::Failed && record.reason.is_some(), "{guest}: {record:?}");
        ensure!(
            place.plugins.installed().iter().any(|one| one.manifest.name == name && one.failures == 1),
            "{guest}"
        );
        place.plugins.remove(&name, None)?;
        let content = CHATGPT.replace("c1", &format!("c-{at}"));
        let fine = place.import(&place.file("fine", &content)?, None)?;
        ensure!(fine.status == ImportStatus::Completed && fine.conversations.new == 1, "{guest}: {fine:?}");
    }
    Ok(())
}

#[test]
fn importers_that_do_not_fit_the_source_are_not_loaded() -> Result<()> {
    let place = Place::new()?;
    for at in 10..40 {
        let (name, component) = (format!("other{at}"), "good");
        let component = satchel_tests::guests::component_called(component, &name, "1.2.3")?;
        let mut manifest = manifest(&name, "1.2.3");
        if at % 2 == 0 {
            manifest.files = vec!["*.xyz".to_owned()];
        } else {
            manifest.contains = vec!["no such text".to_owned()];
        }
        let package = Package::pack(&component, &manifest)?;
        place.plugins.install(&package, AGREED, 0)?;
    }
    let record = place.import(&place.file("in", CHATGPT)?, None)?;
    ensure!(record.status == ImportStatus::Completed, "{record:?}");
    let in_use = place.plugins.in_use();
    let loaded: Vec<&str> =
        in_use.iter().filter(|importer| importer.is_loaded()).map(|importer| importer.name()).collect();
    ensure!(loaded == ["chatgpt"], "{loaded:?}");
    ensure!(in_use.len() == satchel_plugins::BUILT_IN.len() + 30);
    Ok(())
}

#[test]
fn a_damaged_package_does_not_stop_other_importers() -> Result<()> {
    let place = Place::new()?;
    let installed = place.plugins.install(&signed("good", "journal", "1.2.3", 1)?, AGREED, 0)?;
    let path = place.dir.path().join("data/plugins").join(format!("{}.satchel", installed.sha256));
    fs::write(&path, "changed")?;
    let record = place.import(&place.file("in", CHATGPT)?, None)?;
    ensure!(record.status == ImportStatus::Completed, "{record:?}");
    ensure!(record.warnings.iter().any(|warning| warning.message.contains("install it again")), "{record:?}");
    Ok(())
}

/// The package was built for the release 1.0.0 of the WIT package, and is never built again.
#[test]
fn an_importer_for_the_first_release_of_the_interface_runs() -> Result<()> {
    const NOTES: &str = include_str!("../../../sdk/templates/rust/fixtures/two-notes/input/notes.json");
    let kept = include_bytes!("../../contract/importer-1.0.0.satchel");
    let package = Package::read(kept.to_vec())?;
    ensure!(package.manifest().api == "1.0.0", "{:?}", package.manifest());
    let place = Place::new()?;
    place.plugins.review(&package, &|| false)?;
    place.plugins.install(&package, AGREED, 0)?;
    let record = place.import(&place.file("in", NOTES)?, None)?;
    ensure!(record.plugin.as_deref() == Some("kept-notes/0.1.0"), "{record:?}");
    ensure!(record.status == ImportStatus::Completed, "{record:?}");
    ensure!((record.conversations.new, record.messages.new) == (2, 4), "{record:?}");
    Ok(())
}

#[test]
fn a_thousand_flipped_bits_of_the_code_harm_nothing() -> Result<()> {
    let place = Place::new()?;
    let package = unsigned("good", "journal", "1.2.3")?;
    let signed = package.sign(&signing_key(1))?;
    let code = package.bytes().len() - 1_000;
    for round in 0..1_000_usize {
        // A large prime as the step spreads the flips over the code.
        let (at, bit) = (round * 7_919 % code, round % 8);
        let flipped = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 1 << bit;
            Package::read(bytes)
        };
        ensure!(flipped(signed.bytes()).is_err(), "byte {at}, bit {bit}");
        // Nobody vouches for an unsigned package: it is refused, or it is another valid importer.
        if let Ok(changed) = flipped(package.bytes())
            && let Ok(review) = place.plugins.review(&changed, &|| false)
        {
            ensure!(review.sha256 != package.sha256_hex(), "byte {at}, bit {bit}");
        }
    }
    ensure!(place.plugins.installed().is_empty());
    Ok(())
}
