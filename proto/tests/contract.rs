//! Rules for every service and method of the contract.

use std::error::Error;

use prost_reflect::{DescriptorPool, FileDescriptor, Kind, MethodDescriptor, ServiceDescriptor, Value};
use satchel_proto::{Method, v1::Scope};

type TestResult = Result<(), Box<dyn Error>>;

fn pool() -> Result<DescriptorPool, Box<dyn Error>> {
    Ok(DescriptorPool::decode(satchel_proto::DESCRIPTOR_SET)?)
}

fn methods(pool: &DescriptorPool) -> Vec<MethodDescriptor> {
    let methods: Vec<_> = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()).collect();
    assert!(!methods.is_empty(), "the descriptor set has no methods");
    methods
}

#[test]
fn every_method_has_a_required_scope() -> TestResult {
    let pool = pool()?;
    let scope = pool.get_extension_by_name("satchel.v1.required_scope").ok_or("no option required_scope")?;
    for method in methods(&pool) {
        let value = method.options().get_extension(&scope).into_owned();
        assert!(
            matches!(value, Value::EnumNumber(number) if number > 0),
            "{} has no scope",
            method.full_name()
        );
    }
    Ok(())
}

#[test]
fn the_mutates_option_matches_the_verb_of_the_method() -> TestResult {
    let pool = pool()?;
    let mutates = pool.get_extension_by_name("satchel.v1.mutates").ok_or("no option mutates")?;
    for method in methods(&pool) {
        let reads = ["Get", "BatchGet", "List", "Watch", "Download", "Verify", "Search", "Build"]
            .iter()
            .any(|verb| method.name().starts_with(verb));
        let stated = method.options().get_extension(&mutates).as_bool();
        assert_eq!(stated, Some(!reads), "{}", method.full_name());
    }
    Ok(())
}

#[test]
fn the_table_of_methods_matches_their_options() -> TestResult {
    let pool = pool()?;
    let option = |name: &str| pool.get_extension_by_name(name).ok_or("no such option");
    let (mutates, long) = (option("satchel.v1.mutates")?, option("satchel.v1.long_running")?);
    let all = methods(&pool);
    assert_eq!(all.len(), satchel_proto::METHODS.len());
    for method in all {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let entry = satchel_proto::method(&path).ok_or("not in the table")?;
        let options = method.options();
        assert_eq!(options.get_extension(&mutates).as_bool(), Some(entry.mutates), "{path}");
        assert_eq!(options.get_extension(&long).as_bool(), Some(entry.long_running), "{path}");
        assert!(
            Scope::try_from(entry.required_scope).is_ok_and(|scope| scope != Scope::Unspecified),
            "{path}"
        );
    }
    Ok(())
}

/// A call without a deadline gets one, unless its method is long-running; `README.md` lists these methods.
#[test]
fn the_readme_lists_the_long_running_methods() {
    let readme = include_str!("../README.md");
    let row = readme.lines().find(|line| line.starts_with("| a call without a deadline")).unwrap_or_default();
    let named = |method: &Method| {
        let name = method.path.rsplit('/').next().unwrap_or_default();
        row.contains(&format!("`{name}`"))
    };
    for method in satchel_proto::METHODS {
        assert_eq!(method.long_running, named(method), "{}", method.path);
    }
}

#[test]
fn requests_and_responses_are_named_after_their_method() -> TestResult {
    for method in methods(&pool()?) {
        assert_eq!(method.input().name(), format!("{}Request", method.name()));
        assert_eq!(method.output().name(), format!("{}Response", method.name()));
    }
    Ok(())
}

#[test]
fn every_response_has_a_store_header() -> TestResult {
    for method in methods(&pool()?) {
        let header = method.output().get_field_by_name("header");
        let kind = header.map(|field| field.kind());
        assert!(
            matches!(&kind, Some(Kind::Message(message)) if message.name() == "StoreHeader"),
            "{} has no header",
            method.full_name()
        );
    }
    Ok(())
}

/// A code generator of a client would have to rename such a field. `type` is allowed: it is PAM's name, and no keyword of Python.
#[test]
fn no_field_name_is_a_keyword() -> TestResult {
    const KEYWORDS: &[&str] = &[
        "and",
        "as",
        "assert",
        "async",
        "await",
        "break",
        "case",
        "chan",
        "class",
        "const",
        "continue",
        "def",
        "default",
        "defer",
        "del",
        "elif",
        "else",
        "except",
        "fallthrough",
        "finally",
        "for",
        "from",
        "func",
        "global",
        "go",
        "goto",
        "if",
        "import",
        "in",
        "interface",
        "is",
        "lambda",
        "map",
        "nonlocal",
        "not",
        "or",
        "package",
        "pass",
        "raise",
        "range",
        "return",
        "select",
        "struct",
        "switch",
        "try",
        "var",
        "while",
        "with",
        "yield",
    ];
    for message in pool()?.all_messages().filter(|message| message.package_name() == "satchel.v1") {
        for field in message.fields() {
            assert!(!KEYWORDS.contains(&field.name()), "{}", field.full_name());
        }
    }
    Ok(())
}

