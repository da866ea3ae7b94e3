//! What a language brings to the judged set: topics, small talk and queries.
//!
//! A query names the topic, or the topic and the aspect, that the person has in mind. Whether a message is relevant follows from the
//! topic and aspect that it was written for, and never from what an engine finds.

/// A language of the judged set.
pub(crate) struct Language {
    /// The code of ISO 639-1.
    pub(crate) code: &'static str,
    pub(crate) topics: &'static [Topic],
    /// First sentences of messages on any topic.
    pub(crate) openings: &'static [&'static str],
    /// Sentences that fit any topic.
    pub(crate) chatter: &'static [&'static str],
    pub(crate) queries: &'static [Query],
}

/// A topic. Topics of other languages with the same name are the same subject.
pub(crate) struct Topic {
    pub(crate) name: &'static str,
    pub(crate) aspects: &'static [Aspect],
}

/// A side of a topic that a person asks about.
pub(crate) struct Aspect {
    pub(crate) name: &'static str,
    /// A snippet that some of the messages quote.
    pub(crate) code: Option<&'static str>,
    /// Sentences with alternatives: `{one|other}`.
    pub(crate) sentences: &'static [&'static str],
}

/// The kind of a query, what a person types, and the topic or `topic/aspect` that is meant.
pub(crate) type Query = (Kind, &'static str, &'static str);

/// How a query was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Word,
    Words,
    /// Another form of the word than in the messages.
    Inflected,
    /// Accents are missing or written in another way.
    Unaccented,
    /// A part of a compound, or a compound whose parts are apart in the messages.
    Compound,
    Typo,
    /// The last word is not typed to its end.
    Prefix,
    /// A name from a program, or its parts.
    Code,
    /// Words of several languages or scripts.
    Mixed,
    Question,
}

/// Topics with their aspects: `topic { aspect ["sentence",] other_aspect quotes "code" ["sentence",] }`.
macro_rules! topics {
    (@code) => { None };
    (@code $code:literal) => { Some($code) };
    ($($topic:ident { $($aspect:ident $(quotes $code:literal)? [$($sentence:literal,)+])+ })+) => {
        &[$($crate::judged::Topic {
            name: stringify!($topic),
            aspects: &[$($crate::judged::Aspect {
                name: stringify!($aspect),
                code: topics!(@code $($code)?),
                sentences: &[$($sentence,)+],
            },)+],
        },)+]
    };
}
pub(crate) use topics;
