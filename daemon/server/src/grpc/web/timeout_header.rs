//! The time limit that a client sets for its call.

use std::time::Duration;

use http::HeaderMap;

const GRPC_TIMEOUT: &str = "grpc-timeout";
/// Most digits of a time limit, as in the gRPC specification.
const MAX_DIGITS: usize = 8;

/// Returns the time limit in the header `grpc-timeout`. A header that cannot be read is removed, so that the default
/// limit applies.
pub(super) fn deadline(headers: &mut HeaderMap) -> Option<Duration> {
    let limit = headers.get(GRPC_TIMEOUT)?.to_str().ok().and_then(parse);
    if limit.is_none() {
        headers.remove(GRPC_TIMEOUT);
    }
    limit
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > MAX_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_hours(number)),
        "M" => Some(Duration::from_mins(number)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_time_limit_is_removed() {
        let mut headers = HeaderMap::new();
        headers.insert(GRPC_TIMEOUT, http::HeaderValue::from_static("soon"));
        assert_eq!((deadline(&mut headers), headers.len()), (None, 0));
        headers.insert(GRPC_TIMEOUT, http::HeaderValue::from_static("1S"));
        assert_eq!((deadline(&mut headers), headers.len()), (Some(Duration::from_secs(1)), 1));
    }

    #[test]
    fn time_limits_are_read_as_in_the_specification() {
        for (text, expected) in [
            ("2H", Some(Duration::from_hours(2))),
            ("1M", Some(Duration::from_mins(1))),
            ("30S", Some(Duration::from_secs(30))),
            ("99999999m", Some(Duration::from_millis(99_999_999))),
            ("5u", Some(Duration::from_micros(5))),
            ("7n", Some(Duration::from_nanos(7))),
            ("", None),
            ("S", None),
            ("123456789S", None),
            ("-1S", None),
            ("1.5S", None),
            ("1s", None),
            ("1é", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
