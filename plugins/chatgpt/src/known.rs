//! What a conversation depends on beside its own text, so that one which an earlier run read need not be read again.
//!
//! A note has lines: a key of all that was looked at, the ids by which remarks may name the conversation, and the questions
//! that its messages asked about files. Another run asks them again and compares the key.

use satchel_importer::natural_key;

use crate::{
    assets::Question,
    map::{Context, Records},
};

/// What a line begins with that names the conversation.
const ID: &str = "i";

/// The note of a conversation; none if it cannot be noted, or if a remark may be about any conversation.
pub(crate) fn note(records: &Records<'_>, context: &Context<'_>) -> Option<Vec<u8>> {
    let ids: Vec<&str> = records.named.into_iter().flatten().collect();
    let questions = context.assets.questions();
    let mut note = key(&ids, &questions, context)?;
    for id in ids {
        push_line(&[ID, id], &mut note)?;
    }
    for question in &questions {
        push_line(&question.words(), &mut note)?;
    }
    Some(note.into_bytes())
}

/// None where a word would break the line.
fn push_line(words: &[&str], note: &mut String) -> Option<()> {
    for (at, word) in words.iter().enumerate() {
        if word.contains(['\n', '\t']) {
            return None;
        }
        note.push(if at == 0 { '\n' } else { '\t' });
        note.push_str(word);
    }
    Some(())
}

/// Whether all is as it was noted. What the conversation has beside it counts as used then.
pub(crate) fn holds(note: &[u8], context: &Context<'_>) -> bool {
    let Ok(note) = std::str::from_utf8(note) else { return false };
    let mut lines = note.split('\n');
    let noted = lines.next();
    let (mut ids, mut questions) = (Vec::new(), Vec::new());
    for line in lines {
        let words: Vec<&str> = line.split('\t').collect();
        match (words.as_slice(), Question::of(&words)) {
            ([ID, id], _) => ids.push(*id),
            (_, Some(question)) => questions.push(question),
            (_, None) => return false,
        }
    }
    let holds = noted.is_some() && key(&ids, &questions, context).as_deref() == noted;
    if holds {
        context.remarks.mark_used(&ids);
    }
    holds
}

fn key(ids: &[&str], questions: &[Question], context: &Context<'_>) -> Option<String> {
    let remarks = context.remarks.about(ids)?;
    let library = context.assets.library.about(ids);
    let answers: Vec<String> = questions.iter().map(|question| context.assets.answer(question)).collect();
    let mut parts = vec![context.account, Some(&remarks), Some(&library)];
    parts.extend(ids.iter().copied().map(Some));
    parts.extend(answers.iter().map(|answer| Some(answer.as_str())));
    Some(natural_key(&parts))
}
