//! `keys …`: the keys that sign exports.

use satchel_proto::v1::{ListSigningKeysRequest, RotateSigningKeyRequest, SigningKey, SigningKeys};
use serde::Serialize;

use super::{
    Context,
    args::Signing,
    error::CliError,
    exit::Exit,
    facts::Facts,
    json::when,
    link::Link,
    look::{Look, Paint},
    table::{Cell, Column, Table},
    time::Calendar,
};

/// Runs one of the commands.
///
/// # Errors
/// As the daemon refuses.
pub(crate) async fn run(context: &mut Context, link: &Link, command: &Signing) -> Result<Exit, CliError> {
    let keys = match command {
        Signing::List | Signing::ExportPublic => {
            link.exports().list_signing_keys(ListSigningKeysRequest {}).await?.into_inner().keys
        }
        Signing::Rotate => {
            link.exports().rotate_signing_key(RotateSigningKeyRequest {}).await?.into_inner().keys
        }
    };
    let keys = keys.unwrap_or_default();
    if context.out.json || matches!(command, Signing::ExportPublic) {
        context.out.json(&Document::new(&keys))?;
        return Ok(Exit::Done);
    }
    if let Signing::Rotate = command {
        let current = keys.keys.first().map(|key| key.public_key.as_str()).unwrap_or_default();
        context.out.note(&format!("from now on exports are signed by {current}"));
    }
    if keys.keys.is_empty() {
        context.out.note("there is no signing key yet; the first export makes one");
    } else {
        let text = render(&keys, &context.calendar, context.out.look);
        context.out.print(&text)?;
    }
    Ok(Exit::Done)
}

fn render(keys: &SigningKeys, calendar: &Calendar, look: Look) -> String {
    let mut facts = Facts::new();
    facts.add("owner", &keys.owner_id);
    facts.add("did", &keys.did);
    let mut table =
        Table::new([Column::new("key"), Column::new("state"), Column::new("since"), Column::new("until")]);
    for key in &keys.keys {
        let (state, paint) =
            if key.retired_at.is_none() { ("signs", Paint::Good) } else { ("verifies", Paint::Dim) };
        table.row([
            Cell::painted(&key.public_key, Paint::Id),
            Cell::painted(state, paint),
            Cell::new(&calendar.minute(key.created_at.as_ref())),
            Cell::new(&calendar.minute(key.retired_at.as_ref())),
        ]);
    }
    format!("{}\n{}", facts.render(look), table.render(look))
}

/// What `--json` and `export-public` print.
#[derive(Debug, Serialize)]
struct Document<'a> {
    owner_id: &'a str,
    did: &'a str,
    keys: Vec<Key<'a>>,
}

#[derive(Debug, Serialize)]
struct Key<'a> {
    algorithm: &'static str,
    public_key: &'a str,
    did: &'a str,
    created_at: Option<String>,
    /// Null: it signs.
    retired_at: Option<String>,
    successor: Option<Successor<'a>>,
}

/// That both keys signed the JCS form of `{at, from, purpose, to}`.
#[derive(Debug, Serialize)]
struct Successor<'a> {
    public_key: &'a str,
    signature: &'a str,
    successor_signature: &'a str,
}

impl<'a> Document<'a> {
    fn new(keys: &'a SigningKeys) -> Self {
        let key = |key: &'a SigningKey| Key {
            algorithm: "Ed25519",
            public_key: &key.public_key,
            did: &key.did,
            created_at: when(key.created_at.as_ref()),
            retired_at: when(key.retired_at.as_ref()),
            successor: (!key.successor.is_empty()).then_some(Successor {
                public_key: &key.successor,
                signature: &key.signature,
                successor_signature: &key.successor_signature,
            }),
        };
        Self { owner_id: &keys.owner_id, did: &keys.did, keys: keys.keys.iter().map(key).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::time;

    #[test]
    fn keys_are_listed_that_which_signs_first() {
        let key = |public_key: &str, retired: Option<&str>| SigningKey {
            public_key: public_key.to_owned(),
            created_at: time::at("2026-03-11T10:00:00Z"),
            retired_at: retired.and_then(time::at),
            ..SigningKey::default()
        };
        let keys = SigningKeys {
            owner_id: "0f1e".to_owned(),
            did: "did:key:z6Mknew".to_owned(),
            keys: vec![key("z6Mknew", None), key("z6Mkold", Some("2026-03-12T10:00:00Z"))],
        };
        let expected = "\
owner  0f1e
did    did:key:z6Mknew

KEY      STATE     SINCE             UNTIL
z6Mknew  signs     2026-03-11 10:00
z6Mkold  verifies  2026-03-11 10:00  2026-03-12 10:00
";
        assert_eq!(render(&keys, &time::fixed(), Look::plain(80)), expected);
    }
}
