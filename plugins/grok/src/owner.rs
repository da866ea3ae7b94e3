//! Whose export it is.

use satchel_importer::{Bundle, ImportError, JsonArray, JsonError, Leftover, Parser, RecordKind, Sink};

/// The person of the account file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
}

impl Owner {
    /// Reads the id and the name in the block `user` of the account file. Sessions, addresses, keys, the birth date and
    /// the mail address beside them are passed over and never leave this function.
    pub(crate) fn read(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<Self, ImportError> {
        let mut owner = Self::default();
        JsonArray::new(path).kind(RecordKind::File).each(bundle, sink, |element, _| {
            owner.take(&mut element.parser())?;
            Ok(())
        })?;
        Ok(owner)
    }

    fn take(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            if key == "user" && json.enter_object()? {
                let mut passed = Leftover::default();
                let (mut given, mut family) = (None, None);
                while let Some(key) = json.key()? {
                    match key {
                        "userId" | "user_id" => {
                            self.id = passed.words(key, json)?.map(ToOwned::to_owned);
                        }
                        "givenName" | "given_name" => given = passed.words(key, json)?,
                        "familyName" | "family_name" => family = passed.words(key, json)?,
                        _ => {}
                    }
                }
                self.name = join(given, family);
            }
        }
        Ok(())
    }
}

fn join(given: Option<&str>, family: Option<&str>) -> Option<String> {
    let names: Vec<&str> =
        [given, family].into_iter().flatten().map(str::trim).filter(|name| !name.is_empty()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}
