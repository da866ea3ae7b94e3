use std::{cell::Cell, collections::BTreeMap};

use proptest::prelude::*;

use super::*;

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// About normally distributed, with a variance of 1.
    fn normal(&mut self) -> f32 {
        let bytes = self.next().to_le_bytes();
        let parts = bytes.as_chunks().0.iter().map(|part| f32::from(u16::from_le_bytes(*part)));
        (parts.sum::<f32>() / 65_536.0 - 2.0) * 3.0_f32.sqrt()
    }

    fn vector(&mut self, dimension: usize) -> Vec<f32> {
        (0..dimension).map(|_| self.normal()).collect()
    }
}

/// Makes `count` vectors around a centre for each fifty, with numbers that become smaller along the vector, as the variances
/// of real embeddings do, and with the same number added to the first ten, which is then common to all.
fn clustered(count: usize, dimension: usize, common: f32) -> Vec<Vec<f32>> {
    let mut random = Random(3);
    let centers: Vec<_> = (0..=count / 50).map(|_| random.vector(dimension)).collect();
    let mut one = |center: &Vec<f32>| {
        let numbers = center.iter().enumerate().map(|(at, center)| {
            let size = 1.0 / (1.0 + f32::from(u16::try_from(at).unwrap()) / 32.0);
            (center + random.normal()) * size + if at < 10 { common } else { 0.0 }
        });
        numbers.collect()
    };
    (0..count).map(|number| one(&centers[number % centers.len()])).collect()
}

fn id(number: usize) -> String {
    format!("{number:06}")
}

fn index_of(vectors: &[Vec<f32>]) -> VectorIndex {
    let mut index = VectorIndex::new(vectors[0].len()).unwrap();
    for (number, vector) in vectors.iter().enumerate() {
        index.insert(&id(number), vector).unwrap();
    }
    index
}

/// The nearest vectors by their original numbers.
fn exact(vectors: &[Vec<f32>], query: &[f32], limit: usize, allowed: impl Fn(&str) -> bool) -> Vec<String> {
    let all = vectors.iter().enumerate().map(|(number, vector)| (id(number), vector));
    let mut scored: Vec<_> = all
        .filter(|(id, _)| allowed(id))
        .map(|(id, vector)| (exact_cosine(query, vector).unwrap(), id))
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    scored.into_iter().take(limit).map(|(_, id)| id).collect()
}

fn ids(hits: Vec<VectorHit>) -> Vec<String> {
    hits.into_iter().map(|hit| hit.id).collect()
}

fn top(limit: usize) -> VectorSearch<'static> {
    VectorSearch { limit, ..VectorSearch::default() }
}

/// Returns how many of the exact results are found, of a thousand.
fn recall(index: &VectorIndex, search: &VectorSearch<'_>, queries: &[(Vec<f32>, Vec<String>)]) -> usize {
    let mut found = 0;
    for (query, expected) in queries {
        let hits = ids(index.search(query, search).unwrap());
        found += expected.iter().filter(|id| hits.contains(id)).count();
    }
    found * 100 / queries.len()
}

#[test]
fn hits_are_the_exact_ones_with_and_without_a_large_common_part() {
    for common in [0.0, 5.0] {
        let mut vectors = clustered(4020, 256, common);
        let queries = vectors.split_off(4000);
        let index = index_of(&vectors);
        assert!(index.codes.is_some());
        let expected = queries.iter().map(|query| exact(&vectors, query, 10, |_| true));
        let queries: Vec<_> = queries.iter().cloned().zip(expected).collect();
        let original = |id: &str| Some(vectors[id.parse::<usize>().unwrap()].clone());
        assert!(recall(&index, &top(10), &queries) >= 980);
        let search = VectorSearch { original: Some(&original), ..top(10) };
        assert!(recall(&index, &search, &queries) >= 995);
    }
}

