//! Tests of the statuses that clients receive.

use std::io;

use super::*;

const README: &str = include_str!("../../../../../proto/README.md");

#[test]
fn the_readme_lists_every_reason() {
    let rows: Vec<(String, String)> = README
        .lines()
        .skip_while(|line| !line.starts_with("| Reason |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> =
                line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
            (cells[1].clone(), cells[2].clone())
        })
        .collect();
    let ours: Vec<(String, String)> = ErrorReason::ALL
        .iter()
        .map(|reason| (reason.as_str().to_owned(), code_word(reason.code()).to_owned()))
        .collect();
    assert_eq!(rows, ours);
}

fn code_word(code: Code) -> &'static str {
    match code {
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::NotFound => "NOT_FOUND",
        Code::Aborted => "ABORTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unauthenticated => "UNAUTHENTICATED",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::DataLoss => "DATA_LOSS",
        Code::Unavailable => "UNAVAILABLE",
        Code::Internal => "INTERNAL",
        _ => "not in the table",
    }
}

#[test]
fn a_bad_field_is_named() {
    let status = CallError::invalid_field("filter.types", "must not hold UNSPECIFIED").into_status();
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = status.get_error_details();
    assert_eq!(details.error_info().map(|info| info.reason.as_str()), Some("FIELD_INVALID"));
    assert_eq!(details.error_info().map(|info| info.domain.as_str()), Some(DOMAIN));
    let named =
        details.bad_request().and_then(|bad| bad.field_violations.first()).map(|first| first.field.as_str());
    assert_eq!(named, Some("filter.types"));
}

#[test]
fn a_missing_record_is_named() {
    let status = CallError::not_found(ResourceKind::Memory, "m1").into_status();
    assert_eq!((status.code(), status.message()), (Code::NotFound, "there is no memory \"m1\""));
    let details = status.get_error_details();
    let resource =
        details.resource_info().map(|info| (info.resource_type.as_str(), info.resource_name.as_str()));
    assert_eq!(resource, Some(("memory", "m1")));
}

#[test]
fn internal_errors_reveal_no_details() {
    let cause = io::Error::other("/home/ana/secret");
    let store = StoreError::DuplicateRecord { kind: "memory", id: "secret".to_owned() };
    for error in [CallError::internal(cause), CallError::Store(store)] {
        let status = error.into_status();
        assert_eq!(status.code(), Code::Internal);
        assert!(!status.message().contains("secret"), "{}", status.message());
        assert!(!String::from_utf8_lossy(status.details()).contains("secret"));
    }
}

#[test]
fn a_full_disk_tells_the_client_when_to_retry() {
    let status = CallError::from(StoreError::Full { path: "journal/1.seg".into() }).into_status();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let details = status.get_error_details();
    assert_eq!(details.retry_info().and_then(|info| info.retry_delay), Some(RETRY_AFTER));
    assert!(details.quota_failure().is_some());
}

#[test]
fn an_error_fits_in_the_headers_that_clients_accept() {
    let id = "\u{1F600}".repeat(100_000);
    for error in [
        CallError::not_found(ResourceKind::Memory, &id),
        CallError::InvalidField { field: id.clone(), problem: id.clone() },
        CallError::OutputExists { path: id.clone() },
    ] {
        let headers = error.into_status().into_http::<()>().into_parts().0.headers;
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!(bytes < 12 << 10, "{bytes} bytes");
    }
}
