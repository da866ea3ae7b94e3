//! Stems, with which a word finds its inflections: `bee` and `bees`, `coração` and `corações`.
//!
//! Stems are an addition to words: an exact hit never depends on them.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};
use whatlang::{Detector, Lang};

use super::{MAX_WORD_BYTES, fold_into};

/// Characters of a text by which its language is recognized.
const DETECTED_CHARS: usize = 240;
/// Shortest text whose language is recognized, in characters.
const MIN_DETECTED_CHARS: usize = 24;
/// Shortest word that has a stem, in characters.
const MIN_STEMMED_CHARS: usize = 3;

macro_rules! languages {
    ($($name:ident $lang:ident $code:literal)+) => {
        /// A language whose words have stems here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Language {
            $(#[doc = concat!("`", $code, "`")] $name,)+
        }

        impl Language {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the code of ISO 639-1.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)+
                }
            }

            fn algorithm(self) -> Algorithm {
                match self {
                    $(Self::$name => Algorithm::$name,)+
                }
            }

            fn of_lang(lang: Lang) -> Option<Self> {
                match lang {
                    $(Lang::$lang => Some(Self::$name),)+
                    _ => None,
                }
            }

            fn langs() -> Vec<Lang> {
                vec![$(Lang::$lang,)+]
            }
        }
    };
}

languages! {
    English Eng "en"
    Portuguese Por "pt"
    Spanish Spa "es"
    German Deu "de"
    French Fra "fr"
    Italian Ita "it"
    Dutch Nld "nl"
    Swedish Swe "sv"
    Russian Rus "ru"
}

impl Language {
    /// Returns the language of a text; `None` if it is too short to tell, or in another language.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let end = text.char_indices().nth(DETECTED_CHARS).map_or(text.len(), |(at, _)| at);
        let beginning = &text[..end];
        if beginning.chars().filter(|c| c.is_alphabetic()).take(MIN_DETECTED_CHARS).count()
            < MIN_DETECTED_CHARS
        {
            return None;
        }
        Self::of_lang(Detector::with_allowlist(Self::langs()).detect_lang(beginning)?)
    }

    /// Appends the folded stem of a word. Appends nothing if the word is too short to have one.
    pub fn stem_into(self, word: &str, out: &mut String) {
        if word.chars().take(MIN_STEMMED_CHARS).count() < MIN_STEMMED_CHARS {
            return;
        }
        let lower = word.to_lowercase();
        // The algorithms expect accents, which the folding removes afterwards.
        let stem: Cow<'_, str> = Stemmer::new(self.algorithm()).stem(&lower);
        let start = out.len();
        fold_into(&stem, out);
        let cut = out.floor_char_boundary(start + MAX_WORD_BYTES);
        out.truncate(cut);
    }

    /// Returns the folded stem of a word.
    #[must_use]
    pub fn stem(self, word: &str) -> Option<String> {
        let mut stem = String::new();
        self.stem_into(word, &mut stem);
        (!stem.is_empty()).then_some(stem)
    }
}
