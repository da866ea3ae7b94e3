use super::*;

fn markdown(html: &str) -> String {
    convert(html).text
}

#[test]
fn paragraphs_headings_and_emphasis_are_converted() {
    assert_eq!(
        markdown(
            "<h2>Tea</h2><p>One <strong>two</strong>, <em>three</em> &amp; <code>a &lt; b</code>.</p>\n<p>Four<br>five</p><hr>six"
        ),
        "## Tea\n\nOne **two**, *three* & `a < b`.\n\nFour\nfive\n\n---\n\nsix"
    );
    assert_eq!(markdown("plain text"), "plain text");
    assert_eq!(markdown("a <b>b </b>c"), "a **b** c");
    assert_eq!(markdown("<div>a</div><div>b</div>"), "a\nb");
    assert_eq!(markdown(""), "");
}

#[test]
fn nested_and_numbered_lists_are_converted() {
    assert_eq!(
        markdown(
            "<p>x</p><ul><li>one</li><li><p>two</p><ol start=\"3\"><li>a</li><li>b</li></ol></li></ul><p>y</p>"
        ),
        "x\n\n- one\n- two\n\n  3. a\n  4. b\n\ny"
    );
}

#[test]
fn code_keeps_its_lines() {
    assert_eq!(
        markdown(
            "<p>So:</p><pre><code class=\"language-rust\">fn main() {\n    x &lt; 1\n}\n</code></pre><p>ok</p>"
        ),
        "So:\n\n```rust\nfn main() {\n    x < 1\n}\n```\n\nok"
    );
    assert_eq!(markdown("<pre>```\n</pre>"), "````\n```\n````");
}

#[test]
fn tables_are_converted() {
    assert_eq!(
        markdown(
            "<table><thead><tr><th>A</th><th>B|C</th></tr></thead><tbody><tr><td><b>1</b></td><td>2<br>3</td></tr><tr><td>4</td></tr></tbody></table>"
        ),
        "| A | B\\|C |\n| --- | --- |\n| **1** | 2<br>3 |\n| 4 |  |"
    );
}

#[test]
fn links_images_and_quotes_are_converted() {
    assert_eq!(
        markdown("See <a href=\"https://a/b\">this</a> and <a href=\"https://c\">https://c</a>."),
        "See [this](https://a/b) and https://c."
    );
    let converted = convert("<p>A <img src=\"x.png\" alt=\"cat\"></p><img src=\"data:image/png;base64,AA\">");
    assert_eq!(converted.text, "A ![cat](x.png)\n\n![]()");
    assert_eq!(converted.images, [Image { file: "x.png".into(), name: Some("cat".into()) }]);
    assert_eq!(
        markdown("<p>a</p><blockquote><p>b</p><p>c</p></blockquote><p>d</p>"),
        "a\n\n> b\n>\n> c\n\nd"
    );
}

#[test]
fn deep_nesting_and_broken_html_are_converted() {
    let deep =
        format!("{}x{}", "<ul><li><blockquote>".repeat(20_000), "</blockquote></li></ul>".repeat(20_000));
    assert!(markdown(&deep).contains('x'));
    let open = "<table><tr><td><a href=x><b><ul><li>1<pre>2".repeat(2_000);
    assert!(markdown(&open).len() < 200_000);
    markdown("</td></table></li></ul></blockquote></a></pre><td><tr>");
}
