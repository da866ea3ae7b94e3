//! Numbers of the contract, which are signed, as AIP-141 asks: many languages have no unsigned ones.

/// A number that counts.
pub trait Count {
    /// How the contract has it.
    type Signed;

    /// What is too large stands as the largest.
    fn signed(self) -> Self::Signed;
}

/// A number as the contract has it.
pub trait Signed {
    /// What it counts.
    type Count;

    /// What is negative stands as zero.
    fn unsigned(self) -> Self::Count;
}

macro_rules! pair {
    ($count:ty, $signed:ty) => {
        impl Count for $count {
            type Signed = $signed;

            fn signed(self) -> $signed {
                <$signed>::try_from(self).unwrap_or(<$signed>::MAX)
            }
        }

        impl Signed for $signed {
            type Count = $count;

            fn unsigned(self) -> $count {
                <$count>::try_from(self).unwrap_or_default()
            }
        }
    };
}

pair!(u64, i64);
pair!(u32, i32);

impl<T: Count> Count for Option<T> {
    type Signed = Option<T::Signed>;

    fn signed(self) -> Self::Signed {
        self.map(Count::signed)
    }
}

impl<T: Signed> Signed for Option<T> {
    type Count = Option<T::Count>;

    fn unsigned(self) -> Self::Count {
        self.map(Signed::unsigned)
    }
}

/// Milliseconds of a duration; 0 of one that is absent or negative.
pub fn millis(duration: Option<&prost_types::Duration>) -> u64 {
    let duration = duration.and_then(|duration| std::time::Duration::try_from(*duration).ok());
    duration.map_or(0, |duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// `count` as the contract has it; what is too large stands as the largest.
pub fn signed<T: Count>(count: T) -> T::Signed {
    count.signed()
}

/// A number of the contract that the daemon sent; it sends none that is negative.
pub fn unsigned<T: Signed>(number: T) -> T::Count {
    number.unsigned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_come_back(count in 0..=i64::MAX.unsigned_abs(), small in 0..=i32::MAX.unsigned_abs()) {
            prop_assert_eq!((unsigned(signed(count)), unsigned(signed(small))), (count, small));
        }
    }

    #[test]
    fn what_does_not_fit_stands_at_the_bound() {
        assert_eq!((signed(u64::MAX), signed(Some(u32::MAX))), (i64::MAX, Some(i32::MAX)));
        assert_eq!((unsigned(-1_i64), unsigned(None::<i32>)), (0, None));
    }
}
