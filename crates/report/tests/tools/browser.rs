//! Opens the page in headless Chromium.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Browser {
    dir: tempfile::TempDir,
}

impl Browser {
    fn new() -> Self {
        Browser { dir: tempfile::tempdir().unwrap() }
    }

    fn page(&self, html: &str) -> PathBuf {
        let file = self.dir.path().join("page.html");
        std::fs::write(&file, html).unwrap();
        file
    }

    fn run(&self, page: &Path, options: &[String]) -> Output {
        let output = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", self.dir.path().join("profile").display()))
            .args(options)
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Width and height of a screenshot, and its size in bytes.
    fn shot(&self, page: &Path, width: u32, dark: bool) -> (u32, u32, usize) {
        let file = self.dir.path().join("shot.png");
        let mut options =
            vec![format!("--screenshot={}", file.display()), format!("--window-size={width},2400")];
        if dark {
            options.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        self.run(page, &options);
        let png = std::fs::read(&file).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        (number(16), number(20), png.len())
    }
}

pub fn the_page_shows_its_charts() {
    let browser = Browser::new();
    let run = crate::common::made_up(100.0, false);
    let html = report::html(&run);
    let page = browser.page(&html);
    let dom = browser.run(&page, &["--dump-dom".to_owned()]).stdout;
    let dom = String::from_utf8(dom).unwrap();
    let charts = html.matches("<svg").count();
    assert!(charts > 10, "{charts}");
    assert_eq!(dom.matches("<svg").count(), charts, "the browser keeps every chart");
    assert_eq!(dom.matches("<path").count(), dom.matches("</path>").count());
    assert!(dom.contains("59 times as fast as 64 KB x 1"));
    assert!(!dom.contains("<script"));

    for (width, dark) in [(1200, false), (1200, true), (500, false)] {
        let (wide, high, bytes) = browser.shot(&page, width, dark);
        assert_eq!((wide, high), (width, 2400));
        // A blank page of this size has about 10 kB.
        assert!(bytes > 60_000, "{bytes} bytes at {width}, dark {dark}");
    }
}

pub fn a_partial_run_opens_too() {
    let browser = Browser::new();
    let page = browser.page(&report::html(&crate::common::interrupted()));
    let dom = browser.run(&page, &["--dump-dom".to_owned()]).stdout;
    let dom = String::from_utf8(dom).unwrap();
    assert!(dom.contains("The run was interrupted: 2 of 5 variants finished."));
    assert!(dom.matches("<svg").count() >= 4);
}
