//! One verdict: `verify`, `apply` and `import` judge the same files, and if one refuses a bundle, none treats it as its
//! signer's.

use std::{
    fs,
    io::{Cursor, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, Coverage, SignatureState, VerifyOptions, VerifyReport};
use satchel_core::{
    export::{ExportRequest, Selection},
    ingest::{
        Apply, ImportRequest,
        receipt::{DocumentStanding, ImportRecord, ImportStatus},
    },
};
use satchel_store::MemoryQuery;
use satchel_tests::{
    generate::Rng,
    samples::{backdate, pack},
    test_core::{TestCore, demo_folder, full_export, only_import},
};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::{copy, core_with_records, files};

fn dry_run(core: &TestCore, path: &Path, apply: Option<Apply>) -> Result<Vec<ImportRecord>> {
    let path = path.to_owned();
    let apply = apply.map(|apply| Ok::<_, anyhow::Error>(Apply { owner: core.exports.owner()?, ..apply }));
    let apply = apply.transpose()?;
    core.run(ImportRequest { path, provider: None, plugin: None, again: true, dry_run: true, apply })
}

/// Checks that one bundle gets the same verdict from verify, apply and import, both where its key is the person's own
/// and where it is trusted.
fn same_verdict(archives: [&TestCore; 2], bundle: &Path, what: &str) -> Result<bool> {
    let [own, trusted] = archives;
    let valid = valid_for_all(own, bundle, what)?;
    ensure!(valid == valid_for_all(trusted, bundle, what)?, "{what}: the verdicts differ");
    Ok(valid)
}

fn valid_for_all(there: &TestCore, bundle: &Path, what: &str) -> Result<bool> {
    let report = verify::path(
        bundle,
        &VerifyOptions { own_keys: there.exports.public_keys(), ..VerifyOptions::default() },
    );
    let valid = report.as_ref().is_ok_and(|report| report.valid);
    for apply in [Some(Apply { any_owner: true, ..Apply::default() }), None] {
        let applied = apply.is_some();
        for import in dry_run(there, bundle, apply)? {
            let merged = import.standing.is_some_and(|standing| standing != DocumentStanding::Untrusted);
            // A file that was written this moment waits and is reported by itself.
            let failed = matches!(import.status, ImportStatus::Failed | ImportStatus::Waiting);
            if let Some(report) = report.as_ref().ok().filter(|report| report.valid) {
                ensure!(
                    import.signer == report.signer && merged == report.signer.is_some(),
                    "{what}: {import:?}"
                );
            } else {
                ensure!(!merged && import.signer.is_none(), "{what}: {import:?}");
                let reason = import.reason.as_deref().unwrap_or_default();
                ensure!(!reason.contains("; signed by"), "{what}: {reason}");
                // Documents without a store make no claim.
                let reported = !import.warnings.is_empty() || failed || import.reason.is_none();
                ensure!(reported, "{what}: the import has no warning: {import:?}");
                ensure!(failed || !applied || import.reason.is_none(), "{what} was applied: {import:?}");
            }
        }
    }
    Ok(valid)
}

/// A modification of a bundle.
type BundleChange = fn(&Path) -> Result<()>;

/// Changes the words in the conversations of a bundle.
pub(super) fn rewrite_messages(bundle: &Path) -> Result<()> {
    for path in files(&bundle.join("conversations"))? {
        fs::write(&path, fs::read_to_string(&path)?.replace("\"text\": \"", "\"text\": \"I confess: "))?;
    }
    Ok(())
}

pub(super) fn remove_manifest(bundle: &Path) -> Result<()> {
    fs::remove_file(bundle.join("satchel-manifest.json"))?;
    Ok(fs::remove_file(bundle.join("satchel-manifest.sig"))?)
}

fn replace_in_file(path: &Path, from: &str, to: &str) -> Result<()> {
    let text = fs::read_to_string(path)?;
    ensure!(text.contains(from), "{from} is not in {path:?}");
    Ok(fs::write(path, text.replacen(from, to, 1))?)
}

#[test]
fn a_bundle_that_verify_refuses_has_no_signer_for_apply_and_import() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let (bundle, forged) = (folder.path().join("bundle"), folder.path().join("forged"));
    let made = here.export(&bundle)?;
    let there = TestCore::open(&folder.path().join("there"))?;
    there.trust(&made.signer)?;
    let both = [&here, &there];
    ensure!(same_verdict(both, &bundle, "as it was made")?, "our own bundle is not valid");
    let changes: [(&str, BundleChange); 11] = [
        ("rewritten messages", rewrite_messages),
        ("a forged conversation", |to| {
            let first = files(&to.join("conversations"))?.remove(0);
            let text = fs::read_to_string(&first)?;
            fs::write(
                to.join("conversations/forged.json"),
                text.replacen("\"id\": \"", "\"id\": \"forged-", 1),
            )?;
            Ok(())
        }),
        ("a forged relation", |to| {
            replace_in_file(
                &to.join("memory-store.json"),
                "\"type\": \"related_to\"",
                "\"type\": \"supersedes\"",
            )
        }),
        ("a forged attachment", |to| {
            fs::create_dir_all(to.join("attachments"))?;
            Ok(fs::write(to.join("attachments/forged.png"), "not a picture")?)
        }),
        ("a forged embedding", |to| replace_in_file(&to.join("embeddings.json"), "0.5", "0.75")),
        ("a removed conversation", |to| Ok(fs::remove_file(files(&to.join("conversations"))?.remove(0))?)),
        ("no manifest", remove_manifest),
        ("no signature of the manifest", |to| Ok(fs::remove_file(to.join("satchel-manifest.sig"))?)),
        ("a file that cannot be taken in", |to| {
            Ok(std::os::unix::fs::symlink("/etc/hostname", to.join("conversations/link.json"))?)
        }),
        ("an archive that does not open", |to| {
            Ok(fs::write(to.join("more.zip"), b"PK\x03\x04 and no more")?)
        }),
        ("a document below it", |to| {
            fs::create_dir(to.join("more"))?;
            let first = files(&to.join("conversations"))?.remove(0);
            fs::copy(first, to.join("more/again.json"))?;
            Ok(())
        }),
    ];
    for (what, change) in changes {
        drop(fs::remove_dir_all(&forged));
        copy(&bundle, &forged)?;
        change(&forged)?;
        ensure!(!same_verdict(both, &forged, what)?, "{what}: it is still valid");
    }
    let mut rng = Rng::new(31);
    let all = files(&bundle)?;
    for _ in 0..60 {
        let path = &all[usize::try_from(rng.below(all.len() as u64))?];
        let mut bytes = fs::read(path)?;
        let original = bytes.clone();
        let at = usize::try_from(rng.below(bytes.len() as u64))?;
        bytes[at] ^= 1 << rng.below(8);
        fs::write(path, &bytes)?;
        let valid = same_verdict(both, &bundle, &format!("byte {at} of {}", path.display()));
        fs::write(path, &original)?;
        ensure!(!valid?, "byte {at} of {} was changed", path.display());
    }
    Ok(())
}

