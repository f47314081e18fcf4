//! The page itself: one document with its style sheet and its script, which needs nothing else.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::page::CSS;

const HTML: &str = include_str!("page.html");
const LIVE_CSS: &str = include_str!("live.css");
/// In the order in which they use each other.
const SCRIPTS: [&str; 8] = [
    include_str!("dom.js"),
    include_str!("flow.js"),
    include_str!("chart.js"),
    include_str!("verdicts.js"),
    include_str!("tables.js"),
    include_str!("steering.js"),
    include_str!("outlook.js"),
    include_str!("page.js"),
];

/// A page and the policy that it is sent with.
pub struct Document {
    /// The page.
    pub html: String,
    /// The value of `Content-Security-Policy`.
    pub policy: String,
}

/// The page, and what a browser may do for it: run this script, apply this style sheet, and ask the server that sent
/// it.
pub fn document() -> Document {
    let mut script = "(() => {\n\"use strict\";\n".to_owned();
    for part in SCRIPTS {
        script.push_str(part);
    }
    script.push_str("})();\n");
    let css = format!("{CSS}{LIVE_CSS}");
    let hash = |text: &str| STANDARD.encode(digest(&SHA256, text.as_bytes()));
    let mut policy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        .to_owned();
    let _ = write!(policy, "; script-src 'sha256-{}'", hash(&script));
    let _ = write!(policy, "; style-src 'sha256-{}'", hash(&css));
    let html = HTML.replace("/*css*/", &css).replace("/*script*/", &script);
    Document { html, policy }
}
