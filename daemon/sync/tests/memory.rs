//! Lengths that are lies cost no memory. In a program of its own, as it measures the whole process.
#![expect(clippy::unwrap_used, reason = "tests")]
#![cfg(target_os = "linux")]

use satchel_sync::{ForkProof, Frontier, OriginKey, SignedChange, SigningKey, batch::BatchReader};

/// A value of this process, in KiB: `VmPeak`, the most address space that it has had, or `VmSize`, what it has now.
fn kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Every position of every input becomes the greatest length, and the greatest one that is allowed.
fn lies(valid: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let claims = [u32::MAX, 3 << 20, 1_024];
    (0..valid.len() - 3).flat_map(move |at| {
        claims.map(|claim| [&valid[..at], &claim.to_be_bytes(), &valid[at + 4..]].concat())
    })
}

#[test]
fn a_length_that_is_a_lie_allocates_nothing() {
    let key = SigningKey::from_bytes(&[1; 32]);
    let proof_head = [b"SATCHELF\0\x01", &OriginKey::new(&key, [1; 16]).encode()[..], &[0; 200]].concat();
    let batch = [b"SATCHELC\0\x01\0\0", &[0; 200][..]].concat();
    let change = [&[0, 1][..], &[0; 23], &[2], &[7; 32], &[0; 174]].concat();
    // The same with a payload: kind 2, context 4, length 8, digest 32 and signature 64 bytes before it.
    let present = [&change[..58 + 110], &[1], &[0; 64]].concat();
    // The allocator had more address space for a moment. It is taken up, or the peak would not show less than that.
    let spare = usize::try_from(kib("VmPeak") - kib("VmSize")).unwrap() << 10;
    let filler = Vec::<u8>::with_capacity(spare);
    let before = kib("VmPeak");
    for lie in [proof_head, batch, change, present, vec![0; 100]].iter().flat_map(|valid| lies(valid)) {
        // Kept until all are decoded, so that what each of them allocates adds up.
        let decoded = (SignedChange::decode(&lie), Frontier::decode(&lie), ForkProof::decode(&lie));
        assert!(decoded.0.is_err() && decoded.2.is_err());
        let reader = BatchReader::open(&lie[..]).ok().flatten();
        if let Some(mut reader) = reader {
            assert!(reader.by_ref().any(|change| change.is_err()));
        }
    }
    let grown = kib("VmPeak") - before;
    assert_eq!(filler.capacity(), spare);
    assert!(grown < 2_048, "{grown} KiB for inputs of less than 300 bytes");
}
