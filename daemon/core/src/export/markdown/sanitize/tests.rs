//! Renders hostile texts and checks what a browser makes of the result.

use html5ever::{ParseOpts, parse_document, tendril::TendrilSink as _};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use proptest::prelude::*;
use pulldown_cmark::{Options, Parser, html::push_html};

use super::{super::text::quote, *};

/// Elements that Markdown can produce and that load nothing. `input` is the check box of a task; `sup` and `div` belong
/// to footnotes.
const ELEMENTS: &[&str] = &[
    "a",
    "blockquote",
    "body",
    "br",
    "code",
    "dd",
    "del",
    "div",
    "dl",
    "dt",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "html",
    "input",
    "li",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];
/// The attributes that they may have. `class` and `style` come from code languages, formulas and table columns; their
/// values are checked.
const ATTRIBUTES: &[&str] =
    &["checked", "class", "disabled", "href", "id", "start", "style", "title", "type"];

/// Returns the page that a browser makes of a Markdown file.
fn page(markdown: &str, options: Options) -> RcDom {
    let mut html = String::new();
    push_html(&mut html, Parser::new_ext(markdown, options));
    parse_document(RcDom::default(), ParseOpts::default()).one(html)
}

/// Returns every node, parents first.
fn nodes(dom: &RcDom) -> Vec<Handle> {
    let (mut all, mut due) = (Vec::new(), vec![dom.document.clone()]);
    while let Some(node) = due.pop() {
        due.extend(node.children.borrow().iter().rev().cloned());
        all.push(node);
    }
    all
}

/// Returns the problems of a page; an empty list means that the page is harmless.
fn problems(dom: &RcDom) -> Vec<String> {
    let mut found = Vec::new();
    for node in nodes(dom) {
        match &node.data {
            NodeData::Comment { contents } => found.push(format!("a comment: {contents}")),
            NodeData::ProcessingInstruction { contents, .. } => {
                found.push(format!("an instruction: {contents}"));
            }
            NodeData::Element { name, attrs, .. } => {
                if !ELEMENTS.contains(&&*name.local) {
                    found.push(format!("an element: {}", name.local));
                }
                for attribute in attrs.borrow().iter() {
                    let (name, value) = (&*attribute.name.local, attribute.value.trim().to_ascii_lowercase());
                    let leads = WEB.iter().any(|web| value.starts_with(web));
                    let fits = match name {
                        "href" => leads,
                        "style" => matches!(
                            value.as_str(),
                            "text-align: left" | "text-align: center" | "text-align: right"
                        ),
                        _ => ATTRIBUTES.contains(&name),
                    };
                    if !fits {
                        found.push(format!("an attribute: {name}={value}"));
                    }
                }
            }
            NodeData::Document | NodeData::Doctype { .. } | NodeData::Text { .. } => {}
        }
    }
    found
}

/// Returns the names and texts of the elements directly below the page's body.
fn blocks(dom: &RcDom) -> Vec<(String, String)> {
    let name = |node: &Handle| match &node.data {
        NodeData::Element { name, .. } => Some(name.local.to_string()),
        _ => None,
    };
    let body = nodes(dom).into_iter().find(|node| name(node).as_deref() == Some("body"));
    let children = body.map(|body| body.children.borrow().clone()).unwrap_or_default();
    children.iter().filter_map(|node| Some((name(node)?, inside(node)))).collect()
}

fn inside(node: &Handle) -> String {
    let (mut text, mut due) = (String::new(), vec![node.clone()]);
    while let Some(node) = due.pop() {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        }
        due.extend(node.children.borrow().iter().rev().cloned());
    }
    text
}

/// Returns two messages as an export contains them, with a heading of our own before each message and after the last.
fn file(one: &str, other: &str) -> String {
    let mut out = Vec::new();
    for text in [one, other] {
        out.extend_from_slice(b"## Ours\n\n");
        quote(&mut out, text).expect("a vector takes all");
    }
    out.extend_from_slice(b"## Ours\n");
    String::from_utf8(out).expect("it is text")
}

fn readers() -> [Options; 3] {
    // Text that looks like front matter, or like a note of another program, cannot begin in a quote.
    let all = Options::all()
        - Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        - Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    [Options::empty(), Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_GFM, all]
}

/// Asserts that the page is harmless and that each text stays in its own quote.
fn assert_harmless(one: &str, other: &str) {
    let markdown = file(one, other);
    for options in readers() {
        let dom = page(&markdown, options);
        assert_eq!(problems(&dom), Vec::<String>::new(), "{one:?} {other:?}\n{markdown}");
        let blocks = blocks(&dom);
        let names: Vec<&str> = blocks.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["h2", "blockquote", "h2", "blockquote", "h2"], "{one:?} {other:?}\n{markdown}");
        for heading in [0, 2, 4] {
            assert_eq!(blocks[heading].1, "Ours", "{one:?} {other:?}\n{markdown}");
        }
    }
}

