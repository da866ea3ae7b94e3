//! Limits on the body of a request. Parsing takes up to 170 times the memory of a text of many small values.

use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use tonic::body::Body;

/// The longest body, in bytes. The arguments of a tool may have [`MAX_ARGUMENTS`](crate::tools::MAX_ARGUMENTS), and JSON may escape
/// each of their characters.
pub(super) const MAX_BODY_BYTES: usize = 4 << 20;
/// Most values in a body. The arguments of tools have some dozens.
const MAX_VALUES: usize = 10_000;

/// Reads a body, or returns the response that refuses it.
pub(super) async fn read(body: Body) -> Result<Body, Response<Body>> {
    let bytes = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Err(too_large(format!("a request must have at most {MAX_BODY_BYTES} bytes")));
        }
        Err(error) => {
            return Err(refusal(StatusCode::BAD_REQUEST, format!("the request did not arrive: {error}")));
        }
    };
    if values(&bytes) > MAX_VALUES {
        return Err(too_large(format!("a request must have at most {MAX_VALUES} values")));
    }
    Ok(Body::new(Full::new(bytes)))
}

/// Returns an upper limit of the number of values in a JSON text.
fn values(json: &[u8]) -> usize {
    let (mut quoted, mut escaped, mut count) = (false, false, 1);
    for byte in json {
        match byte {
            b'"' if !escaped => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => count += 1,
            _ => {}
        }
        escaped = *byte == b'\\' && !escaped;
    }
    count
}

fn too_large(reason: String) -> Response<Body> {
    refusal(StatusCode::PAYLOAD_TOO_LARGE, reason)
}

fn refusal(status: StatusCode, reason: String) -> Response<Body> {
    let mut response = Response::new(Body::new(reason + "\n"));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_text_are_never_more_than_those_that_are_counted() {
        for (json, expected) in [
            ("", 1),
            ("[]", 2),
            ("[1,2,3]", 4),
            (r#"{"a,[{": "b,\\\",,", "c": {}}"#, 4),
            (r#"{"text": "one, two, [three], {four}"}"#, 2),
        ] {
            assert_eq!(values(json.as_bytes()), expected, "{json}");
        }
    }
}
