//! Documents applied one after the other: the same outcome as the second implementation, in Python, has.

use std::collections::BTreeMap;

use satchel_pam::{
    memory::Status,
    merge::{self, BaseError, Ledger, State, Verdict},
    parse::{self, ChecksumStatus, StoreReading},
    store::{ExportType, MemoryStore, StoreHeader},
};
use serde_json::{Map, Value, json};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../vectors/merge.json")).unwrap()
}

/// What a store remembers of its past.
#[derive(Default)]
struct Past {
    owner: Option<String>,
    exports: BTreeMap<String, ExportType>,
}

impl Past {
    fn check(&self, header: &StoreHeader) -> Result<merge::BaseStatus, BaseError> {
        let export = |id: &str| self.exports.get(id).copied();
        merge::check_base(header, Ledger { owner: self.owner.as_deref(), export: &export }, false, false)
    }
}

fn apply(state: &mut State, past: &mut Past, reading: &StoreReading) -> Value {
    let document = reading.document.as_ref().unwrap();
    let problems = problems(reading, document);
    if let Err(refused) = past.check(&document.header) {
        let name = match refused {
            BaseError::Owner { .. } => "owner",
            BaseError::UnknownBase(_) => "unknown_base",
            BaseError::NoBase => "no_base",
            other => panic!("{other}"),
        };
        return json!({"refused": name, "problems": problems});
    }
    past.owner = Some(document.header.owner.id.clone());
    past.exports.extend(document.header.export_id.clone().map(|id| (id, document.header.export_type)));
    let plan = state.merge(document);
    let jumps = plan.memories.iter().filter(|(_, verdict)| verdict.forbidden.is_some());
    json!({
        "refused": null,
        "memories": reasons(&plan.memories),
        "relations": reasons(&plan.relations),
        "index": reasons(&plan.index),
        "jumps": jumps.map(|(id, _)| id).collect::<Vec<_>>(),
        "problems": problems,
    })
}

fn problems(reading: &StoreReading, document: &MemoryStore) -> Vec<&'static str> {
    let mismatch = matches!(reading.checksum, ChecksumStatus::Mismatch { .. });
    let total = document.integrity.as_ref().map(|integrity| integrity.total_memories);
    let checksum = mismatch.then_some("the checksum is not of the memories");
    let count = (total != Some(reading.count)).then_some("total_memories is not how many there are");
    checksum.into_iter().chain(count).collect()
}

fn reasons(verdicts: &[(String, Verdict)]) -> Value {
    let mut found: Map<String, Value> = Map::new();
    for (id, verdict) in verdicts {
        let reason = verdict.reason.as_str();
        let text = found
            .get(id)
            .and_then(Value::as_str)
            .map_or_else(|| reason.to_owned(), |before| format!("{before}, {reason}"));
        found.insert(id.clone(), text.into());
    }
    found.into()
}

fn held(state: &State) -> Value {
    let mut statuses: BTreeMap<&str, u64> = BTreeMap::new();
    for memory in state.memories.values() {
        *statuses.entry(memory.status.as_str()).or_default() += 1;
    }
    let conversations: BTreeMap<_, _> =
        state.index.iter().map(|(id, entry)| (id, &entry.derived_memories)).collect();
    json!({
        "checksum": state.checksum().unwrap().to_string(),
        "total_memories": state.memories.len(),
        "statuses": statuses,
        "relations": state.relations.keys().collect::<Vec<_>>(),
        "conversations": conversations,
    })
}

#[test]
fn every_case_ends_as_in_the_second_implementation() {
    let vectors = vectors();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() > 20);
    for case in cases {
        let (mut state, mut past) = (State::default(), Past::default());
        let documents = case["documents"].as_array().unwrap();
        let done: Vec<Value> = documents
            .iter()
            .map(|document| {
                apply(&mut state, &mut past, &parse::store_reading(document.to_string().as_bytes()))
            })
            .collect();
        assert_eq!(Value::from(done), case["expected"]["done"], "{}", case["name"]);
        assert_eq!(held(&state), case["expected"]["held"], "{}", case["name"]);
    }
}

/// The cases say something about every reason and every refusal.
#[test]
fn the_cases_cover_every_reason() {
    let vectors = vectors();
    let expected = vectors["cases"].as_array().unwrap().iter().map(|case| case["expected"].to_string());
    let text: String = expected.collect();
    let refusals = ["owner", "unknown_base", "no_base"];
    let names = merge::Reason::ALL.iter().map(|reason| reason.as_str()).chain(refusals);
    for name in names {
        assert!(text.contains(name), "{name}");
    }
}

fn header(id: &str, export_type: ExportType, base: Option<&str>) -> StoreHeader {
    let owner = satchel_pam::store::Owner { id: "ines".to_owned(), ..Default::default() };
    StoreHeader {
        export_id: Some(id.to_owned()),
        export_type,
        base_export_id: base.map(str::to_owned),
        ..StoreHeader::new(owner)
    }
}

#[test]
fn what_a_document_stands_on_is_told() {
    use merge::BaseStatus;
    let export = |id: &str| match id {
        "full" => Some(ExportType::Full),
        "delta" => Some(ExportType::Incremental),
        _ => None,
    };
    let ledger = Ledger { owner: Some("ines"), export: &export };
    let check = |header: &StoreHeader| merge::check_base(header, ledger, false, false);
    let (full, incremental) = (ExportType::Full, ExportType::Incremental);
    assert_eq!(check(&header("new", full, None)), Ok(BaseStatus::Full));
    assert_eq!(check(&header("full", full, None)), Ok(BaseStatus::AlreadyApplied));
    assert_eq!(check(&header("delta", incremental, Some("lost"))), Ok(BaseStatus::AlreadyApplied));
    assert_eq!(check(&header("new", incremental, Some("full"))), Ok(BaseStatus::OnFull));
    assert_eq!(check(&header("new", incremental, Some("delta"))), Ok(BaseStatus::OnDelta));
    // A delta that calls itself by the id of a full export was not applied before.
    assert_eq!(check(&header("full", incremental, None)), Err(BaseError::NoBase));
    assert_eq!(check(&header("new", incremental, Some(""))), Err(BaseError::NoBase));
}

#[test]
fn a_refusal_says_what_to_do_and_can_be_overruled() {
    let ledger = Ledger { owner: Some("mira"), export: &|_| None };
    let delta = header("new", ExportType::Incremental, Some("lost"));
    let owner = merge::check_base(&delta, ledger, false, true).unwrap_err();
    assert_eq!(owner.to_string(), "this is an export of owner \"ines\", and the store is of \"mira\"");
    let base = merge::check_base(&delta, ledger, true, false).unwrap_err();
    assert!(
        base.to_string().contains("\"lost\", which was never applied here; apply that one first"),
        "{base}"
    );
    assert_eq!(merge::check_base(&delta, ledger, true, true), Ok(merge::BaseStatus::UnknownBase));
}

#[test]
fn a_retraction_of_what_is_not_held_stays_a_retraction() {
    let mut gone = crate::full::small_memory("m", "gone");
    gone.status = Status::Retracted;
    assert_eq!(merge::memory(None, &gone).reason, merge::Reason::Unknown);
    let back = crate::full::small_memory("m", "back");
    let verdict = merge::memory(Some(&gone), &back);
    assert!(verdict.conflict() && verdict.action() == merge::Action::Keep);
}
