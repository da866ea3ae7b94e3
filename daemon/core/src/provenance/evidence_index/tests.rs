//! An index that follows a store, and what is derived with it, compared with what follows from all evidence.

mod hostile;

use satchel_merge::evidence::{EditAction, EditStep};
use satchel_store::{Batch, Change, EvidenceWrite, OpenOptions};

use super::*;

fn write(store: &Store, numbers: std::ops::Range<i64>) {
    let step = |at| EditStep::new(format!("edit {at}"), at, EditAction::Undo("none".to_owned()));
    let changes = numbers.map(|number| {
        let (id, json) = step(number).encode().unwrap();
        Change::Evidence(EvidenceWrite { id, json })
    });
    store.commit(Batch { changes: changes.collect(), ..Batch::default() }).unwrap();
}

#[test]
fn an_index_follows_the_store_and_stays_empty_once_there_is_too_much() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), OpenOptions::default(), &mut |_| {}).unwrap();
    let (mut entries, mut maximum) = (Entries::default(), usize::MAX);
    write(&store, 0..10);
    entries.update(&store, maximum).unwrap();
    write(&store, 10..20);
    entries.update(&store, maximum).unwrap();
    let mut built = Entries::default();
    built.update(&store, maximum).unwrap();
    assert!(entries.entries == built.entries && entries.pieces_about("edit 15").len() == 1);
    // The bound is exceeded by the first of several new pieces.
    maximum = entries.entries.len();
    write(&store, 20..40);
    entries.update(&store, maximum).unwrap();
    assert!(entries.too_many && entries.entries.is_empty());
    entries.update(&store, maximum).unwrap();
    assert!(entries.too_many && entries.entries.is_empty());
}
