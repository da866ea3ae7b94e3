//! Names of months, of the halves of a day and of time zones, in the languages in which Takeout writes them.

use std::borrow::Cow;

/// Before or after noon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Morning,
    Afternoon,
}

/// The first letters of each month's names, in lower case and without points.
///
/// A word is looked up by the longest of them that it begins with, so that `mar` does not hide `märz` or `марта`.
const MONTHS: [(i64, &[&str]); 12] = [
    (
        1,
        &[
            "jan",
            "jän",
            "ene",
            "gen",
            "янв",
            "січ",
            "sty",
            "oca",
            "ian",
            "ιαν",
            "יאנ",
            "ינו",
            "يناير",
            "जन",
            "มค",
            "tammi",
            "яну",
        ],
    ),
    (
        2,
        &["feb", "fev", "fév", "фев", "лют", "lut", "şub", "φεβ", "פבר", "فبراير", "फ़र", "फर", "กพ", "helmi"],
    ),
    (
        3,
        &[
            "mar",
            "mär",
            "mrt",
            "marz",
            "márc",
            "мар",
            "бер",
            "μαρ",
            "מרץ",
            "מרס",
            "مارس",
            "मार्च",
            "มีค",
            "maalis",
        ],
    ),
    (
        4,
        &[
            "apr",
            "abr",
            "avr",
            "ápr",
            "апр",
            "квіт",
            "kwi",
            "nis",
            "απρ",
            "אפר",
            "أبريل",
            "إبريل",
            "अप्रै",
            "เมย",
            "huhti",
        ],
    ),
    (
        5,
        &[
            "may", "mai", "mag", "mei", "maj", "máj", "мая", "май", "трав", "μαΐ", "μαι", "μάι", "מאי",
            "مايو", "मई", "พค", "touko", "maig",
        ],
    ),
    (
        6,
        &[
            "jun",
            "giu",
            "juin",
            "jún",
            "июн",
            "черв",
            "cze",
            "haz",
            "iun",
            "ιουν",
            "יונ",
            "يونيو",
            "जून",
            "มิย",
            "kesä",
            "юни",
        ],
    ),
    (
        7,
        &[
            "jul",
            "lug",
            "juil",
            "júl",
            "июл",
            "лип",
            "lip",
            "tem",
            "iul",
            "ιουλ",
            "יול",
            "يوليو",
            "जुल",
            "กค",
            "heinä",
            "юли",
        ],
    ),
    (
        8,
        &[
            "aug",
            "ago",
            "aoû",
            "aou",
            "авг",
            "серп",
            "sie",
            "ağu",
            "agu",
            "αυγ",
            "אוג",
            "أغسطس",
            "अग",
            "สค",
            "elo",
        ],
    ),
    (
        9,
        &[
            "sep",
            "set",
            "szept",
            "сен",
            "вер",
            "wrz",
            "eyl",
            "σεπ",
            "ספט",
            "سبتمبر",
            "सित",
            "กย",
            "syys",
            "сеп",
        ],
    ),
    (
        10,
        &[
            "oct",
            "okt",
            "out",
            "ott",
            "окт",
            "жовт",
            "paź",
            "eki",
            "οκτ",
            "אוק",
            "أكتوبر",
            "अक्",
            "ตค",
            "loka",
        ],
    ),
    (11, &["nov", "ноя", "лист", "lis", "kas", "noi", "νοε", "נוב", "نوفمبر", "नव", "พย", "marras", "ное"]),
    (
        12,
        &[
            "dec",
            "dez",
            "dic",
            "déc",
            "des",
            "дек",
            "груд",
            "gru",
            "ara",
            "δεκ",
            "דצמ",
            "ديسمبر",
            "दिस",
            "ธค",
            "joulu",
        ],
    ),
];

/// For each byte, the months of which a name begins with it: bit 0 is that of the first of [`MONTHS`].
const BEGINNINGS: [u16; 256] = {
    let mut beginnings = [0; 256];
    let mut month = 0;
    while month < MONTHS.len() {
        let names = MONTHS[month].1;
        let mut name = 0;
        while name < names.len() {
            beginnings[names[name].as_bytes()[0] as usize] |= 1 << month;
            name += 1;
        }
        month += 1;
    }
    beginnings
};

/// The number of the month that `word` (in lower case) names.
pub(super) fn month(word: &str) -> Option<i64> {
    // Hebrew puts its "in" before the name.
    let bare = word.strip_prefix('ב').filter(|rest| !rest.is_empty());
    [Some(word), bare].into_iter().flatten().find_map(|word| {
        let first = *word.as_bytes().first()?;
        let begun = BEGINNINGS[usize::from(first)];
        let months = MONTHS.iter().enumerate().filter(|(at, _)| begun >> at & 1 == 1);
        months
            .flat_map(|(_, (month, names))| names.iter().map(move |name| (name, *month)))
            .filter(|(name, _)| name.as_bytes().first() == Some(&first) && word.starts_with(**name))
            .max_by_key(|(name, _)| name.len())
            .map(|(_, month)| month)
    })
}

/// The half of the day that `word` (in lower case) names.
pub(super) fn half(word: &str) -> Option<Half> {
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
        | "पूर्वाह्न" => Some(Half::Morning),
        "pm" | "오후" | "下午" | "午後" | "晚上" | "中午" | "م" | "ös" | "ch" | "अपराह्न" => {
            Some(Half::Afternoon)
        }
        _ => None,
    }
}

/// The half of the day that two words name, where points stand between its letters: `a. m.`, `μ.μ.`
pub(super) fn half_in_two(first: &str, second: &str) -> Option<Half> {
    match (first, second) {
        ("a", "m") | ("π", "μ") => Some(Half::Morning),
        ("p", "m") | ("μ", "μ") => Some(Half::Afternoon),
        _ => None,
    }
}

/// Words that stand in dates and say nothing.
pub(super) fn is_filler(word: &str) -> bool {
    matches!(
        word,
        "de" | "del"
            | "d"
            | "at"
            | "um"
            | "à"
            | "a"
            | "las"
            | "alle"
            | "ore"
            | "kl"
            | "klo"
            | "om"
            | "o"
            | "в"
            | "г"
            | "р"
            | "о"
            | "ч"
            | "στις"
            | "μ"
            | "π"
            | "m"
            | "p"
            | "年"
            | "月"
            | "日"
            | "년"
            | "월"
            | "일"
            | "thg"
            | "tháng"
            | "lúc"
            | "pukul"
            | "saat"
            | "בשעה"
            | "को"
            | "في"
            | "عند"
            | "เวลา"
            | "น"
    )
}

/// Minutes east of UTC of a zone's abbreviation or of `GMT+05:30`, `UTC+2`, `[GMT+8]`.
///
/// Abbreviations that several zones share stand for the one with the most people, the United States' first.
pub(super) fn offset(text: &str) -> Option<i64> {
    let text = text.trim_matches(['[', ']', '(', ')', '.']);
    let capitals = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_lowercase());
    let text = if capitals { Cow::Borrowed(text) } else { Cow::Owned(text.to_uppercase()) };
    let numeric = ["GMT", "UTC", ""].into_iter().find_map(|name| {
        let rest = text.strip_prefix(name)?;
        signed(rest)
    });
    numeric.or_else(|| named(&text))
}

fn signed(text: &str) -> Option<i64> {
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

fn named(text: &str) -> Option<i64> {
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
