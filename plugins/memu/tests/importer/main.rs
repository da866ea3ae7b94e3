//! Tests of the importer on its fixtures, on damaged and hostile input, and on sample exports.

mod database;
mod exports;
mod fields;
mod fixtures;
mod hostile;
mod order;
