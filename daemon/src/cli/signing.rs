//! `keys …`: the keys that sign exports.

use satchel_proto::v1::{
    GetSigningKeysRequest, ListTrustedKeysRequest, ListTrustedKeysResponse, RotateSigningKeyRequest,
    SigningKey, SigningKeys, TrustKeyRequest, TrustedKey, UntrustKeyRequest,
};
use serde::Serialize;

use super::{
    Context,
    args::SigningCommand,
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json::timestamp,
    pagination::{self, ResultPage},
    properties::Properties,
    style::{Paint, TerminalStyle},
    table::{Cell, Column, Table},
    time::Calendar,
};

/// Runs one of the commands.
///
/// # Errors
/// Returns the error of the daemon.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &SigningCommand,
) -> Result<Exit, CliError> {
    let (keys, trusted) = match command {
        SigningCommand::List => (signing_keys(client).await?, trusted_keys(client).await?),
        SigningCommand::ExportPublic => (signing_keys(client).await?, Vec::new()),
        SigningCommand::Rotate { new_identity } => {
            let request = RotateSigningKeyRequest { new_identity: *new_identity };
            let answer = client.exports().rotate_signing_key(request).await?.into_inner();
            (answer.keys, Vec::new())
        }
        SigningCommand::Trust { key } => return trust(context, client, key).await,
        SigningCommand::Untrust { key } => return untrust(context, client, key).await,
    };
    let keys = keys.unwrap_or_default();
    if context.out.json || matches!(command, SigningCommand::ExportPublic) {
        // The public document, which is given to others, does not include the keys that the person trusts.
        let trusted = if matches!(command, SigningCommand::List) { Some(trusted.as_slice()) } else { None };
        context.out.json(&KeyListJson::new(&keys, trusted))?;
        return Ok(Exit::Done);
    }
    if let SigningCommand::Rotate { .. } = command {
        let current = keys.keys.first().map(|key| key.public_key.as_str()).unwrap_or_default();
        context.out.note(&format!("exports are now signed with {current}"));
    }
    if keys.keys.is_empty() {
        context.out.note("there is no signing key yet; the first export creates one");
    } else {
        let text = render(&keys, &context.calendar, context.out.style);
        context.out.print(&text)?;
    }
    if !trusted.is_empty() {
        let gap = if keys.keys.is_empty() { "" } else { "\n" };
        let text = render_trusted(&trusted, &context.calendar, context.out.style);
        context.out.print(&format!("{gap}{text}"))?;
    }
    Ok(Exit::Done)
}

/// Returns the current and former signing keys of the daemon.
///
/// # Errors
/// Returns the error of the daemon.
pub(super) async fn public_keys(client: &DaemonClient) -> Result<Vec<String>, CliError> {
    let keys = signing_keys(client).await?.unwrap_or_default().keys;
    Ok(keys.into_iter().map(|key| key.public_key).collect())
}

async fn signing_keys(client: &DaemonClient) -> Result<Option<SigningKeys>, CliError> {
    Ok(client.exports().get_signing_keys(GetSigningKeysRequest {}).await?.into_inner().keys)
}

async fn trusted_keys(client: &DaemonClient) -> Result<Vec<TrustedKey>, CliError> {
    let keys = pagination::collect_rows(None, async |page_size, page_token| {
        let request = ListTrustedKeysRequest { page_size, page_token };
        let ListTrustedKeysResponse { trusted_keys, next_page_token, .. } =
            client.exports().list_trusted_keys(request).await?.into_inner();
        Ok(ResultPage { rows: trusted_keys, next: next_page_token })
    });
    Ok(keys.await?.rows)
}

async fn print_trusted_json(context: &mut Context, client: &DaemonClient) -> Result<(), CliError> {
    let trusted = trusted_keys(client).await?;
    context.out.json(&TrustedKeysJson { trusted: trusted.iter().map(TrustedKeyJson::new).collect() })
}

async fn trust(context: &mut Context, client: &DaemonClient, key: &str) -> Result<Exit, CliError> {
    let request = TrustKeyRequest { public_key: key.to_owned() };
    let answer = client.exports().trust_key(request).await?.into_inner();
    if context.out.json {
        print_trusted_json(context, client).await?;
    } else if answer.added {
        context.out.note("bundles signed with this key are now merged, and may change existing records");
    } else {
        context.out.note("this key is already trusted");
    }
    Ok(Exit::Done)
}

async fn untrust(context: &mut Context, client: &DaemonClient, key: &str) -> Result<Exit, CliError> {
    let request = UntrustKeyRequest { public_key: key.to_owned() };
    let answer = client.exports().untrust_key(request).await?.into_inner();
    if !answer.removed {
        return Err(CliError::Declined(format!(
            "{key} is not a trusted key; `satchel keys list` shows the trusted keys"
        )));
    }
    if context.out.json {
        print_trusted_json(context, client).await?;
    } else {
        context.out.note("bundles signed with this key now only add records, and change none");
    }
    Ok(Exit::Done)
}

