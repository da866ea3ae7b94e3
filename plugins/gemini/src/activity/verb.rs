//! What a title says was done, in the languages that are known: asked something, or something else.

/// Titles of prompts begin so. Their rest is the prompt, whatever it begins with: one verb is taken off, never two.
const PROMPTS: [&str; 22] = [
    "Prompted with:",
    "Prompted",
    "Asked Bard:",
    "Asked Gemini:",
    "Asked",
    "Said",
    "Submitted query",
    "Query submitted",
    "Branched",
    "Answered",
    "Live Prompt",
    "Eingegebener Prompt:",
    "Gav instruktionen",
    "送信したメッセージ:",
    "プロンプト:",
    "已提示",
    "분기된",
    "Solicitou",
    "Υποβλήθηκε το ερώτημα",
    "Has dicho:",
    "Hiciste la petición",
    "Preguntado:",
];

/// English titles of rows that are no prompts begin so.
const EVENTS: [&str; 19] = [
    "Answered survey question",
    "Created",
    "Used",
    "Added",
    "Gave",
    "Selected",
    "Shared",
    "Deleted",
    "Viewed",
    "Visited",
    "Edited",
    "Pinned",
    "Unpinned",
    "Renamed",
    "Exported",
    "Updated",
    "Cleared",
    "Removed",
    "Searched",
];

/// What a title says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act<'t> {
    /// Something was asked.
    Prompt {
        /// The words before it, with what parts them from it.
        verb: &'t str,
        text: &'t str,
    },
    /// Gemini made something.
    Creation,
    /// Something else happened.
    Event,
    /// A language that is not known.
    Unknown,
}

/// Reads a title; `english` says whether the row is written in English, `learned` how prompts begin in this export.
pub(crate) fn read<'t>(title: &'t str, english: bool, learned: Option<&str>) -> Act<'t> {
    if title.ends_with("Gemini Canvas を作成しました") || title.starts_with("Δημιουργήθηκε Gemini Canvas")
    {
        return Act::Creation;
    }
    if english && let Some((verb, _)) = EVENTS.iter().find_map(|verb| after(title, verb)) {
        return if verb.starts_with("Created") { Act::Creation } else { Act::Event };
    }
    if after(title, "使用:").is_some() {
        return Act::Event;
    }
    let prompts = PROMPTS.iter().copied().chain(learned);
    prompts
        .into_iter()
        .find_map(|verb| after(title, verb))
        .map_or(Act::Unknown, |(verb, text)| Act::Prompt { verb, text })
}

/// How the prompts of a language that is not known may begin: all up to the first colon.
pub(crate) fn candidate(title: &str) -> Option<&str> {
    /// Longer beginnings are not a verb, in bytes.
    const LONGEST: usize = 60;
    let at = title.find([':', '：'])?;
    let colon = title.get(at..)?.chars().next()?.len_utf8();
    let verb = title.get(..at + colon)?;
    (at > 0 && at <= LONGEST && !verb.contains('\n') && !verb.contains("http")).then_some(verb)
}

/// The title behind `verb` and a colon right behind that, if it begins so; white space of any kind is a space.
fn after<'t>(title: &'t str, verb: &str) -> Option<(&'t str, &'t str)> {
    // Nearly all titles begin otherwise.
    if title.as_bytes().first() != verb.as_bytes().first() && !verb.starts_with(' ') {
        return None;
    }
    let mut rest = title.chars();
    for expected in verb.chars() {
        let found = rest.next()?;
        let same = found == expected
            || (expected == ' ' && found.is_whitespace())
            || (expected == ':' && found == '：');
        if !same {
            return None;
        }
    }
    let rest = rest.as_str();
    // A verb is a word: `Saidie` is none.
    let parted = verb.ends_with([':', '：']) || !rest.starts_with(char::is_alphanumeric);
    // A colon with a space before it is the person's: `Prompted :)`.
    let colon = if verb.ends_with(':') { None } else { rest.strip_prefix([':', '：']) };
    let text = colon.unwrap_or(rest).trim_start();
    let start = title.len() - text.len();
    parted.then(|| (title.get(..start).unwrap_or_default(), text.trim_end()))
}

