//! Exports of what changed: exact by revision, and with their base the whole.

mod history;
mod laws;
mod rules;
