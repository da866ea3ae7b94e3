//! Describes files that no importer recognises, so that nothing is ignored silently.

use std::{collections::BTreeMap, ffi::OsStr, io::Read as _, path::Path};

use satchel_pam::record::Warning;
use satchel_source::{Bundle, FileSet as _, HEAD_BYTES, Limits, SniffedContent, Source, SourceError};

/// Names that a message lists before it only counts the others.
const NAMED: usize = 8;
/// Maximum number of files that are examined; a folder may hold a hundred thousand photos.
const LOOKED_AT: usize = 2_000;

/// Describes what a file or folder in `root` appears to be, from the first bytes of the file or of the files in it.
///
/// # Errors
/// When it cannot be opened.
pub fn describe_file(root: &Path, name: &OsStr, limits: &Limits) -> Result<String, SourceError> {
    let bundle = Source::beneath(root, name)?.open(limits)?;
    let kinds = kinds(&bundle, |_| false);
    Ok(match (kinds.into_iter().collect::<Vec<_>>().as_slice(), bundle.list()) {
        ([], _) => "nothing that can be read".to_owned(),
        ([(Some(kind), _)], [one]) if OsStr::new(&one.path) == name => kind.to_string(),
        (kinds, _) => {
            let kinds = kinds.iter().take(NAMED).map(|(kind, names)| shown(kind.as_ref(), names));
            kinds.collect::<Vec<_>>().join("; ")
        }
    })
}

/// Returns a warning for each kind of file that is not `claimed`, and one for each file or archive that could not be
/// read.
pub(super) fn warnings(bundle: &Bundle, claimed: impl Fn(&str) -> bool) -> Vec<Warning> {
    let kinds = kinds(bundle, claimed).into_iter().map(|(kind, names)| Warning {
        locator: "files".into(),
        message: format!("not read, as no importer knows them: {}", shown(kind.as_ref(), &names)),
    });
    let unread = bundle.unread().iter().map(|unread| Warning {
        locator: unread.name.clone(),
        message: format!("not read: {}", unread.reason),
    });
    kinds.chain(unread).collect()
}

/// Returns the reason why nothing in `bundle` was recognised, with a description of what it holds.
pub(super) fn reason(bundle: &Bundle, notes: &[Warning]) -> String {
    let kinds = kinds(bundle, |_| false);
    let mut reason = if kinds.is_empty() {
        "there is no file in it".to_owned()
    } else {
        let kinds: Vec<String> =
            kinds.iter().take(NAMED).map(|(kind, names)| shown(kind.as_ref(), names)).collect();
        format!("no importer knows these files: {}", kinds.join("; "))
    };
    for unread in bundle.unread().iter().take(NAMED) {
        reason.push_str(&format!("; {:?} was left out, as {}", unread.name, unread.reason));
    }
    for note in notes {
        reason.push_str(&format!("; {}: {}", note.locator, note.message));
    }
    reason
}

/// Groups the names of files that are not `claimed` by what they appear to be; `None` if not examined or not readable.
fn kinds(bundle: &Bundle, claimed: impl Fn(&str) -> bool) -> BTreeMap<Option<SniffedContent>, Vec<&str>> {
    let mut kinds: BTreeMap<Option<SniffedContent>, Vec<&str>> = BTreeMap::new();
    let rest = bundle.list().iter().map(|entry| entry.path.as_str()).filter(|path| !claimed(path));
    for (at, path) in rest.enumerate() {
        let kind = (at < LOOKED_AT).then(|| look(bundle, path)).flatten();
        kinds.entry(kind).or_default().push(path);
    }
    kinds
}

fn look(bundle: &Bundle, path: &str) -> Option<SniffedContent> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let reader = bundle.open(path, 0).ok()?;
    reader.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    Some(SniffedContent::of(&head))
}

/// Formats the first names, with their kind.
fn shown(kind: Option<&SniffedContent>, names: &[&str]) -> String {
    let mut list = names.iter().take(NAMED).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        list.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    kind.map_or_else(|| format!("{list} (not looked at)"), |kind| format!("{list} ({kind})"))
}
