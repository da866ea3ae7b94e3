use proptest::prelude::*;

use super::*;

fn find(texts: &[&str], threshold: f64) -> Duplicates {
    let mut finder = DuplicateFinder::new(threshold, DuplicateLimits::default());
    texts.iter().for_each(|text| assert!(finder.add(text)));
    finder.finish()
}

/// The members of each group, and whether they have the same text.
fn groups(texts: &[&str]) -> Vec<(Vec<usize>, bool)> {
    let found = find(texts, DEFAULT_THRESHOLD);
    assert!(!found.truncated);
    found.groups.into_iter().map(|group| (group.members, group.same_text)).collect()
}

#[test]
fn case_punctuation_and_form_make_no_difference() {
    for (one, other) in [
        ("Keeps bees.", "  keeps   BEES"),
        ("Prefers “short” answers!", "prefers short answers"),
        ("Don't call", "dont call"),
        ("Ｋｅｅｐｓ ﬁsh", "keeps fish"),
        ("cafe\u{301} au lait", "Café au lait"),
        ("Große Straße", "GROSSE STRASSE"),
        ("我喜欢蜜蜂。", "我喜欢蜜蜂"),
        ("zero\u{200b}width", "zerowidth"),
    ] {
        assert_eq!(groups(&[one, "other", other]), [(vec![0, 2], true)], "{one:?} {other:?}");
    }
}

#[test]
fn what_changes_the_meaning_makes_a_difference() {
    for (one, other) in [
        ("Writes C", "Writes C++"),
        ("Writes C#", "Writes C"),
        ("Owes 5", "Owes -5"),
        ("Weighs 3.5 kg", "Weighs 35 kg"),
        ("él", "el"),
        ("...", "!!!"),
        ("", "."),
        ("🐝", "🍯"),
        ("Lives in Bergen", "Lives in Oslo"),
    ] {
        assert!(groups(&[one, other]).is_empty(), "{one:?} {other:?}");
    }
}

#[test]
fn texts_with_most_words_in_common_are_similar() {
    let found = find(&["Keeps bees on the balcony", "Nothing", "Also keeps bees on the balcony"], 0.8);
    assert_eq!(found.groups.len(), 1);
    assert_eq!((&found.groups[0].members[..], found.groups[0].same_text), (&[0, 2][..], false));
    assert!((found.groups[0].similarity - 9.0 / 11.0).abs() < 1e-9, "{found:?}");
    assert!(groups(&["Ana is older than Ben today", "Ben is older than Ana today"]).is_empty());
    assert_eq!(
        groups(&["私は毎朝庭で蜂の世話をします", "私は毎朝庭で蜂の世話をしますよ"]),
        [(vec![0, 1], false)]
    );
    assert!(groups(&["私は毎朝庭で蜂の世話をします", "彼は毎晩海で魚の料理を食べます"]).is_empty());
}

#[test]
fn a_group_reaches_as_far_as_its_members_are_similar() {
    let texts = ["a b c d e f g h", "a b c d e f g h i", "a b c d e f g h i j"];
    assert_eq!(groups(&texts), [(vec![0, 1, 2], false)]);
    let similarity = find(&texts, DEFAULT_THRESHOLD).groups[0].similarity;
    assert!((similarity - 15.0 / 19.0).abs() < 1e-9, "{similarity}");
    // The same texts come first, then the most similar ones.
    let found =
        groups(&["a b c d e f", "x", "a b c d e f g", "X!", "k l m n o p q r s", "k l m n o p q r s t"]);
    assert_eq!(found, [(vec![1, 3], true), (vec![4, 5], false), (vec![0, 2], false)]);
}

#[test]
fn limits_are_reported() {
    let limits = DuplicateLimits { texts: 3, ..DuplicateLimits::default() };
    let mut finder = DuplicateFinder::new(0.8, limits);
    assert_eq!(["same", "other", "Same", "SAME"].map(|text| finder.add(text)), [true, true, true, false]);
    let found = finder.finish();
    assert!(found.truncated && found.groups.len() == 1, "{found:?}");

    let similar = ["one two three four five", "one two three four five six"];
    let with = |limits| {
        let mut finder = DuplicateFinder::new(0.8, limits);
        similar.iter().chain(&similar).for_each(|text| assert!(finder.add(text)));
        finder.finish()
    };
    assert_eq!(with(DuplicateLimits::default()).groups.len(), 1);
    for limits in [
        DuplicateLimits { shingles: 10, ..DuplicateLimits::default() },
        DuplicateLimits { steps: 0, ..DuplicateLimits::default() },
    ] {
        let found = with(limits);
        assert!(found.truncated && found.groups.len() == 2, "{limits:?} {found:?}");
        assert!(found.groups.iter().all(|group| group.same_text));
    }
    // A long text is compared for equality, and nothing is missing because of it.
    let found = with(DuplicateLimits { shingles_of_text: 5, ..DuplicateLimits::default() });
    assert!(!found.truncated && found.groups.len() == 2);
}

