//! Names of months, day periods and time zones in the languages of Takeout.

use std::borrow::Cow;

/// Before or after noon, as CLDR calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayPeriod {
    Am,
    Pm,
}

/// For each month, the beginnings of its names, in lower case and without points.
///
/// The longest beginning of a word decides, so that `mar` does not hide `märz` or `марта`.
const MONTHS: [&str; 12] = [
    "jan jän ene gen янв січ sty oca ian ιαν יאנ ינו يناير जन มค tammi яну",
    "feb fev fév фев лют lut şub φεβ פבר فبراير फ़र फर กพ helmi",
    "mar mär mrt marz márc мар бер μαρ מרץ מרס مارس मार्च มีค maalis",
    "apr abr avr ápr апр квіт kwi nis απρ אפר أبريل إبريل अप्रै เมย huhti",
    "may mai mag mei maj máj мая май трав μαΐ μαι μάι מאי مايو मई พค touko maig",
    "jun giu juin jún июн черв cze haz iun ιουν יונ يونيو जून มิย kesä юни",
    "jul lug juil júl июл лип lip tem iul ιουλ יול يوليو जुल กค heinä юли",
    "aug ago aoû aou авг серп sie ağu agu αυγ אוג أغسطس अग สค elo",
    "sep set szept сен вер wrz eyl σεπ ספט سبتمبر सित กย syys сеп",
    "oct okt out ott окт жовт paź eki οκτ אוק أكتوبر अक् ตค loka",
    "nov ноя лист lis kas noi νοε נוב نوفمبر नव พย marras ное",
    "dec dez dic déc des дек груд gru ara δεκ דצמ ديسمبر दिस ธค joulu",
];

/// For each first byte of a name, a bit set of months: bit 0 is January.
const MONTHS_BY_FIRST_BYTE: [u16; 256] = {
    let mut months = [0; 256];
    let mut month = 0;
    while month < MONTHS.len() {
        let names = MONTHS[month].as_bytes();
        let mut at = 0;
        while at < names.len() {
            if at == 0 || names[at - 1] == b' ' {
                months[names[at] as usize] |= 1 << month;
            }
            at += 1;
        }
        month += 1;
    }
    months
};

/// The number of the month that `word` (in lower case) names, from 1.
pub(super) fn month(word: &str) -> Option<i64> {
    // Hebrew puts its "in" before the name.
    let bare = word.strip_prefix('ב').filter(|rest| !rest.is_empty());
    [Some(word), bare].into_iter().flatten().find_map(|word| {
        let first = *word.as_bytes().first()?;
        let candidates = MONTHS_BY_FIRST_BYTE[usize::from(first)];
        (1_i64..)
            .zip(MONTHS)
            .filter(|(number, _)| candidates >> (number - 1) & 1 == 1)
            .flat_map(|(number, names)| names.split(' ').map(move |name| (name, number)))
            .filter(|(name, _)| word.starts_with(name))
            .max_by_key(|(name, _)| name.len())
            .map(|(_, number)| number)
    })
}

/// The day period that `word` (in lower case) names.
pub(super) fn day_period(word: &str) -> Option<DayPeriod> {
    match word {
        "am"
        | "오전"
        | "上午"
        | "午前"
        | "凌晨"
        | "清晨"
        | "早上"
        | "ص"
        | "öö"
        | "sa"
        | "পূর্বাহ্ণ"
        | "पूर्वाह्न" => Some(DayPeriod::Am),
        "pm" | "오후" | "下午" | "午後" | "晚上" | "中午" | "م" | "ös" | "ch" | "अपराह्न" => {
            Some(DayPeriod::Pm)
        }
        _ => None,
    }
}

/// The day period that two words name, as in `a. m.` or `μ.μ.`
pub(super) fn day_period_of_two(first: &str, second: &str) -> Option<DayPeriod> {
    match (first, second) {
        ("a", "m") | ("π", "μ") => Some(DayPeriod::Am),
        ("p", "m") | ("μ", "μ") => Some(DayPeriod::Pm),
        _ => None,
    }
}