/// AIP-141 and AIP-142: many languages have no unsigned integers, and a `Duration` has a defined unit.
#[test]
fn integers_are_signed_and_time_spans_are_durations() -> TestResult {
    for message in pool()?.all_messages().filter(|message| message.package_name() == "satchel.v1") {
        for field in message.fields() {
            let (name, kind) = (field.full_name(), field.kind());
            assert!(!matches!(kind, Kind::Uint32 | Kind::Uint64 | Kind::Fixed64), "{name} is unsigned");
            let span = ["_ms", "_millis", "_seconds", "_secs"].iter().any(|unit| name.ends_with(unit));
            assert!(!span, "{name} is no Duration");
        }
    }
    Ok(())
}

#[test]
fn unused_field_numbers_are_reserved() -> TestResult {
    let gap = |numbers: Vec<u32>, first: u32, reserved: &dyn Fn(u32) -> bool| {
        let last = numbers.iter().copied().max().unwrap_or_default();
        (first..last).find(|number| !numbers.contains(number) && !reserved(*number))
    };
    let pool = pool()?;
    for message in pool.all_messages().filter(|message| message.package_name() == "satchel.v1") {
        let reserved = |number| message.reserved_ranges().any(|range| range.contains(&number));
        let numbers = message.fields().map(|field| field.number()).collect();
        assert_eq!(gap(numbers, 1, &reserved), None, "{}", message.full_name());
    }
    for item in pool.all_enums().filter(|item| item.package_name() == "satchel.v1") {
        let reserved = |number| {
            item.reserved_ranges()
                .any(|range| i32::try_from(number).is_ok_and(|number| range.contains(&number)))
        };
        let numbers = item.values().filter_map(|value| u32::try_from(value.number()).ok()).collect();
        assert_eq!(gap(numbers, 0, &reserved), None, "{}", item.full_name());
    }
    Ok(())
}

#[test]
fn list_methods_have_page_sizes_and_tokens() -> TestResult {
    for method in methods(&pool()?).iter().filter(|method| method.name().starts_with("List")) {
        for field in ["page_size", "page_token"] {
            assert!(
                method.input().get_field_by_name(field).is_some(),
                "{} has no {field}",
                method.full_name()
            );
        }
        assert!(method.output().get_field_by_name("next_page_token").is_some(), "{}", method.full_name());
    }
    Ok(())
}

#[test]
fn the_zero_value_of_every_enum_is_unspecified() -> TestResult {
    for item in pool()?.all_enums().filter(|item| item.package_name() == "satchel.v1") {
        let zero = item.get_value(0).ok_or("no zero")?;
        assert!(zero.name().ends_with("_UNSPECIFIED"), "{}", zero.full_name());
        let prefix = zero.name().trim_end_matches("UNSPECIFIED").to_owned();
        for value in item.values() {
            assert!(value.name().starts_with(&prefix), "{} lacks the prefix {prefix}", value.full_name());
        }
    }
    Ok(())
}

#[test]
fn services_methods_messages_and_enums_are_documented() -> TestResult {
    let pool = pool()?;
    for file in pool.files().filter(|file| file.package_name() == "satchel.v1") {
        let documented = documented_paths(&file);
        for (index, service) in file.services().enumerate() {
            let index = i32::try_from(index)?;
            assert!(documented.contains(&vec![6, index]), "{} has no comment", service.full_name());
            assert_methods_documented(&service, index, &documented)?;
        }
        for (index, item) in file.enums().enumerate() {
            assert!(
                documented.contains(&vec![5, i32::try_from(index)?]),
                "{} has no comment",
                item.full_name()
            );
        }
        for (index, message) in file.messages().enumerate() {
            // A request or response is described by its method.
            let wrapper = message.name().ends_with("Request") || message.name().ends_with("Response");
            let comment = documented.contains(&vec![4, i32::try_from(index)?]);
            assert!(wrapper || comment, "{} has no comment", message.full_name());
        }
    }
    Ok(())
}

fn assert_methods_documented(
    service: &ServiceDescriptor,
    service_index: i32,
    documented: &[Vec<i32>],
) -> TestResult {
    for (index, method) in service.methods().enumerate() {
        let path = vec![6, service_index, 2, i32::try_from(index)?];
        assert!(documented.contains(&path), "{} has no comment", method.full_name());
    }
    Ok(())
}

/// Returns the descriptor paths in `file` that have a leading comment.
fn documented_paths(file: &FileDescriptor) -> Vec<Vec<i32>> {
    let info = file.file_descriptor_proto().source_code_info.clone().unwrap_or_default();
    info.location
        .into_iter()
        .filter(|location| !location.leading_comments().trim().is_empty())
        .map(|location| location.path)
        .collect()
}

#[test]
fn the_readme_lists_every_method() -> TestResult {
    let readme = include_str!("../README.md");
    for method in methods(&pool()?) {
        let service = method.parent_service().name().to_owned();
        let row =
            readme.lines().find(|line| line.starts_with(&format!("| `{service}` |"))).ok_or("no row")?;
        assert!(row.contains(&format!("`{}`", method.name())), "{} is not in README.md", method.full_name());
    }
    Ok(())
}
