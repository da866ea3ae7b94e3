//! Behaviour of the whole store, against a model, through crashes and damage.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers off dice")]

mod crash;
mod damage;
mod disk;
mod lists;
mod map;
mod model;
mod modes;
mod pages;
mod world;
