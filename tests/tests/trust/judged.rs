//! One verdict: `verify`, `apply` and `import` judge the same files, and if one refuses a bundle, none treats it as its
//! signer's.

use std::{
    fs,
    io::{Cursor, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, Coverage, Options, Report, Signed};
use satchel_core::{
    export::{ExportRequest, Selection},
    ingest::{
        Apply, ImportRequest,
        receipt::{ImportRecord, ImportStatus, Standing},
    },
};
use satchel_store::MemoryQuery;
use satchel_tests::{
    archive::{Archive, demo, only, whole},
    exports::{age, pack},
    generate::Dice,
};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::{copy, files, filled};

fn run(archive: &Archive, path: &Path, apply: Option<Apply>) -> Result<Vec<ImportRecord>> {
    let path = path.to_owned();
    let apply = apply.map(|apply| Ok::<_, anyhow::Error>(Apply { owner: archive.exports.owner()?, ..apply }));
    let apply = apply.transpose()?;
    archive.run(ImportRequest { path, provider: None, again: true, dry_run: true, apply })
}

/// Checks that one bundle gets the same verdict from verify, apply and import, both where its key is the person's own
/// and where it is trusted.
fn law(archives: [&Archive; 2], bundle: &Path, what: &str) -> Result<bool> {
    let [own, trusted] = archives;
    let valid = holds(own, bundle, what)?;
    ensure!(valid == holds(trusted, bundle, what)?, "{what}: a verdict depends on who asks");
    Ok(valid)
}

fn holds(there: &Archive, bundle: &Path, what: &str) -> Result<bool> {
    let report = verify::path(bundle, &Options { own_keys: there.exports.signers(), ..Options::default() });
    let valid = report.as_ref().is_ok_and(|report| report.valid);
    for apply in [Some(Apply { any_owner: true, ..Apply::default() }), None] {
        let applied = apply.is_some();
        for import in run(there, bundle, apply)? {
            let merged = import.standing.is_some_and(|standing| standing != Standing::Stranger);
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
                let told = !import.warnings.is_empty() || failed || import.reason.is_none();
                ensure!(told, "{what}: nothing is said of it: {import:?}");
                ensure!(failed || !applied || import.reason.is_none(), "{what} was applied: {import:?}");
            }
        }
    }
    Ok(valid)
}

/// A modification of a bundle.
type Change = fn(&Path) -> Result<()>;

/// Changes the words in the conversations of a bundle.
pub(super) fn rewrite(bundle: &Path) -> Result<()> {
    for path in files(&bundle.join("conversations"))? {
        fs::write(&path, fs::read_to_string(&path)?.replace("\"text\": \"", "\"text\": \"I confess: "))?;
    }
    Ok(())
}

pub(super) fn without_manifest(bundle: &Path) -> Result<()> {
    fs::remove_file(bundle.join("satchel-manifest.json"))?;
    Ok(fs::remove_file(bundle.join("satchel-manifest.sig"))?)
}

fn edit(path: &Path, from: &str, to: &str) -> Result<()> {
    let text = fs::read_to_string(path)?;
    ensure!(text.contains(from), "{from} is not in {path:?}");
    Ok(fs::write(path, text.replacen(from, to, 1))?)
}

#[test]
fn what_verify_refuses_is_the_signers_for_neither_apply_nor_import() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let (bundle, forged) = (folder.path().join("bundle"), folder.path().join("forged"));
    let made = here.export(&bundle)?;
    let there = Archive::open(&folder.path().join("there"))?;
    there.trust(&made.signer)?;
    let both = [&here, &there];
    ensure!(law(both, &bundle, "as it was made")?, "our own bundle does not hold");
    let changes: [(&str, Change); 11] = [
        ("rewritten messages", rewrite),
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
            edit(&to.join("memory-store.json"), "\"type\": \"related_to\"", "\"type\": \"supersedes\"")
        }),
        ("a forged attachment", |to| {
            fs::create_dir_all(to.join("attachments"))?;
            Ok(fs::write(to.join("attachments/forged.png"), "not a picture")?)
        }),
        ("a forged embedding", |to| edit(&to.join("embeddings.json"), "0.5", "0.75")),
        ("a removed conversation", |to| Ok(fs::remove_file(files(&to.join("conversations"))?.remove(0))?)),
        ("no manifest", without_manifest),
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
        ensure!(!law(both, &forged, what)?, "{what}: it is still valid");
    }
    let mut dice = Dice::new(31);
    let all = files(&bundle)?;
    for _ in 0..60 {
        let path = &all[usize::try_from(dice.below(all.len() as u64))?];
        let mut bytes = fs::read(path)?;
        let kept = bytes.clone();
        let at = usize::try_from(dice.below(bytes.len() as u64))?;
        bytes[at] ^= 1 << dice.below(8);
        fs::write(path, &bytes)?;
        let valid = law(both, &bundle, &format!("byte {at} of {}", path.display()));
        fs::write(path, &kept)?;
        ensure!(!valid?, "byte {at} of {} was changed", path.display());
    }
    Ok(())
}