/// Fragments that hostile texts are made of.
const PIECES: &[&str] = &[
    "<img src=http://evil.example/b>",
    "<script>alert(1)</script>",
    "<!--",
    "-->",
    "<![CDATA[",
    "<?php",
    "</blockquote>",
    "</p>",
    "<div>",
    "<details open>",
    "<svg onload=alert(1)>",
    "<style>*{}",
    "<a href=\"javascript:alert(1)\">",
    "<javascript:alert(1)>",
    "<http://a.example>",
    "![a](http://evil.example/b)",
    "![a][ref]",
    "![[embed]]",
    "[[javascript:alert(1)]]",
    "[[[x]]]",
    "![a](<http://evil.example/b>)",
    "[a](javascript:alert(1))",
    "[a](<javascript:alert(1)>)",
    "[a](&#106;avascript:alert(1))",
    "[a](data:text/html,x)",
    "[a](file:///etc/passwd)",
    "[a](https://a.example)",
    "[ref]: http://evil.example/b",
    "[ref]: javascript:alert(1) \"t\"",
    "[ours]: http://evil.example",
    "[ref]",
    "[a][ref]",
    "[^1]: note",
    "[^1]",
    "^[note]",
    "[a\n]: b",
    "](javascript:x)",
    "[",
    "]",
    "(",
    ")",
    ":",
    "!",
    "\\",
    "\\\\",
    "`",
    "``",
    "```",
    "````",
    "~~~",
    "~",
    "```js",
    "```{=html}",
    "`<b>`{=html}",
    "{onclick=alert(1)}",
    "{#id .class}",
    "# heading {onclick=x}",
    "===",
    "---",
    "***",
    "+++",
    "> ",
    ">",
    "- ",
    "* ",
    "1. ",
    "|",
    "|-|-|",
    "| a | b |\n|---|---|\n",
    "$$",
    "$",
    "%%",
    ":::",
    ": ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    " ",
    "    ",
    "  ",
    "      ",
    "text",
    "*",
    "**",
    "_",
    "&lt;img&gt;",
    "&",
    "\u{2028}",
    "\u{0}",
    "\u{202e}",
    "=",
    "+",
    "[x] ",
    "[ ] ",
    "[!note]",
    "www.example.org",
    "https://a.example/",
    "'",
    "\"",
    "#",
    "\\<img src=x>",
    "\\![a](http://evil.example)",
    "\\`",
    "\\[",
    "\\]",
];

#[test]
fn each_known_trick_is_inert() {
    for text in PIECES {
        assert_harmless(text, "see [ref] and [ours], [^1]");
        assert_harmless(&format!("words\n{text}\nwords"), text);
    }
    for text in [
        // Code that ends at different places for different renderers.
        "- a\n\n  ```\n<img src=x>\n  ```",
        "```\n        ```\n```\n<img src=x>",
        "~~~\n```\n~~~\n<img src=x>\n```",
        "foo ` bar\n`<img src=x>` baz",
        "`a | <img src=x>` | b\n|---|---|\n`c | <img src=y>` | d",
        "1. a\n\n   ```html\n<img src=x>\n   ```\n<img src=y>",
        "$$\n```\n$$\n<img src=x>\n```",
        "text\n      ```\n      a\n\n      <img src=x>\n      ```",
        "\\\\<img src=x>",
        "> ```\n<img src=x>\n> ```",
        "[a](\njavascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[x]:\nhttp://evil.example\n\n![x]",
        "<<img src=x>",
        "```\n<img src=x>",
        // Headings, formulas, table columns, lists and footnotes whose bounds differ between renderers.
        "\t# heading {onclick=x}",
        ":# heading {onclick=x}",
        "$$```{=html}$$<javascript:alert(1)>```js",
        "a $\n`$<img src=x>`",
        "| a | b |\n|---|---|\n    ```{=html}\n    ![a](http://evil.example/b)\n\n    ```",
        "`> ``<b>`{=html}| a | b |\n|---|---|\n`<b>`{=html}",
        "[^1]: `\\[ref]: http://x[a](javascript:x)\\`",
        "- ~~~\n  ```\n  ~~~\n<img src=x>\n  ```",
    ] {
        assert_harmless(text, text);
    }
}

#[test]
fn harmless_text_and_code_are_unchanged() {
    for text in [
        "Use `Vec<u8>` and\n```rust\nlet a: Vec<u8> = b![1];\n```\n1. one\n   ```sh\n   cat <a >b\n   ```\n\nand [this](https://a.example/b_c).",
        "a < b, 3 <4, [1] and (2); [ ] open, {x}, 100 %",
        "~~~~\n```\n[a]: b\n```\n~~~~",
        "1. Do this:\n    ```html\n    <b>\n    ```\n   - and\n     ```html\n     <i>\n     ```",
        "$\\frac{a}{b}$ and\n$$\n\\begin{pmatrix} 1 \\end{pmatrix}\n$$\n```\ncode\n```",
    ] {
        assert_eq!(sanitize(text).join("\n"), text, "what is harmless stays as it was written");
    }
    let code = "```html\n<img src=x>\n```";
    assert_eq!(sanitize(code).join("\n"), code);
    assert_eq!(sanitize("```{=html}\n<b>").join("\n"), "```html\n<b>\n```");
    assert_eq!(sanitize("a <b> ![c](d)").join("\n"), "a \\<b> \\![c\\](d)");
    assert_eq!(sanitize("so [[1](https://a.example)]").join("\n"), "so \\[[1](https://a.example)]");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_inert_in_a_browser(
        one in proptest::collection::vec(prop::sample::select(PIECES), 0..14),
        other in proptest::collection::vec(prop::sample::select(PIECES), 0..6),
    ) {
        assert_harmless(&one.concat(), &other.concat());
    }

    #[test]
    fn any_text_stays_in_its_quote(text in any::<String>()) {
        assert_harmless(&text, "x");
    }
}
