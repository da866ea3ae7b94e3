//! Messages that are written from the topics, always the same ones.

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use super::judged::{Aspect, Language, Topic};

/// Messages for each aspect of a topic.
const MESSAGES_PER_ASPECT: usize = 16;
/// Messages of small talk in each language.
const CHAT_MESSAGES: usize = 300;

/// A message, and what it was written about.
pub(crate) struct Message {
    pub(crate) language: &'static str,
    /// The topic and the aspect; `None` for small talk.
    pub(crate) about: Option<(&'static str, &'static str)>,
    /// Another topic that is mentioned in passing.
    pub(crate) mentions: Option<&'static str>,
    pub(crate) text: String,
}

impl Message {
    /// Returns how relevant the message is for a query of a language: 2 if it is about what is meant, 1 if it is about another
    /// aspect of the topic, mentions the topic, or is about it in another language, and 0 if it has nothing to do with it.
    pub(crate) fn relevance(&self, language: &Language, wanted: &str) -> u8 {
        let (topic, aspect) =
            wanted.split_once('/').map_or((wanted, None), |(topic, aspect)| (topic, Some(aspect)));
        let same_language = self.language == language.code;
        match self.about {
            Some((about, side)) if about == topic && same_language => {
                if aspect.is_none_or(|aspect| aspect == side) { 2 } else { 1 }
            }
            Some((about, _)) if about == topic => 1,
            _ => u8::from(same_language && self.mentions == Some(topic)),
        }
    }
}

/// Returns the messages of all languages.
pub(crate) fn messages(languages: &[&Language]) -> Vec<Message> {
    let mut messages = Vec::new();
    for (seed, language) in (1_u64..).zip(languages) {
        let mut writer = Writer { language, random: Random(seed) };
        for topic in language.topics {
            for aspect in topic.aspects {
                messages.extend((0..MESSAGES_PER_ASPECT).map(|_| writer.message(topic, aspect)));
            }
        }
        messages.extend((0..CHAT_MESSAGES).map(|_| writer.chat()));
    }
    messages
}

/// Numbers that look random and are the same in each run (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Writes the messages of one language.
struct Writer<'a> {
    language: &'a Language,
    random: Random,
}

impl Writer<'_> {
    /// Writes a message about an aspect of a topic: short, of a few sentences, or long.
    fn message(&mut self, topic: &Topic, aspect: &Aspect) -> Message {
        let (about, chatter) = match self.random.below(4) {
            0 => (1, 0),
            1 | 2 => (2, 1 + self.random.below(2)),
            _ => (2 + self.random.below(3), 6 + self.random.below(8)),
        };
        let mut sentences = self.different(aspect.sentences, about);
        for _ in 0..chatter {
            let at = self.random.below(sentences.len() + 1);
            let sentence = self.chatter();
            sentences.insert(at, sentence);
        }
        let mentions = (chatter > 0 && self.random.percent(15)).then(|| {
            let (name, sentence) = self.mention(topic);
            sentences.push(sentence);
            name
        });
        if chatter > 0 {
            sentences.insert(0, self.opening());
        }
        let mut text = self.with_slips(&sentences.join(self.space()));
        if let Some(code) = aspect.code.filter(|_| self.random.percent(60)) {
            text += &format!("\n```\n{code}\n```\n");
        }
        Message { language: self.language.code, about: Some((topic.name, aspect.name)), mentions, text }
    }

    /// Writes a message of small talk.
    fn chat(&mut self) -> Message {
        let mut sentences = vec![self.opening()];
        for _ in 0..self.random.below(9) {
            sentences.push(self.chatter());
        }
        let text = sentences.join(self.space());
        Message { language: self.language.code, about: None, mentions: None, text }
    }

    /// Returns a sentence about another topic of the language.
    fn mention(&mut self, topic: &Topic) -> (&'static str, String) {
        let topics = self.language.topics;
        let at = topics.iter().position(|one| one.name == topic.name).unwrap_or(0);
        let other = &topics[(at + 1 + self.random.below(topics.len() - 1)) % topics.len()];
        let aspect = self.random.pick(other.aspects);
        let sentence = *self.random.pick(aspect.sentences);
        (other.name, self.expand(sentence))
    }

    fn opening(&mut self) -> String {
        let opening = *self.random.pick(self.language.openings);
        self.expand(opening)
    }

    fn chatter(&mut self) -> String {
        let chatter = *self.random.pick(self.language.chatter);
        self.expand(chatter)
    }

    /// Returns some of the sentences, in any order.
    fn different(&mut self, sentences: &[&str], count: usize) -> Vec<String> {
        let mut left = sentences.to_vec();
        let mut chosen = Vec::new();
        while chosen.len() < count && !left.is_empty() {
            let sentence = left.swap_remove(self.random.below(left.len()));
            chosen.push(self.expand(sentence));
        }
        chosen
    }

    /// Chooses one of each of the alternatives in `{one|other}`.
    fn expand(&mut self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, (choices, after))) =
            rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            let choices: Vec<&str> = choices.split('|').collect();
            out += before;
            out += choices[self.random.below(choices.len())];
            rest = after;
        }
        out + rest
    }

    fn space(&self) -> &'static str {
        if matches!(self.language.code, "zh" | "ja") { "" } else { " " }
    }

    /// Writes some of the texts without accents, and some with a typo.
    fn with_slips(&mut self, text: &str) -> String {
        let text = match self.language.code {
            "de" if self.random.percent(8) => without_umlauts(text),
            "de" | "es" | "pt" if self.random.percent(12) => without_accents(text),
            _ => text.to_owned(),
        };
        if self.random.percent(10) { self.with_typo(&text) } else { text }
    }

    /// Swaps two letters of a long word, or leaves one out.
    fn with_typo(&mut self, text: &str) -> String {
        let mut words: Vec<String> = text.split(' ').map(ToOwned::to_owned).collect();
        let long = |word: &String| word.chars().count() > 5 && word.chars().all(char::is_alphabetic);
        let candidates: Vec<usize> = (0..words.len()).filter(|at| long(&words[*at])).collect();
        if self.space().is_empty() || candidates.is_empty() {
            return text.to_owned();
        }
        let at = *self.random.pick(&candidates);
        let mut letters: Vec<char> = words[at].chars().collect();
        let letter = 1 + self.random.below(letters.len() - 2);
        if self.random.percent(50) {
            letters.swap(letter, letter + 1);
        } else {
            letters.remove(letter);
        }
        words[at] = letters.into_iter().collect();
        words.join(" ")
    }
}

fn without_accents(text: &str) -> String {
    text.nfd().filter(|c| !is_combining_mark(*c)).nfc().collect()
}

/// Writes German as it is typed on a keyboard without umlauts.
fn without_umlauts(text: &str) -> String {
    let pairs = [("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("Ä", "Ae"), ("Ö", "Oe"), ("Ü", "Ue"), ("ß", "ss")];
    pairs.iter().fold(text.to_owned(), |text, (umlaut, letters)| text.replace(umlaut, letters))
}