#[test]
fn a_filter_is_applied_before_the_cut() {
    let vectors = clustered(4001, 64, 1.0);
    let index = index_of(&vectors);
    for every in [2, 100, 400] {
        let asked = Cell::new(0);
        let passes = |id: &str| {
            asked.set(asked.get() + 1);
            id.parse::<usize>().unwrap().is_multiple_of(every)
        };
        let allowed: Vec<_> = (0..4001).step_by(every).map(id).collect();
        let allowed: Vec<_> = allowed.iter().map(String::as_str).collect();
        let original = |id: &str| Some(vectors[id.parse::<usize>().unwrap()].clone());
        for query in &vectors[..3] {
            let expected = exact(&vectors, query, 10, passes);
            asked.set(0);
            for filter in [VectorFilter::Where(&passes), VectorFilter::Ids(&allowed)] {
                let search = VectorSearch { filter, original: Some(&original), limit: 10 };
                assert_eq!(ids(index.search(query, &search).unwrap()), expected, "1 in {every}");
            }
            assert!(asked.get() <= 4001);
        }
    }
}

#[test]
fn ids_of_a_filter_may_be_unknown_or_repeated() {
    let index = index_of(&clustered(20, 8, 0.0));
    let filter = VectorFilter::Ids(&["000003", "none", "000003", "000001"]);
    let hits = index.search(&[1.0; 8], &VectorSearch { filter, ..top(10) }).unwrap();
    let mut hits = ids(hits);
    hits.sort();
    assert_eq!(hits, ["000001", "000003"]);
    let none = VectorSearch { filter: VectorFilter::Ids(&[]), ..top(10) };
    assert!(index.search(&[1.0; 8], &none).unwrap().is_empty());
}

#[test]
fn vectors_are_replaced_and_removed() {
    let mut index = VectorIndex::new(2).unwrap();
    assert!(index.is_empty());
    assert!(index.search(&[1.0, 0.0], &top(1)).unwrap().is_empty());
    index.insert("a", &[1.0, 0.0]).unwrap();
    index.insert("b", &[0.0, 3.0]).unwrap();
    index.insert("c", &[-1.0, 0.0]).unwrap();
    index.insert("a", &[0.0, -1.0]).unwrap();
    assert_eq!(index.len(), 3);
    let hits = index.search(&[0.0, 1.0], &top(9)).unwrap();
    assert_eq!(
        hits.iter().map(|hit| (hit.id.as_str(), hit.cosine.round())).collect::<Vec<_>>(),
        [("b", 1.0), ("c", 0.0), ("a", -1.0)]
    );
    assert!(index.remove("b"));
    assert!(!index.remove("b"));
    assert!(!index.contains("b") && index.contains("a"));
    assert_eq!(ids(index.search(&[0.0, 1.0], &top(9)).unwrap()), ["c", "a"]);
}

#[test]
fn unusable_vectors_are_refused_and_change_nothing() {
    for dimension in [0, MAX_DIMENSION + 1] {
        let refused = VectorIndex::new(dimension).unwrap_err();
        assert_eq!(refused, VectorError::UnsupportedDimension { dimension });
    }
    let mut index = VectorIndex::new(3).unwrap();
    index.insert("a", &[1.0, 2.0, 3.0]).unwrap();
    let refused = [
        (&[1.0][..], VectorError::WrongDimension { expected: 3, actual: 1 }),
        (&[1.0, f32::NAN, 1.0], VectorError::NotFinite { position: 1 }),
        (&[1.0, 1.0, f32::NEG_INFINITY], VectorError::NotFinite { position: 2 }),
        (&[0.0, -0.0, 0.0], VectorError::Zero),
    ];
    for (vector, error) in refused {
        assert_eq!(index.insert("a", vector), Err(error.clone()));
        assert_eq!(index.insert("b", vector), Err(error.clone()));
        assert_eq!(index.search(vector, &top(1)), Err(error));
    }
    assert_eq!(index.len(), 1);
    assert!(index.search(&[1.0, 2.0, 3.0], &top(1)).unwrap()[0].cosine > 0.999);
}

