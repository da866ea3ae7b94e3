use std::sync::atomic::{AtomicI64, Ordering};

use satchel_registry::Plugins;
use satchel_source::Limits;
use satchel_store::{MemoryQuery, OpenOptions};
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::{edits::Draft, ingest::Imports, request::RequestKey};

const MODEL: &str = "test-embed-2";

/// A clock that stands still, so that times cannot tell the order of calls.
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Fixture {
    _dir: TempDir,
    store: Store,
    imports: Imports,
    clock: Arc<TestClock>,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), OpenOptions::default(), &mut |_| {}).unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(1_767_225_600_000_000)));
        let limits = satchel_host::PluginLimits::default();
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        let plugins = Arc::new(Plugins::built_in(None));
        let imports = Imports::new(store.clone(), plugins, shared, Limits::default(), limits).unwrap();
        Self { _dir: dir, store, imports, clock }
    }

    fn memory(&self, content: &str) -> NewEmbedding {
        let draft = Draft { content: Some(content.to_owned()), ..Draft::default() };
        let outcome = self.imports.edits().add_memory(&EditContext::default(), &draft).unwrap();
        self.embedding(&outcome.memories[0], &[1.0, 0.1])
    }

    fn embedding(&self, id: &str, vector: &[f32]) -> NewEmbedding {
        let record = self.store.memory(id, None).unwrap().unwrap();
        let content_hash = record.memory.content_hash.to_string();
        NewEmbedding { memory: id.to_owned(), content_hash, vector: vector.to_vec() }
    }

    fn put(&self, embeddings: &[NewEmbedding]) -> StoredEmbeddings {
        self.imports.embeddings().put(&EditContext::default(), MODEL, embeddings).unwrap()
    }

    fn stored(&self, id: &str) -> EmbeddingRecord {
        self.store.embedding(id, MODEL).unwrap().unwrap()
    }

    fn is_current(&self, id: &str) -> bool {
        is_current(&self.store, &self.stored(id), self.store.revision()).unwrap()
    }

    fn edit(&self, id: &str, content: &str) {
        self.clock.0.fetch_add(1, Ordering::Relaxed);
        let draft = Draft { content: Some(content.to_owned()), ..Draft::default() };
        self.imports.edits().edit_memory(&EditContext::default(), id, "", &draft).unwrap();
    }

    fn missing(&self) -> Vec<String> {
        let at = self.store.revision();
        let page = self.store.memories(&MemoryQuery::default(), None, 100, at).unwrap();
        let missing = |record| self.imports.embeddings().missing(record, (MODEL, None), at).unwrap();
        page.items.into_iter().filter_map(missing).map(|missing| missing.text).collect()
    }
}

#[test]
fn a_vector_is_stored_once_and_the_same_one_is_not_stored_again() {
    let fixture = Fixture::new();
    let new = fixture.memory("The hives face south.");
    let first = fixture.put(std::slice::from_ref(&new));
    assert_eq!((first.stored, first.unchanged), (1, 0));
    assert_eq!(first.revision, fixture.store.revision().get());
    // The shortest decimals: 0.1, and not 0.10000000149011612.
    assert_eq!(fixture.stored(&new.memory).embedding.vector, Some(vec![1.0, 0.1]));

    let again = fixture.put(std::slice::from_ref(&new));
    assert_eq!((again.stored, again.unchanged, again.revision), (0, 1, first.revision));

    let other = fixture.embedding(&new.memory, &[0.5, 0.5]);
    assert_eq!(fixture.put(&[other]).stored, 1);
    assert_eq!(fixture.stored(&new.memory).embedding.vector, Some(vec![0.5, 0.5]));
}

