//! The account file: the user's id and name.

use satchel_importer::{
    AccountRecord, Bundle, ImportError, JsonArray, JsonError, Leftover, Parser, RecordKind, Sink,
};

/// Emits the id and the name in the object `user`. Sessions, addresses, keys, the birth date and the mail address in the file
/// are skipped and never leave this function.
pub(crate) fn read(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let (mut id, mut name) = (None, None);
    JsonArray::new(path).kind(RecordKind::File).each(bundle, sink, |element, _| {
        read_root(&mut element.parser(), &mut id, &mut name)?;
        Ok(())
    })?;
    if let Some(id) = id {
        sink.account(&AccountRecord { id, name, locator: path.to_owned() })?;
    }
    Ok(())
}

fn read_root(
    json: &mut Parser<'_>,
    id: &mut Option<String>,
    name: &mut Option<String>,
) -> Result<(), JsonError> {
    if !json.enter_object()? {
        return Ok(());
    }
    while let Some(key) = json.key()? {
        if key == "user" && json.enter_object()? {
            let mut ignored = Leftover::default();
            let (mut given, mut family) = (None, None);
            while let Some(key) = json.key()? {
                match key {
                    "userId" | "user_id" => *id = ignored.nonempty_text(key, json)?.map(ToOwned::to_owned),
                    "givenName" | "given_name" => given = ignored.nonempty_text(key, json)?,
                    "familyName" | "family_name" => family = ignored.nonempty_text(key, json)?,
                    _ => {}
                }
            }
            let names = [given, family].into_iter().flatten().map(str::trim).filter(|name| !name.is_empty());
            let names: Vec<&str> = names.collect();
            *name = (!names.is_empty()).then(|| names.join(" "));
        }
    }
    Ok(())
}