#[test]
fn lengths_do_not_matter() {
    let mut index = VectorIndex::new(3).unwrap();
    for (id, length) in [("small", f32::from_bits(1)), ("one", 1.0), ("large", f32::MAX)] {
        index.insert(id, &[length, 0.0, length]).unwrap();
        let [hit] = &index.search(&[length, 0.0, length], &top(1)).unwrap()[..] else { unreachable!() };
        assert!(hit.cosine > 0.9999);
    }
    assert_eq!(ids(index.search(&[1.0, 0.0, 1.0], &top(3)).unwrap()), ["large", "one", "small"]);
}

#[test]
fn equal_cosines_are_ordered_by_id_in_any_order_of_insertion() {
    let numbers: Vec<usize> = (0..3000).collect();
    let reversed: Vec<usize> = numbers.iter().rev().copied().collect();
    for order in [numbers, reversed] {
        let mut index = VectorIndex::new(16).unwrap();
        for number in order {
            index.insert(&id(number), &[0.5; 16]).unwrap();
        }
        assert!(index.codes.is_some());
        let expected: Vec<_> = (0..20).map(id).collect();
        assert_eq!(ids(index.search(&[1.0; 16], &top(20)).unwrap()), expected);
    }
}

#[test]
fn originals_settle_what_bytes_cannot_tell_apart() {
    let mut index = VectorIndex::new(64).unwrap();
    let vector = |number: usize| {
        let mut vector = vec![1.0; 64];
        vector[0] += f32::from(u8::try_from(number).unwrap()) * 1e-3;
        vector
    };
    for number in 0..30 {
        index.insert(&id(number), &vector(number)).unwrap();
    }
    let original = |id: &str| Some(vector(id.parse().unwrap()));
    let search = VectorSearch { original: Some(&original), ..top(5) };
    let expected: Vec<_> = (25..30).rev().map(id).collect();
    let hits = index.search(&vector(200), &search).unwrap();
    assert_eq!(ids(hits), expected);
    // One that cannot be had is a hit with the cosine that is known.
    let missing = |_: &str| None;
    let search = VectorSearch { original: Some(&missing), ..top(5) };
    assert_eq!(index.search(&vector(200), &search), index.search(&vector(200), &top(5)));
}

#[test]
fn few_originals_are_fetched() {
    let vectors = clustered(500, 64, 0.0);
    let index = index_of(&vectors);
    let fetched = Cell::new(0);
    let original = |id: &str| {
        fetched.set(fetched.get() + 1);
        Some(vectors[id.parse::<usize>().unwrap()].clone())
    };
    let search = VectorSearch { original: Some(&original), ..top(10) };
    for query in &vectors[..20] {
        index.search(query, &search).unwrap();
    }
    assert!((200..=400).contains(&fetched.get()), "{} originals for 200 hits", fetched.get());
}

#[test]
fn memory_is_bounded_and_does_not_grow_when_vectors_are_replaced() {
    let (count, dimension) = (3000, 96);
    let mut index = VectorIndex::new(dimension).unwrap();
    let mut random = Random(1);
    for number in 0..count {
        index.insert(&id(number), &random.vector(dimension)).unwrap();
    }
    // A byte and a bit for each number, padded to words, a scale and two factors; ids.
    let bytes = count * (dimension + dimension.next_multiple_of(64) / 8 + 3 * 4);
    let ids = index.ids.bytes();
    assert!(ids < count * 140);
    let full = index.memory_bytes();
    assert!(full - ids >= bytes);
    // Two thirds of each of four lists' last block may be unused.
    assert!(full - ids < bytes + 4 * (256 << 10) + 8192, "{full} bytes");
    for round in 0..3 {
        for number in 0..count {
            assert!(index.remove(&id(round * count + number)));
            index.insert(&id((round + 1) * count + number), &random.vector(dimension)).unwrap();
        }
        // The table of ids may double once, to have room for those that come before others go.
        assert!(index.memory_bytes() - index.ids.bytes() == full - ids);
        assert!(index.ids.bytes() < count * 140);
    }
    for number in 0..count {
        assert!(index.remove(&id(3 * count + number)));
    }
    assert!(index.is_empty() && index.memory_bytes() < 64 << 10);
}

