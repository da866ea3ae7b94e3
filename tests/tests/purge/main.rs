//! What its owner erases for good is nowhere on the disk, does not come back, and leaves all else as it was.

mod again;
mod gone;
mod killed;
mod rows;
mod scene;
mod shared;
mod stays;
mod vectors;