#[test]
fn apply_merges_an_invalid_bundle_only_by_force_and_records_the_problems() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    here.export(&bundle)?;
    rewrite_messages(&bundle)?;
    let there = TestCore::open(&folder.path().join("there"))?;
    let refused = there.apply(&bundle)?;
    let reason = refused.reason.context("a reason")?;
    ensure!(
        refused.status == ImportStatus::Failed && reason.contains("is not the file that was signed"),
        "{reason}"
    );
    ensure!(there.store.revision().get() == 0, "the refused bundle was stored");
    let forced = there.apply_with(&bundle, false, Apply { force: true, ..Apply::default() })?;
    ensure!(forced.standing == Some(DocumentStanding::Forced) && forced.signer.is_none(), "{forced:?}");
    let stored = there.imports.get(&forced.id)?.context("a receipt")?;
    ensure!(
        stored.forced.iter().any(|problem| problem.contains("is not the file that was signed")),
        "{stored:?}"
    );
    Ok(())
}

/// Removes the line that says which program wrote the store.
pub(super) fn remove_exported_by(bundle: &Path) -> Result<()> {
    let store = bundle.join("memory-store.json");
    let lines = fs::read_to_string(&store)?;
    let lines: Vec<&str> = lines.lines().filter(|line| !line.contains("\"exported_by\"")).collect();
    Ok(fs::write(&store, lines.join("\n"))?)
}

fn coverage(report: &VerifyReport) -> [Coverage; 4] {
    report.coverage.by_part().map(|(_, coverage)| coverage)
}