#[test]
fn two_hundred_thousand_large_vectors_fit_into_half_a_gibibyte() {
    // What 2,100 vectors take grows in proportion, but for the last blocks.
    let (count, dimension) = (2100, 1536);
    let mut index = VectorIndex::new(dimension).unwrap();
    let mut random = Random(1);
    for number in 0..count {
        index.insert(&format!("00000000-0000-4000-8000-{number:012}"), &random.vector(dimension)).unwrap();
    }
    assert!(index.codes.is_some());
    assert!(index.memory_bytes() / count * 200_000 < 512 << 20);
}

/// A step of a program that uses an index.
#[derive(Clone, Debug)]
enum Step {
    Insert(u8, Vec<f32>),
    Remove(u8),
}

fn steps(dimension: usize) -> impl Strategy<Value = Vec<Step>> {
    let vector = prop::collection::vec(-8..8_i8, dimension)
        .prop_filter("has a direction", |numbers| numbers.iter().any(|number| *number != 0));
    let vector = vector.prop_map(|numbers| numbers.into_iter().map(f32::from).collect::<Vec<_>>());
    let step = prop_oneof![
        3 => (0..40_u8, vector).prop_map(|(id, vector)| Step::Insert(id, vector)),
        1 => (0..40_u8).prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With few vectors, the hits are those of a plain list, with and without codes.
    #[test]
    fn hits_are_those_of_a_plain_list(steps in steps(12), limit in 0..15_usize, every in 1..4_u8, with_codes: bool) {
        let few = Sizes { without_codes: 0, rescored: 40, ..SIZES };
        let sizes = if with_codes { few } else { SIZES };
        let mut index = VectorIndex::with_sizes(12, sizes).unwrap();
        let mut plain: BTreeMap<String, Vec<f32>> = BTreeMap::new();
        let inserted = steps.iter().any(|step| matches!(step, Step::Insert(..)));
        for step in steps {
            match step {
                Step::Insert(id, vector) => {
                    index.insert(&id.to_string(), &vector).unwrap();
                    plain.insert(id.to_string(), vector);
                }
                Step::Remove(id) => {
                    prop_assert_eq!(index.remove(&id.to_string()), plain.remove(&id.to_string()).is_some());
                }
            }
            prop_assert_eq!(index.len(), plain.len());
        }
        prop_assert_eq!(index.codes.is_some(), with_codes && inserted);
        let query = [3.0, 1.0, -2.0, 0.5, 4.0, -1.0, 2.0, 0.0, 1.5, -3.0, 1.0, 0.1];
        let passes = |id: &str| id.parse::<u8>().unwrap().is_multiple_of(every);
        let original = |id: &str| plain.get(id).cloned();
        let search = VectorSearch { limit, filter: VectorFilter::Where(&passes), original: Some(&original) };
        let found = index.search(&query, &search).unwrap();
        let mut expected: Vec<_> = plain
            .iter()
            .filter(|(id, _)| passes(id))
            .map(|(id, vector)| VectorHit { id: id.clone(), cosine: exact_cosine(&query, vector).unwrap() })
            .collect();
        expected.sort_by(|left, right| right.cosine.total_cmp(&left.cosine));
        expected.truncate(limit);
        prop_assert_eq!(found, expected);
    }

    /// Without originals, cosines are off by the error of rounding only.
    #[test]
    fn cosines_are_near_the_exact_ones(dimension in 1..300_usize, seed: u64) {
        let mut random = Random(seed);
        let vectors: Vec<_> = (0..20).map(|_| random.vector(dimension)).collect();
        let index = index_of(&vectors);
        let query = random.vector(dimension);
        let hits = index.search(&query, &top(20)).unwrap();
        prop_assert_eq!(hits.len(), 20);
        for hit in hits {
            let exact = exact_cosine(&query, &vectors[hit.id.parse::<usize>().unwrap()]).unwrap();
            prop_assert!((hit.cosine - exact).abs() < 0.01, "{} instead of {exact}", hit.cosine);
        }
    }
}