/// Words of dates without a meaning of their own.
const FILLERS: &str = "de del d at um à a las alle ore kl klo om o \
    в г р о ч στις μ π m p 年 月 日 년 월 일 thg tháng lúc pukul saat בשעה को في عند เวลา น";

pub(super) fn is_filler(word: &str) -> bool {
    FILLERS.split(' ').any(|filler| filler == word)
}

/// Minutes east of UTC of an abbreviation or of `GMT+05:30`, `UTC+2`, `[GMT+8]`.
///
/// An abbreviation of several zones is read as that of the United States, else as the zone with the most people.
pub(super) fn zone_offset(text: &str) -> Option<i64> {
    let text = text.trim_matches(['[', ']', '(', ')', '.']);
    let capitals = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_lowercase());
    let text = if capitals { Cow::Borrowed(text) } else { Cow::Owned(text.to_uppercase()) };
    let numeric = ["GMT", "UTC", ""].into_iter().find_map(|name| numeric_offset(text.strip_prefix(name)?));
    numeric.or_else(|| named_offset(&text))
}

fn numeric_offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.chars().next()? {
        '+' => (1, text.get(1..)?),
        '-' => (-1, text.get(1..)?),
        '\u{2212}' => (-1, text.get('\u{2212}'.len_utf8()..)?),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if rest.len() == 4 => rest.split_at_checked(2)?,
        None => (rest, "0"),
    };
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..=18).contains(&hours) && (0..60).contains(&minutes)).then_some(sign * (hours * 60 + minutes))
}

fn named_offset(text: &str) -> Option<i64> {
    const HOUR: i64 = 60;
    Some(match text {
        "UTC" | "GMT" | "Z" | "WET" | "WEZ" => 0,
        "BST" | "CET" | "MEZ" | "WEST" | "WESZ" | "WAT" | "SEČ" => HOUR,
        "CEST" | "MESZ" | "EET" | "OEZ" | "SAST" | "CAT" | "SELČ" => 2 * HOUR,
        "EEST" | "OESZ" | "MSK" | "МСК" | "TRT" | "EAT" | "IDT" => 3 * HOUR,
        "GST" | "SAMT" => 4 * HOUR,
        "PKT" | "UZT" | "YEKT" => 5 * HOUR,
        "IST" => 5 * HOUR + 30,
        "NPT" => 5 * HOUR + 45,
        "BDT" | "ALMT" => 6 * HOUR,
        "MMT" => 6 * HOUR + 30,
        "WIB" | "ICT" | "KRAT" => 7 * HOUR,
        "WITA" | "SGT" | "HKT" | "MYT" | "PHT" | "AWST" | "IRKT" => 8 * HOUR,
        "JST" | "KST" | "WIT" => 9 * HOUR,
        "ACST" => 9 * HOUR + 30,
        "ACDT" => 10 * HOUR + 30,
        "AEST" | "VLAT" => 10 * HOUR,
        "AEDT" => 11 * HOUR,
        "NZST" => 12 * HOUR,
        "NZDT" => 13 * HOUR,
        "BRST" | "NDT" => -2 * HOUR - if text == "NDT" { 30 } else { 0 },
        "BRT" | "ART" | "UYT" | "CLST" | "ADT" | "HAA" => -3 * HOUR,
        "NST" => -3 * HOUR - 30,
        "CLT" | "AST" | "BOT" | "VET" | "EDT" | "HAE" => -4 * HOUR,
        "EST" | "CDT" | "COT" | "PET" | "ECT" | "HNE" | "HAC" => -5 * HOUR,
        "CST" | "MDT" | "HNC" => -6 * HOUR,
        "MST" | "PDT" | "HAP" => -7 * HOUR,
        "PST" | "AKDT" | "HNP" => -8 * HOUR,
        "AKST" => -9 * HOUR,
        "HST" => -10 * HOUR,
        _ => return None,
    })
}
