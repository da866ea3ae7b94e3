//! The stored results for the pieces of a source.

use super::fixture::open_real;
use crate::{Batch, Change, LedgerWrite, OpenOptions, Store};

fn piece(digest: [u8; 32], value: &[u8]) -> Change {
    Change::Ledger(LedgerWrite::Piece { digest, value: value.to_vec() })
}

#[test]
fn a_piece_is_matched_by_its_whole_digest_and_survives_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let (known, mut alike) = ([7; 32], [7; 32]);
    alike[31] = 8;
    let long = vec![b'x'; 100_000];
    {
        let (store, _) = open_real(dir.path(), "boot").unwrap();
        let changes = vec![piece(known, b"first"), piece([9; 32], &long)];
        store.commit(Batch { changes, ..Batch::default() }).unwrap();
        store.commit(Batch { changes: vec![piece(known, b"second")], ..Batch::default() }).unwrap();
        store.close().unwrap();
    }
    for rebuild in [false, true] {
        let options = OpenOptions { rebuild, ..OpenOptions::default() };
        let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
        assert_eq!(store.piece(&known).unwrap().as_deref(), Some(b"second".as_slice()));
        assert_eq!(store.piece(&[9; 32]).unwrap(), Some(long.clone()));
        assert_eq!(store.piece(&alike).unwrap(), None, "it shares the key, not the digest");
        assert!(store.check(true, &mut |_| {}).unwrap().clean());
        store.close().unwrap();
    }
}
