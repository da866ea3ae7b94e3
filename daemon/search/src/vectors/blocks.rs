//! A list of rows of equal width, in blocks: it grows without moving what it has, and shrinks when rows are removed.

/// Rows of `width` items each.
///
/// One large vector would take up to twice the memory of its items, and three times while it grows.
#[derive(Debug)]
pub(super) struct Blocks<T> {
    /// All but the last are full. None is empty.
    blocks: Vec<Vec<T>>,
    width: usize,
    rows_per_block: usize,
    len: usize,
}

/// Memory of a block, in bytes: enough that allocators give it back to the system when it is freed.
const BLOCK_BYTES: usize = 256 << 10;

impl<T: Copy> Blocks<T> {
    /// Makes an empty list. `width` is at least 1.
    pub(super) fn new(width: usize) -> Self {
        let rows = BLOCK_BYTES / (width * size_of::<T>());
        // A power of two, so that finding a row takes no division.
        let rows_per_block = 1 << rows.max(1).ilog2();
        Self { blocks: Vec::new(), width, rows_per_block, len: 0 }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Appends a row of `width` items.
    pub(super) fn push(&mut self, row: &[T]) {
        debug_assert_eq!(row.len(), self.width);
        if self.len.is_multiple_of(self.rows_per_block) {
            self.blocks.push(Vec::with_capacity(self.rows_per_block * self.width));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.extend_from_slice(row);
            self.len += 1;
        }
    }

    /// Returns a row.
    #[inline]
    pub(super) fn row(&self, index: usize) -> &[T] {
        let at = (index & (self.rows_per_block - 1)) * self.width;
        &self.blocks[index >> self.rows_per_block.trailing_zeros()][at..at + self.width]
    }

    /// Replaces a row.
    pub(super) fn set(&mut self, index: usize, row: &[T]) {
        let at = (index & (self.rows_per_block - 1)) * self.width;
        self.blocks[index >> self.rows_per_block.trailing_zeros()][at..at + self.width].copy_from_slice(row);
    }

    /// Removes a row. The last one takes its place.
    pub(super) fn swap_remove(&mut self, index: usize) {
        let last = self.row(self.len - 1).to_vec();
        self.set(index, &last);
        self.len -= 1;
        if let Some(block) = self.blocks.last_mut() {
            block.truncate(block.len() - self.width);
            if block.is_empty() {
                self.blocks.pop();
            }
        }
    }

    /// Memory that the rows take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let list = self.blocks.capacity() * size_of::<Vec<T>>();
        list + self.blocks.len() * self.rows_per_block * self.width * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// `Some` appends or replaces, `None` removes.
        #[test]
        fn rows_are_those_of_a_plain_list(steps in prop::collection::vec((any::<u16>(), prop::option::of(any::<u64>())), 0..60)) {
            let width = BLOCK_BYTES / 8 / 4;
            let (mut blocks, mut plain) = (Blocks::new(width), Vec::new());
            for (at, step) in steps {
                let index = usize::from(at) % (plain.len() + 1);
                match step {
                    Some(number) if index == plain.len() => {
                        plain.push(number);
                        blocks.push(&vec![number; width]);
                    }
                    Some(number) => {
                        plain[index] = number;
                        blocks.set(index, &vec![number; width]);
                    }
                    None if index < plain.len() => {
                        plain.swap_remove(index);
                        blocks.swap_remove(index);
                    }
                    None => {}
                }
            }
            prop_assert_eq!(blocks.len(), plain.len());
            for (index, number) in plain.iter().enumerate() {
                prop_assert!(blocks.row(index).iter().all(|item| item == number));
            }
            prop_assert_eq!(blocks.blocks.len(), plain.len().div_ceil(4));
        }
    }
}
