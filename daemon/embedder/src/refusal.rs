//! Errors that servers answer with, each in its own form.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};
use serde_json::Value;

use crate::error::{EndpointError, ServerMessage};

/// Parts of messages by which servers say that a text is too long, in lower case: OpenAI and vLLM, Ollama, llama.cpp, TEI.
const TOO_LARGE: [&str; 9] = [
    "maximum context length",
    "exceeds the context length",
    "exceeds the available context size",
    "larger than the max context size",
    "too large to process",
    "input is too long",
    "must have less than",
    "too many tokens",
    "exceed_context_size",
];

/// Returns the error that an answer without embeddings stands for. `redact` takes the key out of a text.
pub(crate) fn error(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    redact: impl Fn(&str) -> String,
) -> EndpointError {
    let code = status.as_u16();
    if status.is_redirection() {
        let location = headers.get(header::LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let location = ServerMessage::new(&redact(&location.unwrap_or_default()));
        return EndpointError::Redirect { status: code, location };
    }
    let text = redact(&message(body));
    let message = ServerMessage::new(&text);
    let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|value| parse_retry_after(value, SystemTime::now()));
    let text = text.to_lowercase();
    if status == StatusCode::TOO_MANY_REQUESTS {
        EndpointError::RateLimited { retry_after, message }
    } else if status == StatusCode::PAYLOAD_TOO_LARGE || TOO_LARGE.iter().any(|part| text.contains(part)) {
        EndpointError::TooLarge { status: code, message }
    } else {
        EndpointError::Status { status: code, retry_after, message }
    }
}

/// Returns the message of an error: a text or an object in `error`, as OpenAI, Ollama and TEI write it, or `message` or `detail`.
/// What is not JSON is the message itself, unless it is a page for a browser.
fn message(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(body);
        return if text.trim_start().starts_with('<') { String::new() } else { text.into_owned() };
    };
    message_of(&value).unwrap_or_default().to_owned()
}

fn message_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        // The first of several errors.
        Value::Array(errors) => errors.first().and_then(message_of),
        Value::Object(fields) => ["error", "message", "detail", "msg"]
            .iter()
            .find_map(|name| fields.get(*name).and_then(message_of)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Reads a number of seconds, or a time (RFC 9110, section 10.2.3).
fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let time = httpdate::parse_http_date(value).ok()?;
    Some(time.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> EndpointError {
        let status = StatusCode::from_u16(status).unwrap();
        error(status, &HeaderMap::new(), body.as_bytes(), |text| text.replace("sk-secret", "[key]"))
    }

    #[test]
    fn the_message_is_found_in_every_form() {
        for body in [
            r#"{"error":{"message":"no such model","type":"not_found_error","code":null}}"#,
            r#"{"error":"no such model","error_type":"Validation"}"#,
            r#"{"object":"error","message":"no such model","code":404}"#,
            r#"{"detail":"no such model"}"#,
            r#"{"detail":[{"loc":["body","model"],"msg":"no such model","input":"the text of a memory"}]}"#,
            "no such\nmodel\n",
        ] {
            let error = read(404, body);
            assert!(error.to_string().contains("(HTTP 404: no such model)"), "{error}");
        }
        for body in ["<html><body>nginx", "{}", "null", "", r#"{"error":{"error":{"error":7}}}"#] {
            assert!(read(404, body).to_string().contains("(HTTP 404)"), "{body}");
        }
    }

    #[test]
    fn the_key_is_not_shown() {
        let error = read(401, r#"{"error":{"message":"Incorrect API key provided: sk-secret"}}"#);
        assert!(error.to_string().contains("provided: [key]"), "{error}");
        assert!(!format!("{error:?}").contains("sk-secret"));
    }

    #[test]
    fn texts_that_are_too_long_are_recognised() {
        for (status, message) in [
            (413, "`inputs` must have less than 512 tokens. Given: 514"),
            (413, ""),
            (400, "This model's maximum context length is 8192 tokens, however you requested 9000 tokens"),
            (400, "the input length exceeds the context length"),
            (500, "input is too large to process. increase the physical batch size"),
            (500, "input is larger than the max context size. skipping"),
        ] {
            let error = read(status, &serde_json::json!({"error": {"message": message}}).to_string());
            assert!(matches!(error, EndpointError::TooLarge { .. }), "{error}");
            assert!(!error.is_transient());
        }
        assert!(matches!(read(500, "out of memory"), EndpointError::Status { .. }));
    }

    #[test]
    fn the_time_to_wait_is_read() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let cases = [
            ("120", Some(Duration::from_mins(2))),
            (" 0 ", Some(Duration::ZERO)),
            ("99999999999999999999", Some(Duration::from_secs(u64::MAX))),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(Duration::from_mins(1))),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(Duration::ZERO)),
            ("", None),
            ("-1", None),
            ("soon", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_retry_after(text, now), expected, "{text:?}");
        }
    }
}
