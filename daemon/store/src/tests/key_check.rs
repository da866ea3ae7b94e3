//! A key is checked against the readable frames, wherever in the journal they are.

use std::path::Path;

use satchel_seal::{DataKey, Seal};

use super::{
    damage::flip,
    fixture::{Model, TestRng},
};
use crate::{Health, OpenOptions, Store, StoreError};

fn open(dir: &Path, seal: Option<u8>) -> Result<Store, StoreError> {
    let seal = seal.map(|byte| Seal::new(&DataKey::from_bytes(&[byte; 32])));
    Store::open(dir, OpenOptions { seal, ..OpenOptions::default() }, &mut |_| {})
}

#[test]
fn a_wrong_key_is_refused_even_if_the_first_frames_are_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), Some(1)).unwrap();
    let (mut model, mut rng) = (Model::default(), TestRng(3));
    for _ in 0..12 {
        store.commit(model.batch(&mut rng)).unwrap();
    }
    let frames = store.frames();
    store.close().unwrap();
    std::fs::remove_dir_all(dir.path().join("db")).unwrap();
    for frame in &frames[..frames.len() / 2] {
        flip(&dir.path().join("journal/00000001.seg"), (frame.end - 1) * 8);
    }
    let wrong = open(dir.path(), Some(2));
    assert!(matches!(wrong, Err(StoreError::WrongKey { .. })), "{:?}", wrong.err());
    let none = open(dir.path(), None);
    assert!(matches!(none, Err(StoreError::NoKey { .. })), "{:?}", none.err());
    let store = open(dir.path(), Some(1)).unwrap();
    assert!(matches!(store.health(), Health::Damaged(_)), "the right key opens what is left");
}
