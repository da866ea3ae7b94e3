//! Behaviour of the whole store.
