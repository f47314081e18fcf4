//! A way to a cluster whose manager is too busy to answer some changes.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use super::answering::{message, serving};
use super::cluster::http;
use super::until;

/// Passes requests on as long as the test runs.
pub struct BusyWay {
    pub url: String,
    to: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The next change whose body holds this is held.
    holds: Option<&'static str>,
    /// Requests whose path holds this are refused.
    refuses: Option<&'static str>,
    /// What is held and refused once that is changed which is held then.
    later: Option<(&'static str, &'static str)>,
    /// Path and body of changes that are never answered. They are made before the next change that is not held.
    held: Vec<(String, String)>,
}

impl State {
    fn make_held(&mut self, to: &str) {
        for (path, body) in std::mem::take(&mut self.held) {
            http(to, "PUT", &path, &body);
        }
    }
}

impl BusyWay {
    pub fn to(url: &str) -> BusyWay {
        let state = Arc::<Mutex<State>>::default();
        let (to, inner) = (url.to_owned(), state.clone());
        let address = serving(move |stream| pass(stream, &to, &inner));
        BusyWay { url: format!("http://{address}"), to: url.to_owned(), state }
    }

    /// Holds the next change of this setting.
    pub fn hold(&self, setting: &'static str) {
        self.state.lock().unwrap().holds = Some(setting);
    }

    /// From the next change of this setting on, holds the one after it, and refuses requests of this path.
    pub fn hold_and_refuse_after(&self, setting: &'static str, path: &'static str) {
        self.state.lock().unwrap().later = Some((setting, path));
    }

    /// Waits until a change is held.
    #[track_caller]
    pub fn until_held(&self) {
        until("a change is held", || !self.state.lock().unwrap().held.is_empty());
    }

    /// Whether the change that was to be held came.
    pub fn has_held(&self) -> bool {
        self.state.lock().unwrap().holds.is_none()
    }

    /// Makes what is still held.
    pub fn make_held(&self) {
        self.state.lock().unwrap().make_held(&self.to);
    }
}

/// Passes one request on.
fn pass(stream: TcpStream, to: &str, state: &Mutex<State>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let request = String::from_utf8(message(&mut stream)?).map_err(io::Error::other)?;
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or_default();
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_refused = {
        let mut state = state.lock().unwrap();
        if method == "PUT" && state.holds.is_some_and(|setting| body.contains(setting)) {
            state.holds = None;
            state.held.push((path.to_owned(), body.to_owned()));
            drop(state);
            // Whoever asked gives up.
            return stream.read(&mut [0]).map(drop);
        }
        if method == "PUT" {
            state.make_held(to);
            if let Some((setting, path)) = state.later.take_if(|(held, _)| body.contains(*held)) {
                (state.holds, state.refuses) = (Some(setting), Some(path));
            }
        }
        state.refuses.is_some_and(|text| path.contains(text))
    };
    let (status, answer) =
        if is_refused { (503, "{}".to_owned()) } else { http(to, method, path, body) };
    let length = answer.len();
    let head = format!("HTTP/1.1 {status} said\r\ncontent-length: {length}\r\n");
    write!(stream.get_mut(), "{head}connection: close\r\n\r\n{answer}")
}
