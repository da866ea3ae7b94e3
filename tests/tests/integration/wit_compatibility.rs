//! The WIT package is frozen: importers built for an earlier release continue to run. The current world is compared
//! with the copy kept at the release, by structure and not by wording.

use anyhow::{Context as _, Result};
use wit_parser::{Resolve, WorldId};

const RELEASED: &str = include_str!("../../contract/importer-1.0.0.wit");
const CURRENT: &str = include_str!("../../../sdk/wit/importer.wit");
const PACKAGE: &str = "package satchel:importer@1.0.0;";

/// Checks that components built for the released package run with `current`; the error says why not.
fn check_compatible(current: &str) -> Result<()> {
    let mut resolve = Resolve::default();
    // Two packages with the same name and version cannot be loaded together; versions are not compared.
    let released = world(&mut resolve, &RELEASED.replace(PACKAGE, "package satchel:importer@0.0.0;"))?;
    let current = world(&mut resolve, current)?;
    wit_component::semver_check(resolve, released, current)
}

fn world(resolve: &mut Resolve, text: &str) -> Result<WorldId> {
    let package = resolve.push_source("importer.wit", text)?;
    resolve.select_world(&[package], Some("importer"))
}

#[test]
fn the_current_wit_package_is_compatible_with_the_released_one() -> Result<()> {
    assert!(CURRENT.contains(PACKAGE) && RELEASED.contains(PACKAGE));
    check_compatible(CURRENT)
}

#[test]
fn a_breaking_change_is_detected() {
    for (what, before, after) in [
        (
            "a field is added",
            "locator: string,\n  }\n\n  /// PAM `MemoryObject.type`",
            "locator: string,\n    rank: u32,\n  }\n",
        ),
        (
            "a case is added",
            "enum content-kind { text, multipart }",
            "enum content-kind { text, multipart, html }",
        ),
        ("a function is gone", "  again: func() -> verdict;\n", ""),
        ("a parameter changes its type", "seek: func(offset: u64)", "seek: func(offset: u32)"),
        ("an import is gone", "  import log;\n", ""),
    ] {
        let changed = CURRENT.replacen(before, after, 1);
        assert_ne!(changed, CURRENT, "{what}: the text to change was not found");
        let found = check_compatible(&changed);
        assert!(found.is_err(), "{what}");
    }
}

#[test]
fn an_additional_interface_is_compatible() -> Result<()> {
    let added = CURRENT.replacen(
        "world importer {",
        "interface times {\n  zone: func() -> string;\n}\n\nworld importer {\n  import times;",
        1,
    );
    check_compatible(&added).context("an interface is added")
}