#[test]
fn apply_takes_what_does_not_hold_only_by_force_and_the_ledger_keeps_why() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    here.export(&bundle)?;
    rewrite(&bundle)?;
    let there = Archive::open(&folder.path().join("there"))?;
    let refused = there.apply(&bundle)?;
    let reason = refused.reason.context("a reason")?;
    ensure!(
        refused.status == ImportStatus::Failed && reason.contains("is not the file that was signed"),
        "{reason}"
    );
    ensure!(there.store.revision().get() == 0, "what was refused is here");
    let forced = there.apply_by(&bundle, false, Apply { force: true, ..Apply::default() })?;
    ensure!(forced.standing == Some(Standing::Forced) && forced.signer.is_none(), "{forced:?}");
    let kept = there.imports.get(&forced.id)?.context("a receipt")?;
    ensure!(
        kept.forced.iter().any(|problem| problem.contains("is not the file that was signed")),
        "{kept:?}"
    );
    Ok(())
}

/// Removes the line that says which program wrote the store.
pub(super) fn without_exported_by(bundle: &Path) -> Result<()> {
    let store = bundle.join("memory-store.json");
    let lines = fs::read_to_string(&store)?;
    let lines: Vec<&str> = lines.lines().filter(|line| !line.contains("\"exported_by\"")).collect();
    Ok(fs::write(&store, lines.join("\n"))?)
}

fn covered(report: &Report) -> [Coverage; 4] {
    report.covered.named().map(|(_, coverage)| coverage)
}

#[test]
fn a_verdict_says_what_is_covered_and_strict_wants_all_of_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    let request = ExportRequest { attachments: true, ..whole(bundle.clone()) };
    let signer = here.export_by(&request)?.signer;
    let strict = Options { strict: true, ..Options::default() };
    let open = |report: &Report| report.issues.iter().filter(|one| one.check == "coverage").count();
    let report = verify::path(&bundle, &strict)?;
    ensure!(covered(&report)[..3] == [Coverage::Signed; 3] && open(&report) == 0, "{report:?}");
    without_manifest(&bundle)?;
    rewrite(&bundle)?;
    let report = verify::path(&bundle, &Options::default())?;
    ensure!(!report.valid, "it says that Satchel wrote it, and has no manifest: {report:?}");
    without_exported_by(&bundle)?;
    let report = verify::path(&bundle, &Options::default())?;
    ensure!(report.valid && report.signature == Signed::Valid, "{report:?}");
    ensure!(report.signer.as_deref() == Some(signer.as_str()));
    ensure!(
        covered(&report)[..3] == [Coverage::Signed, Coverage::Unsigned, Coverage::Unsigned],
        "{report:?}"
    );
    let report = verify::path(&bundle, &strict)?;
    ensure!(!report.valid && open(&report) >= 3, "relations, conversations and vectors: {report:?}");
    Ok(())
}

#[test]
fn every_kind_of_bundle_that_we_write_is_covered_whole() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let out = |name: &str| whole(folder.path().join(name));
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
        here.export_by(&request)?;
        paths.push(request.output);
    }
    here.import(&demo().join("gemini-export"))?;
    let delta = folder.path().join("delta");
    here.export_changes(None, &delta)?;
    paths.push(delta);
    for path in paths {
        let report = verify::path(&path, &Options::default())?;
        ensure!(report.valid && report.manifest == Signed::Valid, "{path:?}: {:?}", report.issues);
        ensure!(!covered(&report).contains(&Coverage::Unsigned), "{path:?}: {:?}", report.covered);
    }
    Ok(())
}

/// The format of an attachment does not matter: office documents, for example, are ZIPs.
#[test]
fn a_bundle_with_packed_attachments_is_whole() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let document = packed(&["[Content_Types].xml", "word/document.xml"])?;
    let photos = packed(&["one.png", "two.png"])?;
    for (name, bytes, as_zip) in [("notes.docx", &document, false), ("photos.zip", &photos, true)] {
        let export = folder.path().join(format!("{name}-export"));
        copy(&demo().join("chatgpt-export"), &export)?;
        fs::remove_file(export.join("file_hivephoto01-frame 7.png"))?;
        fs::write(export.join(format!("file_hivephoto01-{name}")), bytes)?;
        age(&export)?;
        let path = if as_zip { folder.path().join("export.zip") } else { export.clone() };
        if as_zip {
            pack(&export, &path)?;
        }
        let here = Archive::open(&folder.path().join(format!("{name}-data")))?;
        let import = only(here.import(&path)?)?;
        ensure!(import.attachments == 1, "{name}: {import:?}");
        let bundle = folder.path().join(format!("{name}-bundle"));
        here.export_by(&ExportRequest { attachments: true, ..whole(bundle.clone()) })?;
        let kept = files(&bundle.join("attachments"))?;
        ensure!(kept.iter().any(|path| fs::read(path).is_ok_and(|kept| kept == *bytes)), "{name}: {kept:?}");
        let report = verify::path(&bundle, &Options::default())?;
        ensure!(
            report.valid && !covered(&report).contains(&Coverage::Unsigned),
            "{name}: {:?}",
            report.issues
        );
        let there = Archive::open(&folder.path().join(format!("{name}-there")))?;
        there.trust(report.signer.as_deref().context("a signer")?)?;
        let applied = there.apply(&bundle)?;
        ensure!(
            applied.standing == Some(Standing::Trusted) && applied.attachments == 1,
            "{name}: {applied:?}"
        );
    }
    Ok(())
}