#[test]
fn a_verdict_states_the_coverage_and_strict_requires_all_of_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    let request = ExportRequest { attachments: true, ..full_export(bundle.clone()) };
    let signer = here.export_with(&request)?.signer;
    let strict = VerifyOptions { strict: true, ..VerifyOptions::default() };
    let open = |report: &VerifyReport| report.issues.iter().filter(|one| one.check == "coverage").count();
    let report = verify::path(&bundle, &strict)?;
    ensure!(coverage(&report)[..3] == [Coverage::Signed; 3] && open(&report) == 0, "{report:?}");
    remove_manifest(&bundle)?;
    rewrite_messages(&bundle)?;
    let report = verify::path(&bundle, &VerifyOptions::default())?;
    ensure!(!report.valid, "a store written by Satchel is valid without its manifest: {report:?}");
    remove_exported_by(&bundle)?;
    let report = verify::path(&bundle, &VerifyOptions::default())?;
    ensure!(report.valid && report.signature == SignatureState::Valid, "{report:?}");
    ensure!(report.signer.as_deref() == Some(signer.as_str()));
    ensure!(
        coverage(&report)[..3] == [Coverage::Signed, Coverage::Unsigned, Coverage::Unsigned],
        "{report:?}"
    );
    let report = verify::path(&bundle, &strict)?;
    ensure!(!report.valid && open(&report) >= 3, "relations, conversations and vectors: {report:?}");
    Ok(())
}

#[test]
fn every_kind_of_bundle_that_we_write_is_completely_covered() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let out = |name: &str| full_export(folder.path().join(name));
    let platforms = MemoryQuery { platforms: vec!["claude".into()], ..MemoryQuery::default() };
    let requests = [
        out("full"),
        out("full.zip"),
        ExportRequest { conversations: false, ..out("memories") },
        ExportRequest { attachments: true, ..out("attachments") },
        ExportRequest { selection: Selection { strip: true, ..Selection::default() }, ..out("stripped") },
        ExportRequest { selection: Selection { memories: platforms, strip: false }, ..out("part") },
    ];
    let mut paths = Vec::new();
    for request in requests {
        here.export_with(&request)?;
        paths.push(request.output);
    }
    here.import(&demo_folder().join("gemini-export"))?;
    let delta = folder.path().join("delta");
    here.export_changes(None, &delta)?;
    paths.push(delta);
    for path in paths {
        let report = verify::path(&path, &VerifyOptions::default())?;
        ensure!(report.valid && report.manifest == SignatureState::Valid, "{path:?}: {:?}", report.issues);
        ensure!(!coverage(&report).contains(&Coverage::Unsigned), "{path:?}: {:?}", report.coverage);
    }
    Ok(())
}

/// The format of an attachment does not matter: office documents, for example, are ZIPs.
#[test]
fn a_bundle_with_zip_attachments_is_valid() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let document = write_zip(&["[Content_Types].xml", "word/document.xml"])?;
    let photos = write_zip(&["one.png", "two.png"])?;
    for (name, bytes, as_zip) in [("notes.docx", &document, false), ("photos.zip", &photos, true)] {
        let export = folder.path().join(format!("{name}-export"));
        copy(&demo_folder().join("chatgpt-export"), &export)?;
        fs::remove_file(export.join("file_hivephoto01-frame 7.png"))?;
        fs::write(export.join(format!("file_hivephoto01-{name}")), bytes)?;
        backdate(&export)?;
        let path = if as_zip { folder.path().join("export.zip") } else { export.clone() };
        if as_zip {
            pack(&export, &path)?;
        }
        let here = TestCore::open(&folder.path().join(format!("{name}-data")))?;
        let import = only_import(here.import(&path)?)?;
        ensure!(import.attachments == 1, "{name}: {import:?}");
        let bundle = folder.path().join(format!("{name}-bundle"));
        here.export_with(&ExportRequest { attachments: true, ..full_export(bundle.clone()) })?;
        let kept = files(&bundle.join("attachments"))?;
        ensure!(kept.iter().any(|path| fs::read(path).is_ok_and(|kept| kept == *bytes)), "{name}: {kept:?}");
        let report = verify::path(&bundle, &VerifyOptions::default())?;
        ensure!(
            report.valid && !coverage(&report).contains(&Coverage::Unsigned),
            "{name}: {:?}",
            report.issues
        );
        let there = TestCore::open(&folder.path().join(format!("{name}-there")))?;
        there.trust(report.signer.as_deref().context("a signer")?)?;
        let applied = there.apply(&bundle)?;
        ensure!(
            applied.standing == Some(DocumentStanding::Trusted) && applied.attachments == 1,
            "{name}: {applied:?}"
        );
    }
    Ok(())
}

