//! What an author does: a new project, its build, a key, a signature.

mod keys;
mod rust_project;
mod sdk;