/// A title without the English remark about attached files, and that remark.
pub(crate) fn without_attached(title: &str) -> (&str, Option<&str>) {
    let trimmed = title.trim_end();
    // Nearly all titles end otherwise, and are long.
    let last = trimmed.trim_end_matches('.');
    if !last.ends_with("file") && !last.ends_with("files") {
        return (title, None);
    }
    let found = trimmed.rfind("Attached ").filter(|at| {
        let remark = trimmed.get(*at..).unwrap_or_default();
        let mut words = remark.split_whitespace().skip(1);
        let counted = words.next().is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let files = words.next().is_some_and(|word| matches!(word.trim_end_matches('.'), "file" | "files"));
        counted && files && words.next().is_none()
    });
    match found {
        Some(at) => (trimmed.get(..at).unwrap_or_default().trim_end(), trimmed.get(at..)),
        None => (title, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_lose_their_verb() {
        let prompt = |title| match read(title, true, Some("Requête :")) {
            Act::Prompt { verb, text } => Some((verb, text)),
            Act::Creation | Act::Event | Act::Unknown => None,
        };
        assert_eq!(prompt("Prompted What is tea?"), Some(("Prompted ", "What is tea?")));
        assert_eq!(prompt("Prompted\u{a0}What\nis tea?"), Some(("Prompted\u{a0}", "What\nis tea?")));
        assert_eq!(prompt("Prompted with: tea"), Some(("Prompted with: ", "tea")));
        assert_eq!(prompt("Asked Bard: hello"), Some(("Asked Bard: ", "hello")));
        assert_eq!(prompt("Live Prompt"), Some(("Live Prompt", "")));
        assert_eq!(prompt("Eingegebener Prompt: Wie spät?"), Some(("Eingegebener Prompt: ", "Wie spät?")));
        assert_eq!(prompt("送信したメッセージ: お茶"), Some(("送信したメッセージ: ", "お茶")));
        assert_eq!(prompt("Requête : du thé"), Some(("Requête : ", "du thé")));
        assert_eq!(prompt("Saidie who?"), None);
        assert_eq!(prompt("Asked: What is tea?"), Some(("Asked: ", "What is tea?")));
        assert_eq!(prompt("Asked:What is tea?"), Some(("Asked:", "What is tea?")));
        assert_eq!(prompt("Submitted query What is tea?"), Some(("Submitted query ", "What is tea?")));
        assert_eq!(prompt("Submitted query: What is tea?"), Some(("Submitted query: ", "What is tea?")));
        assert_eq!(prompt("Said： 你好"), Some(("Said： ", "你好")));
        assert_eq!(prompt("送信したメッセージ：お茶"), Some(("送信したメッセージ：", "お茶")));
        assert_eq!(prompt("已提示：茶是什么"), Some(("已提示：", "茶是什么")));
        assert_eq!(prompt("Υποβλήθηκε το ερώτημα Τι είναι;"), Some(("Υποβλήθηκε το ερώτημα ", "Τι είναι;")));
        assert_eq!(prompt("Has dicho: hola"), Some(("Has dicho: ", "hola")));
        assert_eq!(prompt("Hiciste la petición ¿Qué es?"), Some(("Hiciste la petición ", "¿Qué es?")));
    }

    #[test]
    fn a_prompt_that_begins_like_a_verb_keeps_its_words() {
        let text = |title| match read(title, true, None) {
            Act::Prompt { text, .. } => Some(text),
            Act::Creation | Act::Event | Act::Unknown => None,
        };
        assert_eq!(
            text("Prompted Asked my boss for a rise, now what?"),
            Some("Asked my boss for a rise, now what?")
        );
        assert_eq!(text("Asked: Asked: who?"), Some("Asked: who?"));
        assert_eq!(text("Prompted Created a list. Is it good?"), Some("Created a list. Is it good?"));
        assert_eq!(text("Prompted :) hello"), Some(":) hello"));
        assert_eq!(text("Said submitted query is slow"), Some("submitted query is slow"));
        for none in ["Askedo", "Submitted queryish things", "Has dicho hola", "プロンプト集をください"]
        {
            assert_eq!(text(none), None, "{none}");
        }
    }

    #[test]
    fn what_else_was_done_is_told_apart() {
        for (title, act) in [
            ("Created Gemini Canvas titled Plan", Act::Creation),
            ("「表」というタイトルの Gemini Canvas を作成しました", Act::Creation),
            ("Δημιουργήθηκε Gemini Canvas με τίτλο Σχέδιο", Act::Creation),
            ("Gave feedback: Good response", Act::Event),
            ("Answered survey question", Act::Event),
            ("Used Gemini Apps", Act::Event),
            ("使用: Gemini アプリ", Act::Event),
            ("Gebraucht", Act::Unknown),
        ] {
            assert_eq!(read(title, true, None), act, "{title}");
        }
        assert_eq!(read("Used cars in Seoul?", false, None), Act::Unknown);
    }

    #[test]
    fn remarks_about_files_are_no_words_of_the_person() {
        assert_eq!(
            without_attached("Prompted And now? Attached 1 file."),
            ("Prompted And now?", Some("Attached 1 file."))
        );
        assert_eq!(without_attached("Attached 12 files"), ("", Some("Attached 12 files")));
        for plain in ["Attached are files", "Prompted Attached 1 file to what?"] {
            assert_eq!(without_attached(plain), (plain, None));
        }
    }

    #[test]
    fn beginnings_up_to_a_colon_may_be_a_verb() {
        assert_eq!(candidate("Requête : du thé: noir"), Some("Requête :"));
        assert_eq!(candidate("提示：茶"), Some("提示："));
        for none in ["no colon", ": x", "see https://a"] {
            assert_eq!(candidate(none), None, "{none}");
        }
    }
}