#[test]
fn a_vector_counts_although_the_text_was_edited_with_a_clock_that_was_ahead() {
    let fixture = Fixture::new();
    let new = fixture.memory("The hives face south.");
    let year = 366 * 86_400_000_000;
    fixture.clock.0.fetch_add(year, Ordering::Relaxed);
    fixture.edit(&new.memory, "The hives face east.");
    fixture.clock.0.fetch_sub(year, Ordering::Relaxed);
    let new = fixture.embedding(&new.memory, &[1.0, 0.1]);
    assert_eq!(fixture.put(std::slice::from_ref(&new)).stored, 1);
    assert!(fixture.is_current(&new.memory) && fixture.missing().is_empty());
    assert_eq!(fixture.put(&[new]).unchanged, 1);
}

#[test]
fn a_vector_of_another_dimension_does_not_count_if_one_is_asked_for() {
    let fixture = Fixture::new();
    let new = fixture.memory("The hives face south.");
    fixture.put(std::slice::from_ref(&new));
    let missing = |dimensions| {
        let record = fixture.store.memory(&new.memory, None).unwrap().unwrap();
        let at = fixture.store.revision();
        fixture.imports.embeddings().missing(record, (MODEL, dimensions), at).unwrap().is_some()
    };
    assert!(!missing(None) && !missing(Some(2)) && missing(Some(3)));
}

#[test]
fn a_vector_of_another_text_is_not_stored_and_a_changed_text_drops_its_vector() {
    let fixture = Fixture::new();
    let new = fixture.memory("The hives face south.");
    fixture.put(std::slice::from_ref(&new));
    assert!(fixture.is_current(&new.memory) && fixture.missing().is_empty());

    fixture.edit(&new.memory, "The hives face east.");
    assert!(!fixture.is_current(&new.memory));
    assert_eq!(fixture.missing(), ["The hives face east."]);

    let unknown = NewEmbedding { memory: Uuid::nil().to_string(), ..new.clone() };
    let late = fixture.put(&[new.clone(), unknown.clone()]);
    assert_eq!((late.stored, late.outdated), (0, vec![new.memory.clone(), unknown.memory]));

    assert_eq!(fixture.put(&[fixture.embedding(&new.memory, &[0.0, 1.0])]).stored, 1);
    assert!(fixture.is_current(&new.memory) && fixture.missing().is_empty());
}

#[test]
fn a_repeated_request_has_the_same_answer() {
    let fixture = Fixture::new();
    let new = fixture.memory("The hives face south.");
    let request = RequestKey { id: Uuid::new_v4().to_string(), body: "07".to_owned() };
    let call = EditContext { request: Some(request), ..EditContext::default() };
    let put = || fixture.imports.embeddings().put(&call, MODEL, std::slice::from_ref(&new)).unwrap();
    let (first, again) = (put(), put());
    assert_eq!((first.stored, &first), (1, &again));
}

#[test]
fn vectors_without_a_direction_and_of_different_lengths_are_refused_as_a_whole() {
    let fixture = Fixture::new();
    let new = fixture.memory("The hives face south.");
    let with = |vector: &[f32]| NewEmbedding { vector: vector.to_vec(), ..new.clone() };
    let before = fixture.store.revision();
    for (vectors, field) in [
        (vec![with(&[1.0, 0.0]), with(&[0.0, 0.0])], "embeddings[1].vector"),
        (vec![with(&[1.0, 0.0]), with(&[1.0])], "embeddings[1].vector"),
        (vec![with(&[f32::NAN, 0.0])], "embeddings[0].vector"),
        (vec![with(&[f32::INFINITY])], "embeddings[0].vector"),
        (vec![with(&[])], "embeddings[0].vector"),
        (Vec::new(), "embeddings"),
    ] {
        let refused = fixture.imports.embeddings().put(&EditContext::default(), MODEL, &vectors);
        assert!(
            matches!(&refused, Err(EmbeddingsError::Invalid { field: named, .. }) if named == field),
            "{vectors:?}: {refused:?}"
        );
    }
    for model in ["", "a\nb"] {
        let refused = fixture.imports.embeddings().put(&EditContext::default(), model, &[with(&[1.0])]);
        assert!(matches!(refused, Err(EmbeddingsError::Invalid { field, .. }) if field == "model"));
    }
    assert_eq!(fixture.store.revision(), before);
}
