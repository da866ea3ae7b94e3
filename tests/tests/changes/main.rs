//! Tests of incremental exports: they are exact by revision and, with their base, equal to the full export.

mod apply;
mod calls;
mod history;
mod laws;
mod restored;
mod rules;
mod taken_back;
mod valid;
mod vectors;