fn packed(names: &[&str]) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for name in names {
        zip.start_file(*name, SimpleFileOptions::default())?;
        zip.write_all(name.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}

#[test]
fn a_bundle_that_was_packed_once_more_is_judged_as_it_is() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let (bundle, outer) = (folder.path().join("bundle"), folder.path().join("outer"));
    let signer = here.export(&bundle)?.signer;
    let there = Archive::open(&folder.path().join("there"))?;
    there.trust(&signer)?;
    let (packed, twice) = (folder.path().join("packed"), folder.path().join("packed/twice.zip"));
    fs::create_dir(&packed)?;
    let again = || {
        drop(fs::remove_dir_all(&outer));
        fs::create_dir(&outer)?;
        pack(&bundle, &outer.join("bundle.zip"))?;
        pack(&outer, &twice)?;
        age(&packed)
    };
    again()?;
    ensure!(law([&here, &there], &twice, "packed twice")?, "it is what it was");
    let options = Options { base: Some(bundle.clone()), ..Options::default() };
    ensure!(verify::path(&twice, &options).is_ok_and(|report| !report.valid), "a full export has no base");
    rewrite(&bundle)?;
    again()?;
    ensure!(!law([&here, &there], &twice, "rewritten, and packed twice")?);
    Ok(())
}

#[test]
fn each_of_several_bundles_at_a_path_is_verified_and_listed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let both = folder.path().join("both");
    fs::create_dir(&both)?;
    let signer = here.export(&both.join("one"))?.signer;
    here.export(&both.join("two"))?;
    let report = verify::path(&both, &Options::default())?;
    ensure!(
        report.valid && report.bundles.len() == 2 && report.signer.as_deref() == Some(&signer),
        "{report:?}"
    );
    rewrite(&both.join("two"))?;
    let report = verify::path(&both, &Options::default())?;
    let verdicts: Vec<_> = report.bundles.iter().map(|part| (part.path.as_str(), part.valid)).collect();
    assert_eq!(verdicts, [("one/memory-store.json", true), ("two/memory-store.json", false)]);
    ensure!(!report.valid && report.manifest == Signed::Invalid, "{report:?}");
    let there = Archive::open(&folder.path().join("there"))?;
    there.trust(&signer)?;
    let taken = run(&there, &both, None)?;
    let standings: Vec<_> = taken.iter().map(|import| import.standing).collect();
    assert_eq!(standings, [Some(Standing::Trusted), Some(Standing::Stranger)]);
    let applied = run(&there, &both, Some(Apply::default()))?;
    ensure!(applied[1].status == ImportStatus::Failed, "{applied:?}");
    // Documents beside a bundle are checked, but no signature covers them.
    let loose = folder.path().join("loose");
    fs::create_dir(&loose)?;
    here.export(&loose.join("bundle"))?;
    let first = files(&loose.join("bundle/conversations"))?.remove(0);
    fs::copy(&first, loose.join("talk.json"))?;
    let report = verify::path(&loose, &Options::default())?;
    ensure!(report.bundles.len() == 2 && report.signature == Signed::Absent, "{report:?}");
    ensure!(report.covered.conversations == Coverage::Unsigned);
    ensure!(!verify::path(&loose, &Options { signers: vec![signer], ..Options::default() })?.valid);
    fs::write(loose.join("talk.json"), fs::read_to_string(first)?.replace("\"role\"", "\"rule\""))?;
    ensure!(!verify::path(&loose, &Options::default())?.valid, "a document beside it does not hold");
    let base = verify::path(&both.join("one"), &Options { base: Some(both), ..Options::default() });
    ensure!(base.is_err_and(|error| error.to_string().contains("more than one bundle")));
    Ok(())
}

#[test]
fn a_memory_with_a_key_twice_has_no_checksum_and_so_no_signer() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    let signer = here.export(&bundle)?.signer;
    without_manifest(&bundle)?;
    let store = bundle.join("memory-store.json");
    edit(&store, "\"exported_by\": \"satchel/", "\"exported_by\": \"other/")?;
    ensure!(verify::path(&store, &Options::default())?.valid, "the store stands by its own signature");
    // The last of the two keys was signed, while a reader that takes the first sees another text.
    edit(&store, "\"content\": \"", "\"content\": \"I owe them everything\",\n      \"content\": \"")?;
    let there = Archive::open(&folder.path().join("there"))?;
    there.trust(&signer)?;
    ensure!(!holds(&there, &store, "a key twice")?);
    let import = only(there.import(&store)?)?;
    ensure!(import.memories.skipped == 1 && import.memories.balanced(), "{import:?}");
    ensure!(import.skipped[0].reason.contains("stands twice"), "{import:?}");
    Ok(())
}
