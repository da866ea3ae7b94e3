//! Tests of the importer on its fixtures, on damaged and hostile input, and on sample sessions.

mod exports;
mod fields;
mod fixtures;
mod hostile;
