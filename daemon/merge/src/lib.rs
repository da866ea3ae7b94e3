//! Decides what an import, a merge or a sync changes: facts in, changes out. Pure.
//!
//! Every operation here is a join: commutative, associative and idempotent. The order in which exports arrive therefore
//! does not matter (`the_order_of_arrival_never_matters` in `conversation`).

pub mod body;
pub mod causality;
pub mod conversation;
pub mod dangling;
pub mod disjoint_sets;
pub mod document;
pub mod evidence;
pub mod groups;
pub mod notes;
pub mod stub;
pub mod tree;