fn write_zip(names: &[&str]) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for name in names {
        zip.start_file(*name, SimpleFileOptions::default())?;
        zip.write_all(name.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}

#[test]
fn a_bundle_in_nested_zips_gets_the_same_verdict() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let (bundle, outer) = (folder.path().join("bundle"), folder.path().join("outer"));
    let signer = here.export(&bundle)?.signer;
    let there = TestCore::open(&folder.path().join("there"))?;
    there.trust(&signer)?;
    let (packed, twice) = (folder.path().join("packed"), folder.path().join("packed/twice.zip"));
    fs::create_dir(&packed)?;
    let again = || {
        drop(fs::remove_dir_all(&outer));
        fs::create_dir(&outer)?;
        pack(&bundle, &outer.join("bundle.zip"))?;
        pack(&outer, &twice)?;
        backdate(&packed)
    };
    again()?;
    ensure!(same_verdict([&here, &there], &twice, "packed twice")?, "the repacked bundle is not valid");
    let options = VerifyOptions { base: Some(bundle.clone()), ..VerifyOptions::default() };
    ensure!(verify::path(&twice, &options).is_ok_and(|report| !report.valid), "a full export has no base");
    rewrite_messages(&bundle)?;
    again()?;
    ensure!(!same_verdict([&here, &there], &twice, "rewritten, and packed twice")?);
    Ok(())
}

#[test]
fn each_of_several_bundles_at_a_path_is_verified_and_listed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let both = folder.path().join("both");
    fs::create_dir(&both)?;
    let signer = here.export(&both.join("one"))?.signer;
    here.export(&both.join("two"))?;
    let report = verify::path(&both, &VerifyOptions::default())?;
    ensure!(
        report.valid && report.bundles.len() == 2 && report.signer.as_deref() == Some(&signer),
        "{report:?}"
    );
    rewrite_messages(&both.join("two"))?;
    let report = verify::path(&both, &VerifyOptions::default())?;
    let verdicts: Vec<_> = report.bundles.iter().map(|part| (part.path.as_str(), part.valid)).collect();
    assert_eq!(verdicts, [("one/memory-store.json", true), ("two/memory-store.json", false)]);
    ensure!(!report.valid && report.manifest == SignatureState::Invalid, "{report:?}");
    let there = TestCore::open(&folder.path().join("there"))?;
    there.trust(&signer)?;
    let taken = dry_run(&there, &both, None)?;
    let standings: Vec<_> = taken.iter().map(|import| import.standing).collect();
    assert_eq!(standings, [Some(DocumentStanding::Trusted), Some(DocumentStanding::Untrusted)]);
    let applied = dry_run(&there, &both, Some(Apply::default()))?;
    ensure!(applied[1].status == ImportStatus::Failed, "{applied:?}");
    // Documents beside a bundle are checked, but no signature covers them.
    let loose = folder.path().join("loose");
    fs::create_dir(&loose)?;
    here.export(&loose.join("bundle"))?;
    let first = files(&loose.join("bundle/conversations"))?.remove(0);
    fs::copy(&first, loose.join("talk.json"))?;
    let report = verify::path(&loose, &VerifyOptions::default())?;
    ensure!(report.bundles.len() == 2 && report.signature == SignatureState::Absent, "{report:?}");
    ensure!(report.coverage.conversations == Coverage::Unsigned);
    ensure!(
        !verify::path(&loose, &VerifyOptions { signers: vec![signer], ..VerifyOptions::default() })?.valid
    );
    fs::write(loose.join("talk.json"), fs::read_to_string(first)?.replace("\"role\"", "\"rule\""))?;
    ensure!(
        !verify::path(&loose, &VerifyOptions::default())?.valid,
        "an invalid document beside the bundle was accepted"
    );
    let base =
        verify::path(&both.join("one"), &VerifyOptions { base: Some(both), ..VerifyOptions::default() });
    ensure!(base.is_err_and(|error| error.to_string().contains("more than one bundle")));
    Ok(())
}

#[test]
fn a_memory_with_a_duplicate_key_has_no_checksum_and_no_signer() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    let signer = here.export(&bundle)?.signer;
    remove_manifest(&bundle)?;
    let store = bundle.join("memory-store.json");
    replace_in_file(&store, "\"exported_by\": \"satchel/", "\"exported_by\": \"other/")?;
    ensure!(
        verify::path(&store, &VerifyOptions::default())?.valid,
        "the store is not valid by its own signature"
    );
    // The last of the two keys was signed, while a reader that takes the first sees another text.
    replace_in_file(
        &store,
        "\"content\": \"",
        "\"content\": \"I owe them everything\",\n      \"content\": \"",
    )?;
    let there = TestCore::open(&folder.path().join("there"))?;
    there.trust(&signer)?;
    ensure!(!valid_for_all(&there, &store, "a key twice")?);
    let import = only_import(there.import(&store)?)?;
    ensure!(import.memories.skipped == 1 && import.memories.balanced(), "{import:?}");
    ensure!(import.skipped[0].reason.contains("stands twice"), "{import:?}");
    Ok(())
}
