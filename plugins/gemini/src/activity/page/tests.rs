use proptest::prelude::*;

use super::{line::collapse_spaces, *};
use crate::activity::row::{Answer, Row};

fn answer(row: &Row<'_>) -> Option<String> {
    match row.answers.as_slice() {
        [Answer::Markdown(markdown)] => Some(markdown.text.clone()),
        _ => None,
    }
}

fn card(body: &str) -> String {
    format!(
        "<div class=\"outer-cell mdl-cell\"><div class=\"mdl-grid\"><div class=\"header-cell\"><p>Gemini Apps<br></p></div>\
         <div class=\"content-cell mdl-typography--body-1\">{body}</div>\
         <div class=\"content-cell mdl-typography--body-1 mdl-typography--text-right\"><img src=\"cat.png\"></div>\
         <div class=\"content-cell mdl-typography--caption\"><b>Products:</b><br>&emsp;Gemini Apps<br><b>Details:</b><br>\
         &emsp;<a href=\"https://gemini.google.com/app/00aa11bb22cc33dd\">https://gemini.google.com/app/00aa11bb22cc33dd</a><br></div></div></div>"
    )
}

#[test]
fn cards_with_lines_and_with_headings_are_read_alike() {
    let lines = card(
        "Prompted&nbsp;Is it <i>tea</i>?<br>Attached 1 file.<br>-&nbsp;<a href=\"n.txt\">n.txt</a><br>Jul 4, 2026, 9:15:07&#8239;AM CEST<br><p>Yes.</p><div>2 &lt; 3</div>",
    );
    let headed = card(
        "<h3>Prompted Is it tea?</h3><p>Attached 1 file.</p><p>- <a href=\"n.txt\">n.txt</a></p><p>Jul 4, 2026, 9:15:07 AM CEST</p><p>Yes.</p><div>2 &lt; 3</div>",
    );
    for html in [lines, headed] {
        let card = read(&html, ReadMode::Full);
        assert!(card.complete && card.has_time, "{html}");
        assert_eq!(collapse_spaces(&card.row.title), "Prompted Is it tea?");
        assert_eq!(answer(&card.row).as_deref(), Some("Yes.\n\n2 < 3"), "{html}");
        assert_eq!(card.row.time, Some(1_783_149_307_000_000));
        assert_eq!(card.row.conversations, ["00aa11bb22cc33dd"]);
        let files: Vec<_> = card.row.uploads.iter().map(|upload| upload.file.as_ref()).collect();
        assert_eq!(files, ["n.txt", "cat.png"]);
        assert_eq!(card.row.labels, ["Gemini Apps"]);
    }
}

#[test]
fn a_card_may_lack_anything() {
    let html = card("Used Gemini Apps<br>");
    let card = read(&html, ReadMode::Full);
    assert_eq!((card.row.title.as_ref(), card.row.time, card.has_time), ("Used Gemini Apps", None, false));
    let cut = read(
        "<div class=\"outer-cell\"><div class=\"content-cell\">Prompted x<br>Jul 4, 2026, 9:15:07 AM UTC<br>half of it",
        ReadMode::Full,
    );
    assert!(!cut.complete && cut.has_time);
    assert_eq!(answer(&cut.row).as_deref(), Some("half of it"));
    assert!(!read("", ReadMode::Full).complete);
}

/// Parts of pages, and parts that break them.
const PARTS: [&str; 26] = [
    "<div class=\"outer-cell\">",
    "<div class=\"mdl-grid\">",
    "<div class=\"header-cell\"><p>Gemini Apps<br></p></div>",
    "<div class=\"content-cell\">",
    "<div class=\"content-cell\">",
    "<div class=\"content-cell mdl-typography--text-right\">",
    "<div class=\"content-cell mdl-typography--caption\">",
    "<b>Products:</b><br>&emsp;Gemini Apps<br>",
    "<b>Details:</b><br><a href=\"https://gemini.google.com/app/00aa11bb22cc33dd\">chat</a><br>",
    "<a href=\"n.txt\">n.txt</a>",
    "<img src=\"cat.png\">",
    "<br>",
    "Prompted one",
    "<br>Prompted two<br>",
    "<br>Jul 4, 2026, 9:15:07 AM UTC<br>",
    "<br>Jul 5, 2026, 9:15:07 AM UTC<br>",
    "<p>an answer</p>",
    "<h3>",
    "<b>",
    "</div>",
    "</div>",
    "</div></div>",
    "</div></div></div>\n",
    "<!-- </div> -->",
    "<",
    " a &lt; b &unknown; ",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_card_does_not_depend_on_the_card_before(
        begins in prop::collection::vec(prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..6), 2),
        ends in prop::collection::vec(prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..6), 2),
        bodies in prop::collection::vec((prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..5), 0..2_usize, 0..2_usize), 1..6),
        mode in prop::sample::select(vec![ReadMode::Summary, ReadMode::Full]),
    ) {
        let mut cards = CardReader::new(mode);
        for (body, begin, end) in bodies {
            let (begin, end) = (begins[begin].concat(), ends[end].concat());
            let html = format!("{begin}<div class=\"content-cell\">{}</div>{end}", body.concat());
            prop_assert_eq!(format!("{:?}", cards.read(&html)), format!("{:?}", read(&html, mode)), "{}", html);
        }
    }

    #[test]
    fn both_modes_read_the_same_row(parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..16)) {
        let html = parts.concat();
        let (summary, full) = (read(&html, ReadMode::Summary), read(&html, ReadMode::Full));
        prop_assert_eq!((summary.complete, summary.has_time), (full.complete, full.has_time), "{}", html);
        let fields = |row: &Row<'_>| (row.title.to_string(), row.time, format!("{:?}{:?}", row.labels, row.conversations), row.answers.len());
        prop_assert_eq!(fields(&summary.row), fields(&full.row), "{}", html);
    }
}
