//! Which conversations an earlier run read and this one need not read again.
//!
//! The note of a conversation has lines: a key of everything it depends on beside its own text, the ids by which
//! annotations may name it, and the look-ups of files by its messages. A later run repeats the look-ups and compares the
//! key.

use satchel_importer::natural_key;

use crate::{
    assets::Lookup,
    map::{Context, Records},
};

/// First field of a line with an id of the conversation.
const ID: &str = "i";

/// The note of a conversation; none if a field does not fit into a line, or if an annotation may be about any conversation.
pub(crate) fn note(records: &Records<'_>, context: &Context<'_>) -> Option<Vec<u8>> {
    let ids: Vec<&str> = records.ids.into_iter().flatten().collect();
    let lookups = context.assets.take_lookups();
    let mut note = key(&ids, &lookups, context)?;
    for id in ids {
        push_line(&[ID, id], &mut note)?;
    }
    for lookup in &lookups {
        push_line(&lookup.fields(), &mut note)?;
    }
    Some(note.into_bytes())
}

/// None if a field would break the line.
fn push_line(fields: &[&str], note: &mut String) -> Option<()> {
    for (at, field) in fields.iter().enumerate() {
        if field.contains(['\n', '\t']) {
            return None;
        }
        note.push(if at == 0 { '\n' } else { '\t' });
        note.push_str(field);
    }
    Some(())
}

/// Whether everything in the note is unchanged. If so, the files and annotations of the conversation are marked as used.
pub(crate) fn is_current(note: &[u8], context: &Context<'_>) -> bool {
    let Ok(note) = std::str::from_utf8(note) else { return false };
    let mut lines = note.split('\n');
    let noted = lines.next();
    let (mut ids, mut lookups) = (Vec::new(), Vec::new());
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        match (fields.as_slice(), Lookup::parse(&fields)) {
            ([ID, id], _) => ids.push(*id),
            (_, Some(lookup)) => lookups.push(lookup),
            (_, None) => return false,
        }
    }
    let current = noted.is_some() && key(&ids, &lookups, context).as_deref() == noted;
    if current {
        context.annotations.mark_used(&ids);
    }
    current
}

fn key(ids: &[&str], lookups: &[Lookup], context: &Context<'_>) -> Option<String> {
    let annotations = context.annotations.text_of(ids)?;
    let library = context.assets.library.text_of(ids);
    let results: Vec<String> = lookups.iter().map(|lookup| context.assets.repeat(lookup)).collect();
    let mut parts = vec![context.account, Some(&annotations), Some(&library)];
    parts.extend(ids.iter().copied().map(Some));
    parts.extend(results.iter().map(|result| Some(result.as_str())));
    Some(natural_key(&parts))
}
