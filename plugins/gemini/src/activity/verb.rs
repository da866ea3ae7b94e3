//! Parses titles: a verb, in one of the known languages, and the prompt.

/// The verbs of prompts. Only one is removed: the prompt behind it may begin with a verb as well.
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

/// The verbs of English titles that are not prompts.
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

/// The action that a title describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action<'t> {
    Prompt {
        /// The verb with the separator behind it.
        verb: &'t str,
        text: &'t str,
    },
    /// Gemini created something, such as a canvas.
    Creation,
    Event,
    /// The verb is not known.
    Unknown,
}

/// Parses a title. `english` says whether the row is in English; `learned` is the verb of prompts in an unknown
/// language.
pub(crate) fn parse<'t>(title: &'t str, english: bool, learned: Option<&str>) -> Action<'t> {
    if title.ends_with("Gemini Canvas を作成しました") || title.starts_with("Δημιουργήθηκε Gemini Canvas")
    {
        return Action::Creation;
    }
    if english && let Some((verb, _)) = EVENTS.iter().find_map(|verb| strip_verb(title, verb)) {
        return if verb.starts_with("Created") { Action::Creation } else { Action::Event };
    }
    if strip_verb(title, "使用:").is_some() {
        return Action::Event;
    }
    let mut prompts = PROMPTS.iter().copied().chain(learned);
    prompts
        .find_map(|verb| strip_verb(title, verb))
        .map_or(Action::Unknown, |(verb, text)| Action::Prompt { verb, text })
}

/// The possible verb of a title in an unknown language: everything up to the first colon.
pub(crate) fn possible_verb(title: &str) -> Option<&str> {
    /// The longest verb, in bytes.
    const MAX_VERB: usize = 60;
    let at = title.find([':', '：'])?;
    let colon = title.get(at..)?.chars().next()?.len_utf8();
    let verb = title.get(..at + colon)?;
    (at > 0 && at <= MAX_VERB && !verb.contains('\n') && !verb.contains("http")).then_some(verb)
}

/// Splits the title behind `verb`, a colon and white space, if it begins with the verb. A space in the verb matches any
/// white space.
fn strip_verb<'t>(title: &'t str, verb: &str) -> Option<(&'t str, &'t str)> {
    // Fast path: most titles have another first letter.
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
    // The verb is a whole word: `Saidie` does not begin with `Said`.
    let whole_word = verb.ends_with([':', '：']) || !rest.starts_with(char::is_alphanumeric);
    // A colon behind a space belongs to the prompt: `Prompted :)`.
    let colon = if verb.ends_with(':') { None } else { rest.strip_prefix([':', '：']) };
    let text = colon.unwrap_or(rest).trim_start();
    let start = title.len() - text.len();
    whole_word.then(|| (title.get(..start).unwrap_or_default(), text.trim_end()))
}

/// Splits the English note about attached files off the title.
pub(crate) fn split_attachment_note(title: &str) -> (&str, Option<&str>) {
    let trimmed = title.trim_end();
    // Fast path: most titles have no note, and may be long.
    let last = trimmed.trim_end_matches('.');
    if !last.ends_with("file") && !last.ends_with("files") {
        return (title, None);
    }
    let found = trimmed.rfind("Attached ").filter(|at| {
        let note = trimmed.get(*at..).unwrap_or_default();
        let mut words = note.split_whitespace().skip(1);
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
    fn the_verb_is_split_off_a_prompt() {
        let prompt = |title| match parse(title, true, Some("Requête :")) {
            Action::Prompt { verb, text } => Some((verb, text)),
            Action::Creation | Action::Event | Action::Unknown => None,
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
    fn a_prompt_that_begins_with_a_verb_keeps_it() {
        let text = |title| match parse(title, true, None) {
            Action::Prompt { text, .. } => Some(text),
            Action::Creation | Action::Event | Action::Unknown => None,
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
    fn events_and_creations_are_recognised() {
        for (title, action) in [
            ("Created Gemini Canvas titled Plan", Action::Creation),
            ("「表」というタイトルの Gemini Canvas を作成しました", Action::Creation),
            ("Δημιουργήθηκε Gemini Canvas με τίτλο Σχέδιο", Action::Creation),
            ("Gave feedback: Good response", Action::Event),
            ("Answered survey question", Action::Event),
            ("Used Gemini Apps", Action::Event),
            ("使用: Gemini アプリ", Action::Event),
            ("Gebraucht", Action::Unknown),
        ] {
            assert_eq!(parse(title, true, None), action, "{title}");
        }
        assert_eq!(parse("Used cars in Seoul?", false, None), Action::Unknown);
    }

    #[test]
    fn notes_about_attached_files_are_split_off() {
        assert_eq!(
            split_attachment_note("Prompted And now? Attached 1 file."),
            ("Prompted And now?", Some("Attached 1 file."))
        );
        assert_eq!(split_attachment_note("Attached 12 files"), ("", Some("Attached 12 files")));
        for plain in ["Attached are files", "Prompted Attached 1 file to what?"] {
            assert_eq!(split_attachment_note(plain), (plain, None));
        }
    }

    #[test]
    fn text_up_to_a_colon_may_be_a_verb() {
        assert_eq!(possible_verb("Requête : du thé: noir"), Some("Requête :"));
        assert_eq!(possible_verb("提示：茶"), Some("提示："));
        for none in ["no colon", ": x", "see https://a"] {
            assert_eq!(possible_verb(none), None, "{none}");
        }
    }
}
