//! Tests of `run` and `check`: with the built-in importers, and with guests that fail each check.

#![expect(clippy::unwrap_used, reason = "tests")]

mod built_in;
mod guests;
mod hostile;
mod project;
mod run;
