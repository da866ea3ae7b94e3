use proptest::prelude::*;

use super::*;

fn words(text: &str) -> Vec<String> {
    Words::of(text).iter().map(|word| word.text.to_owned()).collect()
}

#[test]
fn words_are_folded() {
    assert_eq!(words("AÇÃO do coração"), ["acao", "do", "coracao"]);
    assert_eq!(words("Straße, Þórr, Łódź; ŒUVRE ﬁnal"), ["strasse", "thorr", "lodz", "oeuvre", "final"]);
    assert_eq!(words("İstanbul ısı"), ["istanbul", "isi"]);
    assert_eq!(words("Σίσυφος ΣΊΣΥΦΟΣ"), ["σισυφοσ", "σισυφοσ"]);
    assert_eq!(words("ｆｕｌｌ ｗｉｄｔｈ １２"), ["full", "width", "12"]);
    assert_eq!(words("ёлка Елка"), ["елка", "елка"]);
    // Marks that change the word stay.
    assert_eq!(words("हिन्दी"), ["हिन्दी"]);
    assert_eq!(words("שָׁלוֹם"), ["שלום"]);
}

#[test]
fn scripts_without_spaces_become_pairs() {
    assert_eq!(words("我喜欢蜜蜂"), ["我喜", "喜欢", "欢蜜", "蜜蜂"]);
    assert_eq!(words("蜂 and 蜜蜂"), ["蜂", "and", "蜜蜂"]);
    assert_eq!(words("ガイド"), ["ガイ", "イド"]);
    assert_eq!(words("ｶﾞｲﾄﾞ"), ["ガイ", "イド"], "half-width forms are the same");
    assert_eq!(words("고양이가"), ["고양", "양이", "이가"]);
    assert_eq!(words("C언어를"), ["c", "언어", "어를"]);
    assert_eq!(words("iPhone15を買う"), ["iphone15", "i", "phone", "15", "を買", "買う"]);
    assert_eq!(words("ผึ้ง"), ["ผึ้ง"]);
}

#[test]
fn names_count_whole_and_in_parts() {
    assert_eq!(words("getUserName"), ["getusername", "get", "user", "name"]);
    assert_eq!(words("HTTPServer"), ["httpserver", "http", "server"]);
    assert_eq!(words("max_open_files"), ["max_open_files", "max", "open", "files"]);
    assert_eq!(words("l’école"), ["l'ecole", "l", "ecole"]);
    assert_eq!(words("std.io.Write"), ["std.io.write", "std", "io", "write"]);
    assert_eq!(words("mp3 h264 1,000.50 v1.2.3"), ["mp3", "h264", "1,000.50", "v1.2.3", "v1", "2", "3"]);
    assert_eq!(words("--dry-run"), ["dry", "run"]);
    assert_eq!(words("well-known e-mail"), ["well", "known", "e", "mail"]);
}

#[test]
fn emoji_are_words() {
    assert_eq!(words("nice 🐝!"), ["nice", "🐝"]);
    assert_eq!(words("👩‍🚀🇧🇷"), ["👩🚀", "🇧🇷"]);
}

#[test]
fn positions_let_phrases_match() {
    let words = Words::of("call getUserName now");
    let positions: Vec<_> = words.iter().map(|word| (word.text.to_owned(), word.position)).collect();
    let expected = [("call", 0), ("getusername", 1), ("get", 1), ("user", 2), ("name", 3), ("now", 4)];
    assert_eq!(positions, expected.map(|(word, position)| (word.to_owned(), position)));
    assert_eq!(words.get(1).map(|word| (word.from, word.to)), Some((5, 16)));
}

#[test]
fn inflections_have_the_same_stem() {
    for (language, one, other) in [
        (Language::English, "bees", "bee"),
        (Language::Portuguese, "abelhas", "abelha"),
        (Language::Spanish, "canciones", "canción"),
        (Language::German, "Häuser", "Hauses"),
        (Language::French, "chevaux", "cheval"),
        (Language::Russian, "пчёлы", "пчёла"),
    ] {
        assert_eq!(language.stem(one), language.stem(other), "{one} {other}");
        assert!(language.stem(one).is_some());
    }
    assert_eq!(Language::English.stem("a"), None);
}

#[test]
fn languages_are_recognized() {
    for (text, language) in [
        ("How do I keep bees on the balcony without annoying my neighbours?", Language::English),
        ("Como posso criar abelhas na varanda sem incomodar os vizinhos?", Language::Portuguese),
        ("¿Cómo puedo criar abejas en el balcón sin molestar a los vecinos?", Language::Spanish),
        ("Wie kann ich auf dem Balkon Bienen halten, ohne die Nachbarn zu stören?", Language::German),
    ] {
        assert_eq!(Language::of(text), Some(language), "{text}");
    }
    assert_eq!(Language::of("ok"), None);
}

proptest! {
    #[test]
    fn every_text_has_words_in_order(text in "\\PC{0,200}") {
        let words = Words::of(&text);
        let mut before = 0;
        for word in words.iter() {
            prop_assert!(!word.text.is_empty() && word.text.len() <= MAX_WORD_BYTES);
            prop_assert!(text.get(word.from..word.to).is_some() && word.from < word.to);
            prop_assert!(word.position >= before, "{words:?}");
            before = word.position;
        }
    }

    /// A word is found by what it was folded to.
    #[test]
    fn folding_twice_changes_nothing(text in "\\PC{0,40}") {
        prop_assert_eq!(fold(&fold(&text)), fold(&text));
    }
}
