//! Checks that a second run gives the same, also with the notes that earlier runs left on pieces of their input.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use satchel_host::{Emitted, MemoEntry, PieceMemo};
use satchel_importer::testkit::{ProducedExport, by_kind, first_difference, without_locators};
use satchel_pam::record::Line;
use serde_json::{Value, json};

use super::{
    CheckError, MemoryFiles,
    output::{Ending, Sandbox, SandboxOutput},
    report::{CheckKind, CheckResult},
};

/// The second runs of all fixtures, and what the importer noted in them.
#[derive(Default)]
pub(super) struct Repeats(Arc<Notes>);

/// For the digest of a piece: the importer's note, and the lines that it emitted.
type NotedPieces = BTreeMap<[u8; 32], (Vec<u8>, Vec<Line>)>;

/// The notes of earlier runs.
#[derive(Default)]
struct Notes(Mutex<NotedPieces>);

impl Notes {
    fn pieces(&self) -> MutexGuard<'_, NotedPieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PieceMemo for Notes {
    fn recall(&self, digest: &[u8; 32]) -> Option<MemoEntry> {
        let note = self.pieces().get(digest)?.0.clone();
        Some(MemoEntry { note, result: digest.to_vec() })
    }
}

impl Repeats {
    /// Whether the importer left no notes.
    pub(super) fn is_empty(&self) -> bool {
        self.0.pieces().is_empty()
    }

    /// Runs the importer again without notes, and again with those of earlier fixtures.
    pub(super) fn check(
        &self,
        sandbox: &Sandbox<'_>,
        files: &MemoryFiles,
        first: &SandboxOutput,
    ) -> Result<CheckResult, CheckError> {
        let again = sandbox.produce(files)?;
        let mut faults = differences(first, &again);
        faults.extend(self.check_notes(sandbox, files, first)?);
        Ok(CheckResult::new(CheckKind::Repeat, faults))
    }

    /// Runs the importer with the notes of earlier runs. The fixtures have the same pieces beside other files, so an
    /// incomplete note changes the output.
    pub(super) fn check_notes(
        &self,
        sandbox: &Sandbox<'_>,
        files: &MemoryFiles,
        first: &SandboxOutput,
    ) -> Result<Vec<String>, CheckError> {
        let mut faults = Vec::new();
        for export in &first.produced.exports {
            let mut piece_start = 0;
            let mut follow = |emitted: &Emitted, lines: &mut Vec<Line>| match emitted {
                Emitted::PieceStarted => piece_start = lines.len(),
                Emitted::PieceUnchanged(digest) => lines.extend(self.noted_lines(digest)),
                Emitted::PieceNoted { digest, note } => {
                    self.note(*digest, note.clone(), &lines[piece_start..]);
                }
                _ => {}
            };
            let memo = Arc::clone(&self.0) as Arc<dyn PieceMemo>;
            let (lines, ended) = sandbox.run(files, &export.detection, Some(memo), &mut follow)?;
            faults.extend(noted_difference(export, &lines, ended.err()));
        }
        Ok(faults)
    }

    fn noted_lines(&self, digest: &[u8]) -> Vec<Line> {
        let digest = <[u8; 32]>::try_from(digest).ok();
        let pieces = self.0.pieces();
        digest.and_then(|digest| pieces.get(&digest)).map(|(_, lines)| lines.clone()).unwrap_or_default()
    }

    fn note(&self, digest: [u8; 32], note: Vec<u8>, lines: &[Line]) {
        if lines.iter().all(rememberable) {
            self.0.pieces().insert(digest, (note, lines.to_vec()));
        }
    }
}

/// Whether an import remembers a piece for which this line was emitted.
fn rememberable(line: &Line) -> bool {
    match line {
        Line::Conversation(_) => true,
        Line::Evidence(evidence) => evidence.at.is_some(),
        _ => false,
    }
}

/// Returns the first difference between two runs that had the same input.
fn differences(first: &SandboxOutput, again: &SandboxOutput) -> Vec<String> {
    if first == again {
        return Vec::new();
    }
    let json = |output: &SandboxOutput| output.produced.to_json().unwrap_or_default();
    let difference = first_difference(&json(first), &json(again));
    let other = || format!("it ended differently: {:?}, then {:?}", first.crashes(), again.crashes());
    vec![format!("a second run gives something else: {}", difference.unwrap_or_else(other))]
}

/// The lines by kind and without locators: a piece may be in another place, and where a piece ends, a conversation is
/// delivered before what follows it.
fn comparable(lines: &[Line]) -> Value {
    by_kind(json!([{ "lines": without_locators(lines) }]))
}

/// Returns how a run with notes differs from one without.
fn noted_difference(export: &ProducedExport, lines: &[Line], ended: Option<Ending>) -> Option<String> {
    let error = match ended {
        Some(Ending::Crashed(crash)) => Some(crash),
        Some(Ending::Reported(error)) if Some(&error) != export.error.as_ref() => Some(error.to_string()),
        Some(Ending::Reported(_)) | None => None,
    };
    let difference = first_difference(&comparable(&export.lines), &comparable(lines));
    let difference = difference.or(error)?;
    Some(format!("with its notes on pieces that it read before, it gives something else: {difference}"))
}

#[cfg(test)]
mod tests {
    use satchel_importer::testkit::Produced;
    use satchel_pam::record::Warning;

    use super::*;

    #[test]
    fn the_difference_of_two_runs_is_named() {
        let output = |message: &str| {
            let (locator, message) = ("a.json".to_owned(), message.to_owned());
            let lines = vec![Line::Warning(Warning { locator, message })];
            let detection = satchel_importer::Detection {
                format: "f".to_owned(),
                confidence: 100,
                files: Vec::new(),
                account: None,
            };
            let produced = Produced { exports: vec![ProducedExport { detection, lines, error: None }] };
            SandboxOutput::of(produced)
        };
        assert_eq!(differences(&output("tea"), &output("tea")), [""; 0]);
        let found = differences(&output("tea"), &output("rye"));
        assert!(found[0].contains("/0/lines/0/warning/message"), "{found:?}");
    }
}