/// Texts that nearly all share frequent words take no time that is quadratic in their number.
#[test]
fn many_texts_of_one_pattern_are_compared_quickly() {
    let mut finder = DuplicateFinder::new(0.8, DuplicateLimits::default());
    for number in 0..20_000 {
        assert!(
            finder.add(&format!("The user said that the user likes thing{number} and place{}", number / 2))
        );
    }
    let found = finder.finish();
    assert!(!found.truncated && found.groups.is_empty(), "{:?}", found.groups.first());
}

/// The groups by brute force: each pair is compared.
fn expected(texts: &[String], threshold: f64) -> Vec<Vec<usize>> {
    let hash = |shingle: shingles::Shingle<'_>| {
        std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().hash_one(shingle)
    };
    let normal: Vec<String> = texts.iter().map(|text| normalised(text)).collect();
    let sets: Vec<Vec<u64>> = normal.iter().map(|text| shingles(text, 1_000, hash)).collect();
    let same = |one: usize, other: usize| {
        let equal = normal[one] == normal[other] && (!normal[one].is_empty() || texts[one] == texts[other]);
        equal || join::jaccard(&sets[one], &sets[other]) >= threshold
    };
    let mut group: Vec<usize> = (0..texts.len()).collect();
    for one in 0..texts.len() {
        for other in 0..one {
            let (from, to) = (group[one], group[other]);
            if same(one, other) {
                group.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
            }
        }
    }
    let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    group.iter().enumerate().for_each(|(text, group)| found.entry(*group).or_default().push(text));
    let mut found: Vec<_> = found.into_values().filter(|members| members.len() > 1).collect();
    found.sort();
    found
}

fn text() -> impl Strategy<Value = String> {
    let word =
        prop::sample::select(vec!["a", "b", "c", "d", "E", "f.", "蜂", "蜜蜂", "喜欢", "!", "e\u{301}"]);
    prop::collection::vec(word, 0..10).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_similar_pair_is_missed(texts in prop::collection::vec(text(), 0..30), threshold in 0.5..=1.0_f64) {
        let texts_given: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = find(&texts_given, threshold);
        let mut members: Vec<_> = found.groups.iter().map(|group| group.members.clone()).collect();
        members.sort();
        prop_assert_eq!(members, expected(&texts, threshold));
        for group in &found.groups {
            let first = normalised(texts_given[group.members[0]]);
            let same = group.members.iter().all(|member| normalised(texts_given[*member]) == first);
            prop_assert_eq!(group.same_text, same);
            prop_assert!(group.similarity <= 1.0 && (!group.same_text || group.similarity >= 1.0));
        }
    }

    #[test]
    fn the_order_of_texts_changes_nothing(
        (texts, shuffled) in prop::collection::vec(text(), 0..30)
            .prop_flat_map(|texts| (Just(texts.clone()), Just(texts.into_iter().enumerate().collect::<Vec<_>>()).prop_shuffle()))
    ) {
        let sorted = |found: Duplicates, number: &dyn Fn(usize) -> usize| {
            let mut groups: Vec<(Vec<usize>, bool)> = found.groups.into_iter().map(|group| {
                let mut members: Vec<usize> = group.members.into_iter().map(number).collect();
                members.sort_unstable();
                (members, group.same_text)
            }).collect();
            groups.sort();
            groups
        };
        let given: Vec<&str> = texts.iter().map(String::as_str).collect();
        let other: Vec<&str> = shuffled.iter().map(|(_, text)| text.as_str()).collect();
        prop_assert_eq!(
            sorted(find(&given, 0.8), &|number| number),
            sorted(find(&other, 0.8), &|number| shuffled[number].0)
        );
    }

    #[test]
    fn any_text_is_normalised_once(text in "\\PC{0,40}") {
        let normal = normalised(&text);
        prop_assert!(!normal.contains("  ") && normal.trim() == normal);
        prop_assert_eq!(find(&[&text, &text.clone()], 0.8).groups.len(), 1);
    }
}
