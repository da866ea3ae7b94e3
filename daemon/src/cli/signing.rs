//! `keys …`: the keys that sign exports.

use satchel_proto::v1::{
    GetSigningKeysRequest, ListTrustedKeysRequest, ListTrustedKeysResponse, RotateSigningKeyRequest,
    SigningKey, SigningKeys, TrustKeyRequest, TrustedKey, UntrustKeyRequest,
};
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
    page::{self, Page},
    table::{Cell, Column, Table},
    time::Calendar,
};

/// Runs one of the commands.
///
/// # Errors
/// Returns the error of the daemon.
pub(crate) async fn run(context: &mut Context, link: &Link, command: &Signing) -> Result<Exit, CliError> {
    let (keys, trusted) = match command {
        Signing::List => (signing_keys(link).await?, trusted_keys(link).await?),
        Signing::ExportPublic => (signing_keys(link).await?, Vec::new()),
        Signing::Rotate { new_identity } => {
            let request = RotateSigningKeyRequest { new_identity: *new_identity };
            let answer = link.exports().rotate_signing_key(request).await?.into_inner();
            (answer.keys, Vec::new())
        }
        Signing::Trust { key } => return trust(context, link, key).await,
        Signing::Untrust { key } => return untrust(context, link, key).await,
    };
    let keys = keys.unwrap_or_default();
    if context.out.json || matches!(command, Signing::ExportPublic) {
        // The public document, which is given to others, does not include the keys that the person trusts.
        let trusted = if matches!(command, Signing::List) { Some(trusted.as_slice()) } else { None };
        context.out.json(&Document::new(&keys, trusted))?;
        return Ok(Exit::Done);
    }
    if let Signing::Rotate { .. } = command {
        let current = keys.keys.first().map(|key| key.public_key.as_str()).unwrap_or_default();
        context.out.note(&format!("from now on exports are signed by {current}"));
    }
    if keys.keys.is_empty() {
        context.out.note("there is no signing key yet; the first export makes one");
    } else {
        let text = render(&keys, &context.calendar, context.out.look);
        context.out.print(&text)?;
    }
    if !trusted.is_empty() {
        let gap = if keys.keys.is_empty() { "" } else { "\n" };
        let text = render_trusted(&trusted, &context.calendar, context.out.look);
        context.out.print(&format!("{gap}{text}"))?;
    }
    Ok(Exit::Done)
}

async fn signing_keys(link: &Link) -> Result<Option<SigningKeys>, CliError> {
    Ok(link.exports().get_signing_keys(GetSigningKeysRequest {}).await?.into_inner().keys)
}

async fn trusted_keys(link: &Link) -> Result<Vec<TrustedKey>, CliError> {
    let keys = page::collect(None, async |page_size, page_token| {
        let request = ListTrustedKeysRequest { page_size, page_token };
        let ListTrustedKeysResponse { trusted_keys, next_page_token, .. } =
            link.exports().list_trusted_keys(request).await?.into_inner();
        Ok(Page { rows: trusted_keys, next: next_page_token })
    });
    Ok(keys.await?.rows)
}

async fn json_of_trusted(context: &mut Context, link: &Link) -> Result<(), CliError> {
    let trusted = trusted_keys(link).await?;
    context.out.json(&Trust { trusted: trusted.iter().map(Trusted::new).collect() })
}

async fn trust(context: &mut Context, link: &Link, key: &str) -> Result<Exit, CliError> {
    let request = TrustKeyRequest { public_key: key.to_owned() };
    let answer = link.exports().trust_key(request).await?.into_inner();
    if context.out.json {
        json_of_trusted(context, link).await?;
    } else if answer.added {
        context.out.note("what this key signs is merged from now on, and may change what is here");
    } else {
        context.out.note("this key is trusted already");
    }
    Ok(Exit::Done)
}

async fn untrust(context: &mut Context, link: &Link, key: &str) -> Result<Exit, CliError> {
    let request = UntrustKeyRequest { public_key: key.to_owned() };
    let answer = link.exports().untrust_key(request).await?.into_inner();
    if !answer.removed {
        return Err(CliError::Declined(format!(
            "{key} is not among the keys that you trust; `satchel keys list` shows them"
        )));
    }
    if context.out.json {
        json_of_trusted(context, link).await?;
    } else {
        context.out.note("what this key signs adds from now on, and changes nothing");
    }
    Ok(Exit::Done)
}

fn render_trusted(trusted: &[TrustedKey], calendar: &Calendar, look: Look) -> String {
    let mut table = Table::new([Column::new("trusted key"), Column::new("since")]);
    for key in trusted {
        let since = calendar.minute(key.since.as_ref());
        table.row([Cell::painted(&key.public_key, Paint::Id), Cell::new(&since)]);
    }
    table.render(look)
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
    /// Keys of other people whose documents are merged; only in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    trusted: Option<Vec<Trusted<'a>>>,
}

/// What `keys trust --json` prints.
#[derive(Debug, Serialize)]
struct Trust<'a> {
    trusted: Vec<Trusted<'a>>,
}

#[derive(Debug, Serialize)]
struct Trusted<'a> {
    public_key: &'a str,
    since: Option<String>,
}

impl<'a> Trusted<'a> {
    fn new(key: &'a TrustedKey) -> Self {
        Self { public_key: &key.public_key, since: when(key.since.as_ref()) }
    }
}

#[derive(Debug, Serialize)]
struct Key<'a> {
    algorithm: &'static str,
    public_key: &'a str,
    did: &'a str,
    created_at: Option<String>,
    /// Null while the key is in use for signing.
    retired_at: Option<String>,
    successor: Option<Successor<'a>>,
}

/// The proof that both keys signed the JCS form of `{at, from, purpose, to}`.
#[derive(Debug, Serialize)]
struct Successor<'a> {
    public_key: &'a str,
    signature: &'a str,
    successor_signature: &'a str,
}

impl<'a> Document<'a> {
    fn new(keys: &'a SigningKeys, trusted: Option<&'a [TrustedKey]>) -> Self {
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
        let trusted = trusted.map(|trusted| trusted.iter().map(Trusted::new).collect());
        Self { owner_id: &keys.owner_id, did: &keys.did, keys: keys.keys.iter().map(key).collect(), trusted }
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

    #[test]
    fn keys_that_are_trusted_are_listed_and_given_to_nobody() {
        let trusted =
            TrustedKey { public_key: "z6Mkfriend".to_owned(), since: time::at("2026-03-11T10:00:00Z") };
        let shown = render_trusted(std::slice::from_ref(&trusted), &time::fixed(), Look::plain(80));
        assert!(shown.contains("z6Mkfriend") && shown.contains("2026-03-11"), "{shown}");
        let keys = SigningKeys::default();
        let text = |trusted| serde_json::to_string(&Document::new(&keys, trusted)).unwrap_or_default();
        assert!(text(Some(std::slice::from_ref(&trusted))).contains("z6Mkfriend"));
        assert!(!text(None).contains("trusted"));
    }
}
