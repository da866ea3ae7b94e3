//! Assigns each file to one of the importers that claim it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use satchel_pam::record::Warning;

use super::{Claim, DetectedExport};

/// Files of a contested export that a warning names.
const NAMED: usize = 3;

/// Assigns each file to the claim with the highest confidence; among equal ones, to a built-in importer before an
/// installed one, then by name. A warning tells which importer lost files to which other one, if one of them is
/// installed.
pub(super) fn assign_files(mut claims: Vec<Claim>, notes: &mut Vec<Warning>) -> Vec<DetectedExport> {
    claims.sort_by_cached_key(|claim| {
        let reader = &claim.found.reader;
        (Reverse(claim.confidence), reader.installed().is_some(), reader.software())
    });
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    let mut lost: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    for (at, claim) in claims.iter_mut().enumerate() {
        claim.found.files.retain(|file| match owners.get(file) {
            Some(owner) => {
                lost.entry((*owner, at)).or_default().push(file.clone());
                false
            }
            None => owners.insert(file.clone(), at).is_none(),
        });
    }
    notes.extend(
        lost.iter().filter_map(|((owner, other), files)| contested(&claims[*owner], &claims[*other], files)),
    );
    let mut all: Vec<DetectedExport> = claims.into_iter().map(|claim| claim.found).collect();
    all.retain(|found| !found.files.is_empty());
    all
}

fn contested(owner: &Claim, other: &Claim, files: &[String]) -> Option<Warning> {
    let (read, left) = (&owner.found.reader, &other.found.reader);
    if read.software() == left.software() || (read.installed().is_none() && left.installed().is_none()) {
        return None;
    }
    let why = if owner.confidence > other.confidence {
        "is more certain"
    } else if read.installed().is_none() {
        "comes with satchel"
    } else {
        "comes first by name"
    };
    let names: BTreeSet<&String> = files.iter().take(NAMED).collect();
    let locator = names.into_iter().cloned().collect::<Vec<_>>().join(", ");
    let (software, other) = (read.software(), left.software());
    let name = other.split('/').next().unwrap_or_default();
    let message = format!(
        "both {software} and {other} recognised it; it was read by {software}, which {why}. `--plugin {name}` chooses \
         the other"
    );
    Some(Warning { locator, message })
}
