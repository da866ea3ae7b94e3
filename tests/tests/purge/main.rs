//! A permanently erased record is nowhere on the disk, does not return, and leaves everything else unchanged.

mod again;
mod gone;
mod killed;
mod rows;
mod scene;
mod shared;
mod stays;
mod vectors;
