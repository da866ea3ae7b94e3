//! Days and dates of the proleptic Gregorian calendar.

/// Days from 1970-01-01 to the date; none if the month or day does not exist.
pub(super) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    // Counting years from March makes the leap day the last day of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * DAYS_PER_ERA + day_of_era - DAYS_TO_EPOCH)
}

/// Year, month and day from the number of days since 1970-01-01.
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_EPOCH;
    let era = days.div_euclid(DAYS_PER_ERA);
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// 400 years.
const DAYS_PER_ERA: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

#[cfg(test)]
mod tests {
    use super::{date, days};

    #[test]
    fn every_day_of_the_range_agrees_with_another_calendar() -> Result<(), jiff::Error> {
        let epoch = jiff::civil::date(1970, 1, 1);
        let mut day = jiff::civil::date(1, 1, 1);
        for count in -719_162.. {
            let parts = (i64::from(day.year()), i64::from(day.month()), i64::from(day.day()));
            assert_eq!(date(count), parts);
            assert_eq!(days(parts.0, parts.1, parts.2), Some(count));
            if parts == (9999, 12, 31) {
                break;
            }
            day = day.tomorrow()?;
        }
        assert_eq!(epoch.until(jiff::civil::date(9999, 12, 31))?.get_days(), 2_932_896);
        Ok(())
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for (year, month, day) in [
            (2026, 2, 30),
            (2025, 2, 29),
            (1900, 2, 29),
            (2026, 13, 1),
            (2026, 0, 1),
            (2026, 4, 31),
            (2026, 4, 0),
        ] {
            assert_eq!(days(year, month, day), None);
        }
    }
}