fn render_trusted(trusted: &[TrustedKey], calendar: &Calendar, style: TerminalStyle) -> String {
    let mut table = Table::new([Column::new("trusted key"), Column::new("since")]);
    for key in trusted {
        let since = calendar.minute(key.since.as_ref());
        table.row([Cell::painted(&key.public_key, Paint::Id), Cell::new(&since)]);
    }
    table.render(style)
}

fn render(keys: &SigningKeys, calendar: &Calendar, style: TerminalStyle) -> String {
    let mut properties = Properties::new();
    properties.add("owner", &keys.owner_id);
    properties.add("did", &keys.did);
    let mut table =
        Table::new([Column::new("key"), Column::new("state"), Column::new("since"), Column::new("until")]);
    for key in &keys.keys {
        let (state, paint) =
            if key.retired_at.is_none() { ("active", Paint::Good) } else { ("retired", Paint::Dim) };
        table.row([
            Cell::painted(&key.public_key, Paint::Id),
            Cell::painted(state, paint),
            Cell::new(&calendar.minute(key.created_at.as_ref())),
            Cell::new(&calendar.minute(key.retired_at.as_ref())),
        ]);
    }
    format!("{}\n{}", properties.render(style), table.render(style))
}

/// What `--json` and `export-public` print.
#[derive(Debug, Serialize)]
struct KeyListJson<'a> {
    owner_id: &'a str,
    did: &'a str,
    keys: Vec<KeyJson<'a>>,
    /// Keys of other people whose documents are merged; only in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    trusted: Option<Vec<TrustedKeyJson<'a>>>,
}

/// What `keys trust --json` prints.
#[derive(Debug, Serialize)]
struct TrustedKeysJson<'a> {
    trusted: Vec<TrustedKeyJson<'a>>,
}

#[derive(Debug, Serialize)]
struct TrustedKeyJson<'a> {
    public_key: &'a str,
    since: Option<String>,
}

impl<'a> TrustedKeyJson<'a> {
    fn new(key: &'a TrustedKey) -> Self {
        Self { public_key: &key.public_key, since: timestamp(key.since.as_ref()) }
    }
}

#[derive(Debug, Serialize)]
struct KeyJson<'a> {
    algorithm: &'static str,
    public_key: &'a str,
    did: &'a str,
    created_at: Option<String>,
    /// Null while the key is in use for signing.
    retired_at: Option<String>,
    successor: Option<SuccessorJson<'a>>,
}

/// The proof that both keys signed the JCS form of `{at, from, purpose, to}`.
#[derive(Debug, Serialize)]
struct SuccessorJson<'a> {
    public_key: &'a str,
    signature: &'a str,
    successor_signature: &'a str,
}

impl<'a> KeyListJson<'a> {
    fn new(keys: &'a SigningKeys, trusted: Option<&'a [TrustedKey]>) -> Self {
        let key = |key: &'a SigningKey| KeyJson {
            algorithm: "Ed25519",
            public_key: &key.public_key,
            did: &key.did,
            created_at: timestamp(key.created_at.as_ref()),
            retired_at: timestamp(key.retired_at.as_ref()),
            successor: (!key.successor.is_empty()).then_some(SuccessorJson {
                public_key: &key.successor,
                signature: &key.signature,
                successor_signature: &key.successor_signature,
            }),
        };
        let trusted = trusted.map(|trusted| trusted.iter().map(TrustedKeyJson::new).collect());
        Self { owner_id: &keys.owner_id, did: &keys.did, keys: keys.keys.iter().map(key).collect(), trusted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::time;

    #[test]
    fn the_active_key_is_listed_first() {
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

KEY      STATE    SINCE             UNTIL
z6Mknew  active   2026-03-11 10:00
z6Mkold  retired  2026-03-11 10:00  2026-03-12 10:00
";
        assert_eq!(render(&keys, &time::fixed(), TerminalStyle::plain(80)), expected);
    }

    #[test]
    fn trusted_keys_are_listed_but_not_exported() {
        let trusted =
            TrustedKey { public_key: "z6Mkfriend".to_owned(), since: time::at("2026-03-11T10:00:00Z") };
        let shown = render_trusted(std::slice::from_ref(&trusted), &time::fixed(), TerminalStyle::plain(80));
        assert!(shown.contains("z6Mkfriend") && shown.contains("2026-03-11"), "{shown}");
        let keys = SigningKeys::default();
        let text = |trusted| serde_json::to_string(&KeyListJson::new(&keys, trusted)).unwrap_or_default();
        assert!(text(Some(std::slice::from_ref(&trusted))).contains("z6Mkfriend"));
        assert!(!text(None).contains("trusted"));
    }
}
