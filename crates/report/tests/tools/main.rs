//! A binary of its own: its tests need a browser, and say so where there is none.

mod browser;
#[path = "../it/common/mod.rs"]
mod common;

testbed::main! {
    browser::the_page_shows_its_charts [CHROMIUM],
    browser::a_partial_run_opens_too [CHROMIUM],
}
