//! Conversion of counts to the signed integers of the contract. AIP-141 asks for signed ones, because many languages have no
//! unsigned integers.

/// An unsigned count, which the contract represents as a signed integer.
pub trait ToSigned {
    /// The integer type of the contract.
    type Signed;

    /// Converts the count; one that is too large becomes the largest integer.
    fn signed(self) -> Self::Signed;
}

/// A signed integer of the contract, which represents a count.
pub trait ToUnsigned {
    /// The type of the count.
    type Count;

    /// Converts the integer; a negative one becomes zero.
    fn unsigned(self) -> Self::Count;
}

macro_rules! integer_pair {
    ($count:ty, $signed:ty) => {
        impl ToSigned for $count {
            type Signed = $signed;

            fn signed(self) -> $signed {
                <$signed>::try_from(self).unwrap_or(<$signed>::MAX)
            }
        }

        impl ToUnsigned for $signed {
            type Count = $count;

            fn unsigned(self) -> $count {
                <$count>::try_from(self).unwrap_or_default()
            }
        }
    };
}

integer_pair!(u64, i64);
integer_pair!(u32, i32);

impl<T: ToSigned> ToSigned for Option<T> {
    type Signed = Option<T::Signed>;

    fn signed(self) -> Self::Signed {
        self.map(ToSigned::signed)
    }
}

impl<T: ToUnsigned> ToUnsigned for Option<T> {
    type Count = Option<T::Count>;

    fn unsigned(self) -> Self::Count {
        self.map(ToUnsigned::unsigned)
    }
}

/// Returns the milliseconds of a duration; 0 if it is missing or negative.
pub fn millis(duration: Option<&prost_types::Duration>) -> u64 {
    let duration = duration.and_then(|duration| std::time::Duration::try_from(*duration).ok());
    duration.map_or(0, |duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Converts a count to an integer of the contract; one that is too large becomes the largest integer.
pub fn signed<T: ToSigned>(count: T) -> T::Signed {
    count.signed()
}

/// Converts an integer of the contract to a count; a negative one, which the daemon never sends, becomes zero.
pub fn unsigned<T: ToUnsigned>(number: T) -> T::Count {
    number.unsigned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_survive_a_round_trip(count in 0..=i64::MAX.unsigned_abs(), small in 0..=i32::MAX.unsigned_abs()) {
            prop_assert_eq!((unsigned(signed(count)), unsigned(signed(small))), (count, small));
        }
    }

    #[test]
    fn values_out_of_range_are_clamped() {
        assert_eq!((signed(u64::MAX), signed(Some(u32::MAX))), (i64::MAX, Some(i32::MAX)));
        assert_eq!((unsigned(-1_i64), unsigned(None::<i32>)), (0, None));
    }
}
