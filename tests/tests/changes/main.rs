//! Exports of what changed: exact by revision, and with their base the whole.

mod apply;
mod calls;
mod history;
mod laws;
mod restored;
mod rules;
mod taken_back;
mod valid;
mod vectors;
