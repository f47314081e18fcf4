//! Chromium without a window, driven over a pipe: Chrome's own protocol, JSON that ends in a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::common::PATIENCE;
use crate::common::running::Running;

/// A browser with one page.
pub struct Browser {
    input: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    sent: u64,
    /// Complaints of the page: what its policy forbade, and what scripts threw.
    pub complaints: Vec<String>,
    // It ends before its profile is removed.
    _child: Running,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts it, with more options.
    pub fn start(options: &[&str]) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        // The protocol is spoken on file descriptors 3 and 4.
        let script = "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut command = Command::new("sh");
        command
            .args(["-c", script, "sh", "--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--remote-debugging-pipe", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-dev-shm-usage", "--disable-sync"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(options)
            .arg("about:blank")
            .env("TZ", "Asia/Kolkata")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = Running::start(&mut command);
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (told, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut bytes = Vec::new();
            while output.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
                bytes.pop();
                let message = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                bytes.clear();
                if told.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            input,
            messages,
            session: String::new(),
            sent: 0,
            complaints: Vec::new(),
            _child: child,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method and returns its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.input.flush().unwrap();
        loop {
            match self.messages.recv_timeout(PATIENCE) {
                Ok(answer) if answer["id"] == id => {
                    assert_eq!(answer["error"], Value::Null, "{method}");
                    return answer["result"].clone();
                }
                Ok(event) => self.note(&event),
                Err(RecvTimeoutError::Timeout) => panic!("{method} is not answered"),
                Err(RecvTimeoutError::Disconnected) => panic!("{method}: the browser has ended"),
            }
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let text = match event["method"].as_str() {
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                &params["entry"]["text"]
            }
            Some("Runtime.exceptionThrown") => {
                &params["exceptionDetails"]["exception"]["description"]
            }
            _ => return,
        };
        self.complaints.push(text.to_string());
    }

    /// Opens an address.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        self.call("Runtime.evaluate", params)["result"]["value"].clone()
    }

    /// The text of an element; empty where there is none.
    #[track_caller]
    pub fn text(&mut self, selector: &str) -> String {
        let found = self.value(&format!("document.querySelector({selector:?})?.innerText ?? ''"));
        found.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn until(&mut self, what: &str, expression: &str) {
        let give_up = Instant::now() + PATIENCE;
        while self.value(expression) != true {
            if Instant::now() > give_up {
                let shown = self.text("body");
                panic!("{what}: {:?}, {shown}", self.complaints);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until an element has these words.
    #[track_caller]
    pub fn until_says(&mut self, selector: &str, words: &str) {
        let has = format!("document.querySelector({selector:?})?.innerText.includes({words:?})");
        self.until(&format!("{selector} says {words}"), &has);
    }

    /// Gives the window a width.
    pub fn widen(&mut self, width: u32) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Takes a picture of the whole page, as wide as this.
    pub fn picture(&mut self, width: u32, is_dark: bool, file: &Path) {
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features);
        self.widen(width);
        std::thread::sleep(Duration::from_millis(700));
        let high = self.value("Math.ceil(document.documentElement.getBoundingClientRect().height)");
        let clip = json!({"x": 0, "y": 0, "width": width, "height": high, "scale": 1});
        let params = json!({"format": "png", "clip": clip, "captureBeyondViewport": true});
        let shot = self.call("Page.captureScreenshot", params);
        let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
}
