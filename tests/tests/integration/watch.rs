//! Folders that a daemon watches: files arrive in every way that downloads do, and each is imported once.

mod arrivals;
mod databases;
mod file_names;
mod fixture;
mod folders;
mod jobs;
mod owners;
mod problems;
mod sessions;
mod undone_imports;
