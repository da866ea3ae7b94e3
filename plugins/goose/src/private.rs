//! Leaves out what must not be stored: secrets in the settings of extensions, and what only a provider can read.

use satchel_importer::{
    Arena, Fields, JsonError, Leftover, Parser,
    json::{Kind, Value},
};

use crate::credentials::{self, Arguments};

/// Members in the settings of an extension that hold keys: variables of its environment, and headers of its requests.
const SECRETS: [&str; 3] = ["envs", "env", "headers"];
/// Members of which only the credentials are left out: the arguments, the command, and the address of an extension.
const ARGUMENTS: &str = "args";
const COMMAND: &str = "cmd";
const ADDRESSES: [&str; 2] = ["uri", "url"];
/// Fields that only the provider of the model can read.
const OF_PROVIDERS: [&str; 7] = [
    "signature",
    "thoughtSignature",
    "thought_signature",
    "redactedData",
    "reasoningEncryptedContent",
    "encrypted_content",
    "reasoning_details",
];

/// The JSON text of a value without the secrets anywhere in it.
pub(crate) fn without_secrets(value: Value<'_>, arena: &Arena) -> Result<String, JsonError> {
    let json = value.json();
    // Nearly all values have none, and an escape may hide the name of one.
    let mut names = SECRETS.into_iter().chain([ARGUMENTS, COMMAND]).chain(ADDRESSES);
    if !names.any(|name| json.contains(&format!("\"{name}\""))) && !json.contains('\\') {
        return Ok(json.into_owned());
    }
    rewritten(&mut Parser::new(&json, arena), true)
}

/// The JSON text of a value without the white space between its tokens, which differs between exports.
pub(crate) fn compact(json: &str, arena: &Arena) -> Result<String, JsonError> {
    rewritten(&mut Parser::new(json, arena), false)
}

fn rewritten(json: &mut Parser<'_>, private: bool) -> Result<String, JsonError> {
    if json.enter_object()? {
        let mut rest = Leftover::default();
        while let Some(key) = json.key()? {
            let is_text = json.kind()? == Kind::String;
            match key {
                _ if !private => rest.add_json(key, &rewritten(json, private)?),
                _ if SECRETS.contains(&key) => json.skip_value()?,
                ARGUMENTS => rest.add_json(key, &arguments(json)?),
                COMMAND if is_text => rest.add_text(key, &credentials::command(json.string()?)),
                _ if is_text && ADDRESSES.contains(&key) => {
                    rest.add_text(key, &credentials::address(json.string()?));
                }
                _ => rest.add_json(key, &rewritten(json, private)?),
            }
        }
        return Ok(rest.into_json().map_or_else(|| "{}".to_owned(), std::borrow::Cow::into_owned));
    }
    if json.enter_array()? {
        let mut found = Vec::new();
        while json.item()? {
            found.push(rewritten(json, private)?);
        }
        return Ok(format!("[{}]", found.join(",")));
    }
    json.raw_value().map(ToOwned::to_owned)
}

/// The JSON text of a list of arguments, or of another value in its place.
fn arguments(json: &mut Parser<'_>) -> Result<String, JsonError> {
    if !json.enter_array()? {
        return rewritten(json, true);
    }
    let (mut arguments, mut found) = (Arguments::default(), Vec::new());
    while json.item()? {
        found.push(match json.kind()? {
            Kind::String => Value::Text(&arguments.next(json.string()?)).json().into_owned(),
            _ => rewritten(json, true)?,
        });
    }
    Ok(format!("[{}]", found.join(",")))
}

/// Removes what only the provider can read from a part and from its `metadata`.
pub(crate) fn remove_of_provider(fields: &mut Fields<'_>) -> Result<(), JsonError> {
    for name in OF_PROVIDERS {
        fields.take(name);
    }
    if let Some(mut metadata) = fields.take_object("metadata")? {
        for name in OF_PROVIDERS {
            metadata.take(name);
        }
        fields.push_json("metadata", &metadata.into_json());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_wherever_they_are() {
        let arena = Arena::new();
        let without = |raw| without_secrets(Value::Raw(raw), &arena).expect("it is JSON");
        let raw = r#"{"a":[{"name":"x","envs":{"KEY":"s"},"args":["-y"]}],"h\u0065aders":{"b":1},"n":1.50}"#;
        assert_eq!(without(raw), r#"{"a":[{"name":"x","args":["-y"]}],"n":1.50}"#);
        assert_eq!(without("{\"n\": 1}"), "{\"n\": 1}");
        let raw =
            r#"[{"cmd":"npx --token S","args":["--key","S",1]},{"uri":"https://a.example?token=S","url":7}]"#;
        assert_eq!(
            without(raw),
            r#"[{"cmd":"npx --token [removed]","args":["--key","[removed]",1]},{"uri":"https://a.example?token=[removed]","url":7}]"#
        );
    }
}
