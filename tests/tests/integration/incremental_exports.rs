//! Tests of incremental exports: they are exact by revision and, with their base, equal to the full export.

mod apply;
mod grpc;
mod merge_properties;
mod random_store;
mod restored_backup;
mod rules;
mod undone_imports;
mod validity;
mod vectors;
