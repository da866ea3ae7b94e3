//! One row as messages: what the person said, and what was answered.

use std::borrow::Cow;

use satchel_importer::{
    Attachment, Bundle, Content, Message, Part, Role, address::is_uri, address::unsigned_json,
};

use super::{
    row::{Answer, Row},
    verb::{self, Act},
};
use crate::{
    files,
    markdown::{self, Image},
};

/// What the row is read with.
pub(super) struct Setting<'s> {
    pub(super) bundle: &'s Bundle,
    /// Where files of the row may stand.
    pub(super) folders: &'s [String],
    /// How prompts begin in the language of the export, if it had to be learned.
    pub(super) learned: Option<&'s str>,
    /// Rows of a language that is not known, and without an answer, are prompts.
    pub(super) guess: bool,
}

/// The messages of a row; each answers the one before, the first answers `parent`.
pub(super) fn messages<'a>(
    mut row: Row<'a>,
    key: &str,
    parent: Option<String>,
    setting: &Setting<'_>,
) -> Vec<Message<'a>> {
    let (title, remark) = split_title(std::mem::take(&mut row.title));
    if let Some(remark) = remark {
        row.rest.add_text("attached", &remark);
    }
    let act = verb::read(&title, row.in_english(), setting.learned);
    let own = row.prompt.take();
    let answer = answer(std::mem::take(&mut row.answers), setting);
    let said = match (own, act) {
        (Some(prompt), _) => {
            if !title.is_empty() {
                row.rest.add_text("title", &title);
            }
            Some(prompt)
        }
        (None, Act::Prompt { verb, text }) => {
            row.rest.add_text("verb", verb);
            Some(Cow::Owned(text.to_owned()))
        }
        (None, Act::Unknown) if answer.is_some() || setting.guess => Some(title.clone()),
        (None, Act::Unknown | Act::Creation | Act::Event) => None,
    };
    match said {
        Some(text) => conversation(row, key, parent, text, answer, setting),
        None => vec![event(row, key, parent, &title, act == Act::Creation, answer, setting)],
    }
}

/// A prompt and its answer.
fn conversation<'a>(
    mut row: Row<'a>,
    key: &str,
    parent: Option<String>,
    text: Cow<'a, str>,
    answer: Option<Said<'a>>,
    setting: &Setting<'_>,
) -> Vec<Message<'a>> {
    let prompt = Message {
        id: Cow::Owned(key.to_owned()),
        role: Role::User,
        content: Some(text).filter(|text| !text.trim().is_empty()).map(Content::Text),
        created_at: row.time,
        parent: parent.map(Cow::Owned),
        attachments: uploads(&mut row, setting),
        unread: row.rest.unread().map(Cow::Borrowed),
        raw_metadata: row.rest.into_json().map(unsigned_json),
        ..Message::default()
    };
    let answer = answer.map(|said| Message {
        id: Cow::Owned([key, ":answer"].concat()),
        role: Role::Assistant,
        content: said.content,
        created_at: row.time,
        parent: Some(Cow::Owned(key.to_owned())),
        attachments: said.images,
        ..Message::default()
    });
    std::iter::once(prompt).chain(answer).collect()
}

/// Something that happened: what Gemini made is its message, the rest is hidden.
fn event<'a>(
    mut row: Row<'a>,
    key: &str,
    parent: Option<String>,
    title: &str,
    creation: bool,
    answer: Option<Said<'a>>,
    setting: &Setting<'_>,
) -> Message<'a> {
    // Where there is no answer, a canvas has its text among the remarks.
    let remarks = row.remarks.join("\n");
    let made = (creation && !remarks.is_empty()).then_some(Content::Text(Cow::Owned(remarks)));
    let mut attachments = uploads(&mut row, setting);
    let content = match answer {
        Some(said) => {
            attachments.extend(said.images);
            said.content
        }
        None => made,
    };
    let speaks = content.is_some();
    if speaks {
        row.rest.add_text("title", title);
    } else {
        row.rest.add_bool("hidden", true);
    }
    Message {
        id: Cow::Owned(key.to_owned()),
        role: if speaks { Role::Assistant } else { Role::System },
        content: content.or_else(|| (!title.is_empty()).then(|| Content::Text(Cow::Owned(title.to_owned())))),
        created_at: row.time,
        parent: parent.map(Cow::Owned),
        attachments,
        unread: row.rest.unread().map(Cow::Borrowed),
        raw_metadata: row.rest.into_json().map(unsigned_json),
        ..Message::default()
    }
}

fn split_title(title: Cow<'_, str>) -> (Cow<'_, str>, Option<String>) {
    let (plain, remark) = verb::without_attached(&title);
    match remark {
        Some(remark) => (Cow::Owned(plain.to_owned()), Some(remark.to_owned())),
        None => (title, None),
    }
}

/// What the answers of a row come to.
struct Said<'a> {
    content: Option<Content<'a>>,
    images: Vec<Attachment<'a>>,
}

/// All answers as one message; where there are several, each is a part.
fn answer<'a>(answers: Vec<Answer<'a>>, setting: &Setting<'_>) -> Option<Said<'a>> {
    let (mut texts, mut images): (Vec<Cow<'a, str>>, Vec<Image>) = (Vec::new(), Vec::new());
    for answer in answers {
        let read = match answer {
            Answer::Text(text) => {
                texts.push(text);
                continue;
            }
            Answer::Html(html) => markdown::read(html),
            Answer::Markdown(read) => read,
        };
        texts.push(Cow::Owned(read.text));
        images.extend(read.images);
    }
    texts.retain(|text| !text.trim().is_empty());
    images.dedup();
    let content = match texts.len() {
        0 => None,
        1 => texts.pop().map(Content::Text),
        _ => {
            let part = |text| Part { text: Some(text), ..Part::default() };
            Some(Content::Multipart(texts.into_iter().map(part).collect()))
        }
    };
    let images: Vec<_> = images.into_iter().map(|image| shown(image, setting)).collect();
    (content.is_some() || !images.is_empty()).then_some(Said { content, images })
}

fn shown<'a>(image: Image, setting: &Setting<'_>) -> Attachment<'a> {
    let kind = Some(satchel_importer::AttachmentKind::Image);
    files::attachment(
        setting.bundle,
        setting.folders,
        Cow::Owned(image.file),
        image.name.map(Cow::Owned),
        kind,
    )
}

fn uploads<'a>(row: &mut Row<'a>, setting: &Setting<'_>) -> Vec<Attachment<'a>> {
    let given = std::mem::take(&mut row.uploads).into_iter();
    let given = given
        .filter(|upload| !upload.file.is_empty() && (!is_uri(&upload.file) || upload.file.contains("//")));
    given
        .map(|upload| files::attachment(setting.bundle, setting.folders, upload.file, upload.name, None))
        .collect()
}
