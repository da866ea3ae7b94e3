//! Converts one row to messages: the prompt and its answer, or an event.

use std::borrow::Cow;

use satchel_importer::{
    Attachment, AttachmentKind, Bundle, Content, Message, Role,
    address::{is_uri, unsigned_json},
};

use super::{
    row::{Answer, Row},
    verb::{self, Action},
};
use crate::{
    files,
    markdown::{self, Image},
};

/// The export of a row.
pub(super) struct RowContext<'c> {
    pub(super) bundle: &'c Bundle,
    /// The folders that may hold files of the row.
    pub(super) folders: &'c [String],
    /// The verb of prompts in the language of the export, if it is not a known one.
    pub(super) learned_verb: Option<&'c str>,
    /// Unanswered rows with an unknown verb are prompts.
    pub(super) assume_prompts: bool,
}

/// The messages of a row. The parent of the first is `parent`, that of each other is the message before.
pub(super) fn messages<'a>(
    mut row: Row<'a>,
    key: &str,
    parent: Option<String>,
    context: &RowContext<'_>,
) -> Vec<Message<'a>> {
    let title = std::mem::take(&mut row.title);
    let (title, note) = verb::split_attachment_note(&title);
    if let Some(note) = note {
        row.rest.add_text("attached", note);
    }
    let action = verb::parse(title, row.is_english(), context.learned_verb);
    let answer = answer(std::mem::take(&mut row.answers), context);
    let prompt = match (row.prompt.take(), action) {
        (Some(prompt), _) => {
            if !title.is_empty() {
                row.rest.add_text("title", title);
            }
            Some(prompt)
        }
        (None, Action::Prompt { verb, text }) => {
            row.rest.add_text("verb", verb);
            Some(Cow::Owned(text.to_owned()))
        }
        (None, Action::Unknown) if answer.is_some() || context.assume_prompts => {
            Some(Cow::Owned(title.to_owned()))
        }
        (None, Action::Unknown | Action::Creation | Action::Event) => None,
    };
    match prompt {
        Some(text) => exchange(row, key, parent, text, answer, context),
        None => vec![event(row, key, parent, title, action == Action::Creation, answer, context)],
    }
}

/// A prompt and its answer.
fn exchange<'a>(
    mut row: Row<'a>,
    key: &str,
    parent: Option<String>,
    text: Cow<'a, str>,
    answer: Option<AnswerContent<'a>>,
    context: &RowContext<'_>,
) -> Vec<Message<'a>> {
    let prompt = Message {
        id: Cow::Owned(key.to_owned()),
        role: Role::User,
        content: Some(text).filter(|text| !text.trim().is_empty()).map(Content::Text),
        created_at: row.time,
        parent: parent.map(Cow::Owned),
        attachments: uploads(&mut row, context),
        unread: row.rest.unread().map(Cow::Borrowed),
        raw_metadata: row.rest.into_json().map(unsigned_json),
        ..Message::default()
    };
    let answer = answer.map(|answer| Message {
        id: Cow::Owned([key, ":answer"].concat()),
        role: Role::Assistant,
        content: answer.content,
        created_at: row.time,
        parent: Some(Cow::Owned(key.to_owned())),
        attachments: answer.images,
        ..Message::default()
    });
    std::iter::once(prompt).chain(answer).collect()
}

/// A row that is no prompt. Something that Gemini created is a message of the assistant, any other event is hidden.
fn event<'a>(
    mut row: Row<'a>,
    key: &str,
    parent: Option<String>,
    title: &str,
    creation: bool,
    answer: Option<AnswerContent<'a>>,
    context: &RowContext<'_>,
) -> Message<'a> {
    // A canvas without an answer has its text in the remarks.
    let remarks = row.remarks.join("\n");
    let created = (creation && !remarks.is_empty()).then_some(Content::Text(Cow::Owned(remarks)));
    let mut attachments = uploads(&mut row, context);
    let content = match answer {
        Some(answer) => {
            attachments.extend(answer.images);
            answer.content
        }
        None => created,
    };
    let role = if content.is_some() { Role::Assistant } else { Role::System };
    if content.is_some() {
        row.rest.add_text("title", title);
    } else {
        row.rest.add_bool("hidden", true);
    }
    Message {
        id: Cow::Owned(key.to_owned()),
        role,
        content: content.or_else(|| (!title.is_empty()).then(|| Content::Text(Cow::Owned(title.to_owned())))),
        created_at: row.time,
        parent: parent.map(Cow::Owned),
        attachments,
        unread: row.rest.unread().map(Cow::Borrowed),
        raw_metadata: row.rest.into_json().map(unsigned_json),
        ..Message::default()
    }
}

/// The answers of a row as one message.
struct AnswerContent<'a> {
    content: Option<Content<'a>>,
    images: Vec<Attachment<'a>>,
}

/// Combines the answers of a row. If there are several, each is a part.
fn answer<'a>(answers: Vec<Answer<'a>>, context: &RowContext<'_>) -> Option<AnswerContent<'a>> {
    let (mut texts, mut images): (Vec<Cow<'a, str>>, Vec<Image>) = (Vec::new(), Vec::new());
    for answer in answers {
        let markdown = match answer {
            Answer::Text(text) => {
                texts.push(text);
                continue;
            }
            Answer::Html(html) => markdown::convert(html),
            Answer::Markdown(markdown) => markdown,
        };
        texts.push(Cow::Owned(markdown.text));
        images.extend(markdown.images);
    }
    texts.retain(|text| !text.trim().is_empty());
    images.dedup();
    let content = Content::of_texts(texts);
    let attachment = |Image { file, name }| {
        let (name, kind) = (name.map(Cow::Owned), Some(AttachmentKind::Image));
        files::attachment(context.bundle, context.folders, Cow::Owned(file), name, kind)
    };
    let images: Vec<_> = images.into_iter().map(attachment).collect();
    (content.is_some() || !images.is_empty()).then_some(AnswerContent { content, images })
}

fn uploads<'a>(row: &mut Row<'a>, context: &RowContext<'_>) -> Vec<Attachment<'a>> {
    let uploads = std::mem::take(&mut row.uploads).into_iter();
    uploads
        .filter(|upload| !upload.file.is_empty() && (!is_uri(&upload.file) || upload.file.contains("//")))
        .map(|upload| files::attachment(context.bundle, context.folders, upload.file, upload.name, None))
        .collect()
}
