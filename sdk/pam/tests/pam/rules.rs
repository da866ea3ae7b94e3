//! Each rule that a document can break, broken: the issue names the rule and the place.

use satchel_pam::{
    issue::{Issue, Severity},
    validate,
};
use serde_json::{Value, json};

use crate::full;

mod bundle;

/// What to change in a document that breaks no rule.
enum Change {
    Set(&'static str, Value),
    Remove(&'static str),
}
use Change::{Remove, Set};

/// A change, and the issue that it must cause: severity, rule, path.
type Case = (Change, Severity, &'static str, &'static str);

const ERROR: Severity = Severity::Error;
const WARNING: Severity = Severity::Warning;

fn apply(document: &mut Value, change: Change) {
    let (pointer, value) = match change {
        Set(pointer, value) => (pointer, Some(value)),
        Remove(pointer) => (pointer, None),
    };
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
    match (parent, value) {
        (Value::Object(map), Some(value)) => drop(map.insert(key.to_owned(), value)),
        (Value::Object(map), None) => assert!(map.remove(key).is_some(), "{pointer}"),
        (Value::Array(items), Some(value)) if key == "-" => items.push(value),
        (Value::Array(items), Some(value)) => items[key.parse::<usize>().unwrap()] = value,
        (Value::Array(items), None) => drop(items.remove(key.parse().unwrap())),
        (other, _) => panic!("{pointer}: {other}"),
    }
}

fn check(base: &[u8], cases: Vec<Case>, find: impl Fn(&[u8]) -> Vec<Issue>) {
    for (change, severity, rule, path) in cases {
        let mut document: Value = serde_json::from_slice(base).unwrap();
        apply(&mut document, change);
        let issues = find(document.to_string().as_bytes());
        let found = issues.iter().any(|one| one.severity == severity && one.rule == rule && one.path == path);
        assert!(found, "{severity:?} {rule} {path} is not among {issues:#?}");
    }
}

fn store_issues(bytes: &[u8]) -> Vec<Issue> {
    validate::BundleCheck::new(bytes).finish().issues
}

#[test]
fn roots() {
    check(
        &full::store(),
        vec![
            (Set("/schema", json!("other")), ERROR, "R-3.1", "$.schema"),
            (Remove("/schema"), ERROR, "R-3.1", "$.schema"),
            (Set("/schema_version", json!("2.0")), ERROR, "R-3.2", "$.schema_version"),
            (Set("/schema_version", json!("1.0.0")), ERROR, "R-3.2", "$.schema_version"),
            (Set("/schema_version", json!("1.0-gamma")), ERROR, "R-3.2", "$.schema_version"),
            (Remove("/schema_version"), ERROR, "R-3.2", "$.schema_version"),
            (Remove("/owner"), ERROR, "R-3.3", "$.owner"),
            (Remove("/memories"), ERROR, "R-3.3", "$.memories"),
            (Set("/memories", json!({})), ERROR, "R-3.3", "$.memories"),
            (Set("/spec_uri", json!("no uri")), WARNING, "R-3.4", "$.spec_uri"),
            (Set("/export_id", json!("7")), WARNING, "R-3.5", "$.export_id"),
            (Set("/exported_by", json!("satchel")), ERROR, "R-3.6", "$.exported_by"),
            (Set("/exported_by", json!("satchel/1.0.0\n")), ERROR, "R-3.6", "$.exported_by"),
            (Set("/export_date", json!(null)), ERROR, "R-3.7", "$.export_date"),
            (Set("/export_date", json!("yesterday")), ERROR, "A-28", "$.export_date"),
            (Set("/export_date", json!(1_700_000_000)), ERROR, "A-28", "$.export_date"),
            (Set("/export_date", json!("2026-02-15T22:00:00")), WARNING, "A-15", "$.export_date"),
            (Set("/export_date", json!("2026-02-15 22:00Z")), WARNING, "A-14", "$.export_date"),
            (Set("/export_type", json!("partial")), ERROR, "R-3.9", "$.export_type"),
            (Set("/export_type", json!(null)), ERROR, "R-3.8", "$.export_type"),
            (Set("/extra", json!(1)), ERROR, "R-3.9", "$.extra"),
            (Set("/owner/extra", json!(1)), ERROR, "R-3.9", "$.owner.extra"),
            (Set("/owner/id", json!("")), ERROR, "R-3.10", "$.owner.id"),
            (Set("/owner/created_at", json!(null)), ERROR, "R-3.10", "$.owner.created_at"),
            (Set("/owner/did", json!("did:KEY:z")), ERROR, "R-3.11", "$.owner.did"),
            (Set("/owner/did", json!("did:key:z6Mk")), WARNING, "R-17.2", "$.owner.did"),
            (Set("/type_registry", json!("nowhere")), WARNING, "R-19.1", "$.type_registry"),
        ],
        store_issues,
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn memories() {
    check(
        &full::store(),
        vec![
            (Remove("/memories/0/id"), ERROR, "R-4.1", "$.memories[0].id"),
            (Remove("/memories/0/type"), ERROR, "R-5.1", "$.memories[0].type"),
            (Remove("/memories/0/content"), ERROR, "R-4.1", "$.memories[0].content"),
            (Remove("/memories/0/content_hash"), ERROR, "R-6.3", "$.memories[0].content_hash"),
            (Remove("/memories/0/temporal/created_at"), ERROR, "R-4.1", "$.memories[0].temporal.created_at"),
            (Remove("/memories/0/provenance/platform"), ERROR, "R-11.1", "$.memories[0].provenance.platform"),
            (Set("/memories/0", json!(7)), ERROR, "R-4.1", "$.memories[0]"),
            (Set("/memories/0/extra", json!(1)), ERROR, "R-3.9", "$.memories[0].extra"),
            (Set("/memories/0/id", json!("")), ERROR, "R-4.2", "$.memories[0].id"),
            (Set("/memories/0/content", json!("")), ERROR, "R-4.3", "$.memories[0].content"),
            (Set("/memories/0/content", json!(5)), ERROR, "R-4.1", "$.memories[0].content"),
            (Set("/memories/0/tags/0", json!("Bees")), ERROR, "R-4.4", "$.memories[0].tags[0]"),
            (Set("/memories/0/tags/1", json!("bees")), ERROR, "R-4.4", "$.memories[0].tags[1]"),
            (Set("/memories/0/tags", json!(null)), ERROR, "R-4.4", "$.memories[0].tags"),
            (Set("/memories/1/id", json!("a-full")), ERROR, "R-4.6", "$.memories[1].id"),
            (Set("/memories/0/type", json!("habit")), ERROR, "R-3.9", "$.memories[0].type"),
            (Remove("/memories/0/custom_type"), ERROR, "R-5.2", "$.memories[0].custom_type"),
            (Set("/memories/0/custom_type", json!("")), ERROR, "R-5.2", "$.memories[0].custom_type"),
            (Set("/memories/0/type", json!("fact")), ERROR, "R-5.3", "$.memories[0].custom_type"),
            (Set("/memories/0/content", json!("other")), ERROR, "R-6.2", "$.memories[0].content_hash"),
            (
                Set("/memories/0/content_hash", json!("sha256:ABC")),
                ERROR,
                "R-6.3",
                "$.memories[0].content_hash",
            ),
            (Set("/memories/0/status", json!("gone")), ERROR, "R-3.9", "$.memories[0].status"),
            (Set("/memories/0/status", json!(null)), ERROR, "R-7.1", "$.memories[0].status"),
            (
                Remove("/memories/0/temporal/superseded_by"),
                WARNING,
                "R-7.2",
                "$.memories[0].temporal.superseded_by",
            ),
            (
                Set("/memories/0/status", json!("active")),
                WARNING,
                "R-7.2",
                "$.memories[0].temporal.superseded_by",
            ),
            (
                Set("/memories/0/temporal/superseded_by", json!("x")),
                ERROR,
                "R-7.2",
                "$.memories[0].temporal.superseded_by",
            ),
            (
                Set("/memories/0/confidence/initial", json!(1.5)),
                ERROR,
                "R-8.1",
                "$.memories[0].confidence.initial",
            ),
            (
                Set("/memories/0/confidence/current", json!(-0.1)),
                ERROR,
                "R-8.1",
                "$.memories[0].confidence.current",
            ),
            (
                Set("/memories/0/confidence/current", json!(null)),
                ERROR,
                "R-8.1",
                "$.memories[0].confidence.current",
            ),
            (
                Set("/memories/0/confidence/current", json!("1")),
                ERROR,
                "R-8.1",
                "$.memories[0].confidence.current",
            ),
            (Set("/memories/0/confidence", json!(null)), ERROR, "R-8.1", "$.memories[0].confidence"),
            (
                Set("/memories/0/confidence/decay_model", json!("fast")),
                ERROR,
                "R-3.9",
                "$.memories[0].confidence.decay_model",
            ),
            (
                Set("/memories/0/access/visibility", json!("all")),
                ERROR,
                "R-3.9",
                "$.memories[0].access.visibility",
            ),
            (
                Set("/memories/0/access/exportable", json!(null)),
                ERROR,
                "R-9.1",
                "$.memories[0].access.exportable",
            ),
            (
                Set("/memories/0/access/shared_with/0/entity", json!("")),
                ERROR,
                "R-9.1",
                "$.memories[0].access.shared_with[0].entity",
            ),
            (
                Set("/memories/0/access/shared_with/0/permissions", json!([])),
                ERROR,
                "R-9.1",
                "$.memories[0].access.shared_with[0].permissions",
            ),
            (
                Set("/memories/0/access/shared_with/0/permissions/1", json!("read")),
                ERROR,
                "R-9.1",
                "$.memories[0].access.shared_with[0].permissions",
            ),
            (
                Set("/memories/0/access/exportable", json!(false)),
                WARNING,
                "R-9.2",
                "$.memories[0].access.exportable",
            ),
            (Set("/memories/0/metadata", json!(null)), ERROR, "R-10.1", "$.memories[0].metadata"),
            (
                Set("/memories/0/metadata/language", json!("english")),
                WARNING,
                "R-10.2",
                "$.memories[0].metadata.language",
            ),
            (Set("/memories/0/metadata/domain", json!(1)), ERROR, "R-10.2", "$.memories[0].metadata.domain"),
            (
                Set("/memories/0/metadata/n", json!(9_007_199_254_740_992_u64)),
                ERROR,
                "A-12",
                "$.memories[0].metadata.n",
            ),
            (
                Set("/memories/0/provenance/platform", json!("Chat GPT")),
                ERROR,
                "R-11.1",
                "$.memories[0].provenance.platform",
            ),
            (
                Set("/memories/0/provenance/platform", json!("openai")),
                WARNING,
                "R-11.3",
                "$.memories[0].provenance.platform",
            ),
            (
                Set("/memories/0/provenance/extractor", json!("me")),
                ERROR,
                "R-11.4",
                "$.memories[0].provenance.extractor",
            ),
            (
                Set("/memories/0/provenance/extraction_method", json!("magic")),
                ERROR,
                "R-3.9",
                "$.memories[0].provenance.extraction_method",
            ),
            (
                Set("/memories/0/temporal/updated_at", json!("2025-01-01T00:00:00Z")),
                ERROR,
                "SDK-temporal",
                "$.memories[0].temporal.updated_at",
            ),
            (
                Set("/memories/0/temporal/valid_until", json!("2025-01-01T00:00:00Z")),
                ERROR,
                "SDK-temporal",
                "$.memories[0].temporal.valid_until",
            ),
            (
                Set("/memories/0/confidence/last_reinforced", json!("2025-01-01T00:00:00Z")),
                WARNING,
                "SDK-temporal",
                "$.memories[0].confidence.last_reinforced",
            ),
            (
                Set("/memories/0/embedding_ref", json!("vector-1")),
                WARNING,
                "R-12.2",
                "$.memories[0].embedding_ref",
            ),
        ],
        store_issues,
    );
}

#[test]
fn relations_and_index() {
    check(
        &full::store(),
        vec![
            (Remove("/relations/0/id"), ERROR, "R-13.1", "$.relations[0].id"),
            (Set("/relations/0/type", json!("likes")), ERROR, "R-3.9", "$.relations[0].type"),
            (Set("/relations/0/confidence", json!(2)), ERROR, "R-13.1", "$.relations[0].confidence"),
            (Set("/relations/0/from", json!("")), ERROR, "R-13.1", "$.relations[0].from"),
            (Set("/relations/0/to", json!("x")), ERROR, "R-13.2", "$.relations[0].to"),
            (Set("/relations/0/to", json!("b-small")), WARNING, "R-13.2", "$.relations[0].to"),
            (Set("/relations", json!(null)), ERROR, "R-3.9", "$.relations"),
            (
                Set("/conversations_index/0/derived_memories", json!([])),
                WARNING,
                "R-14.1",
                "$.memories[0].provenance.conversation_ref",
            ),
            (
                Set("/conversations_index/0/derived_memories/-", json!("b-small")),
                WARNING,
                "R-14.1",
                "$.conversations_index[0].derived_memories[1]",
            ),
            (
                Set("/conversations_index/0/derived_memories/-", json!("x")),
                ERROR,
                "R-14.1",
                "$.conversations_index[0].derived_memories[1]",
            ),
            (Remove("/conversations_index/0/platform"), ERROR, "R-14.3", "$.conversations_index[0].platform"),
            (Set("/conversations_index/0/id", json!("")), ERROR, "R-14.3", "$.conversations_index[0].id"),
            (
                Set("/conversations_index/0/storage", json!(null)),
                ERROR,
                "R-14.3",
                "$.conversations_index[0].storage",
            ),
            (
                Set("/conversations_index/0/storage/ref", json!("")),
                ERROR,
                "R-14.3",
                "$.conversations_index[0].storage.ref",
            ),
            (
                Set("/conversations_index/0/storage/ref", json!("../../etc/passwd")),
                ERROR,
                "R-14.3",
                "$.conversations_index[0].storage.ref",
            ),
            (
                Set("/conversations_index/0/storage/ref", json!("/etc/passwd")),
                ERROR,
                "R-14.3",
                "$.conversations_index[0].storage.ref",
            ),
            (
                Set("/conversations_index/0/message_count", json!(-1)),
                ERROR,
                "R-14.3",
                "$.conversations_index[0].message_count",
            ),
            (
                Set("/conversations_index/0/platform", json!("google")),
                WARNING,
                "R-11.3",
                "$.conversations_index[0].platform",
            ),
            (
                Set("/conversations_index/0/tags", json!(["A"])),
                ERROR,
                "R-4.4",
                "$.conversations_index[0].tags[0]",
            ),
            (
                Set("/memories/0/provenance/conversation_ref", json!("x")),
                ERROR,
                "R-14.4",
                "$.memories[0].provenance.conversation_ref",
            ),
        ],
        store_issues,
    );
}

#[test]
fn integrity_and_signature() {
    check(
        &full::store(),
        vec![
            (
                Set("/integrity/canonicalization", json!("none")),
                ERROR,
                "R-15.1",
                "$.integrity.canonicalization",
            ),
            (Set("/memories/0/summary", json!("wasps")), ERROR, "R-15.2", "$.integrity.checksum"),
            (Set("/integrity/total_memories", json!(3)), ERROR, "R-15.3", "$.integrity.total_memories"),
            (Remove("/memories/1"), ERROR, "R-15.3", "$.integrity.total_memories"),
            (Set("/integrity", json!(null)), ERROR, "R-15.4", "$.integrity"),
            (Remove("/integrity/checksum"), ERROR, "R-15.4", "$.integrity.checksum"),
            (Remove("/integrity"), WARNING, "R-15.4", "$.integrity"),
            (Remove("/integrity"), ERROR, "A-22", "$.integrity"),
            (Set("/export_type", json!("incremental")), WARNING, "R-16.1", "$.base_export_id"),
            (Set("/export_type", json!("incremental")), WARNING, "R-16.1", "$.since"),
            (
                Set("/owner/did", json!("did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw")),
                WARNING,
                "R-17.3",
                "$.signature.public_key",
            ),
            (Remove("/signature"), WARNING, "R-18.1", "$.signature"),
            (Set("/signature/algorithm", json!("HS256")), ERROR, "R-18.2", "$.signature.algorithm"),
            (Set("/signature/algorithm", json!("RS256")), ERROR, "R-18.7", "$.signature"),
            (Set("/signature/value", json!("a.b.c")), WARNING, "R-18.2", "$.signature"),
            (Remove("/signature/value"), ERROR, "R-18.2", "$.signature.value"),
            (Remove("/signature/public_key"), ERROR, "R-18.7", "$.signature"),
            (Remove("/export_id"), ERROR, "R-18.3", "$.export_id"),
            (Set("/export_id", json!("")), ERROR, "R-18.3", "$.export_id"),
            (Remove("/export_date"), ERROR, "R-18.3", "$.export_date"),
            (
                Set("/signature/signed_at", json!("2026-02-15T21:59:59Z")),
                ERROR,
                "R-18.5",
                "$.signature.signed_at",
            ),
            (Set("/signature/key_id", json!("did:key:other#x")), WARNING, "R-18.6", "$.signature.key_id"),
            (Set("/owner/id", json!("somebody else")), ERROR, "R-18.7", "$.signature"),
        ],
        |bytes| {
            // An incremental export with both of its fields is fine, so they go first.
            let mut document: Value = serde_json::from_slice(bytes).unwrap();
            if document["export_type"] == "incremental" {
                document.as_object_mut().unwrap().retain(|key, _| key != "base_export_id" && key != "since");
            }
            store_issues(document.to_string().as_bytes())
        },
    );
}

#[test]
fn transitions_are_those_of_the_specification() {
    use satchel_pam::memory::Status::{self, Active, Archived, Deprecated, Retracted, Superseded};
    let allowed = [
        (Active, Superseded),
        (Active, Deprecated),
        (Active, Retracted),
        (Active, Archived),
        (Superseded, Archived),
        (Deprecated, Retracted),
        (Deprecated, Archived),
    ];
    for from in Status::ALL {
        for to in Status::ALL {
            assert_eq!(from.may_become(*to), allowed.contains(&(*from, *to)), "{from} to {to}");
        }
    }
}
