//! A response of HTTP/1.1 (RFC 9112), parsed as its bytes arrive. The body is counted and only its beginning kept, so
//! that memory is bounded. Pure.

/// A longer head is refused.
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
/// How much of the body is kept.
const KEPT_BYTES: usize = 4 << 10;
/// The same of a scroll: its answers begin with an id of some 70 bytes for each shard, here up to 3 500 of them.
const KEPT_OF_SCROLL_BYTES: usize = 256 << 10;
/// The same of many searches, any of which may have failed.
const KEPT_OF_SEARCHES_BYTES: usize = 16 << 20;

/// Why the bytes are no response of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the head, or in it.
    Head,
    /// In a body of known length: the bytes that are still to come.
    Length(u64),
    /// In a body that ends with the connection.
    UntilClosed,
    /// In the line with a chunk's size: its value so far, and whether the digits have ended.
    ChunkSize { bytes: u64, digits: u32, over: bool },
    /// In a chunk's data: the bytes that are still to come.
    Chunk(u64),
    /// After a chunk's data, before the end of the line.
    ChunkEnd,
    /// In a trailer line: whether it is empty so far.
    Trailer { empty: bool },
    /// The response is complete.
    Done,
}

/// Parses one response after another.
#[derive(Debug)]
pub(super) struct AnswerReader {
    state: State,
    /// The part of the head that has arrived, while it is incomplete.
    head: Vec<u8>,
    /// As much of it as is kept.
    pub(super) body: Vec<u8>,
    kept_bytes: usize,
    pub(super) status: u16,
    pub(super) body_bytes: u64,
    /// Whether another request may follow on the same connection.
    pub(super) keeps: bool,
    /// Whether the response has no body whatever its head says: that to `HEAD`.
    bodyless: bool,
}

impl AnswerReader {
    pub(super) fn new() -> Self {
        AnswerReader {
            state: State::Done,
            head: Vec::new(),
            body: Vec::with_capacity(KEPT_BYTES),
            kept_bytes: KEPT_BYTES,
            status: 0,
            body_bytes: 0,
            keeps: true,
            bodyless: false,
        }
    }

    /// Expects the response to this request.
    pub(super) fn begin(&mut self, method: &str, path: &str) {
        self.state = State::Head;
        self.head.clear();
        self.body.clear();
        self.body_bytes = 0;
        self.kept_bytes = match path {
            _ if path.contains("scroll") => KEPT_OF_SCROLL_BYTES,
            _ if path.contains("_msearch") => KEPT_OF_SEARCHES_BYTES,
            _ => KEPT_BYTES,
        };
        self.bodyless = method == "HEAD";
    }

    /// Whether no byte of the response has arrived.
    pub(super) fn is_untouched(&self) -> bool {
        self.state == State::Head && self.head.is_empty()
    }

    /// Parses the next bytes; answers whether the response is complete. Bytes after it are an error, because requests
    /// are not pipelined.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<bool, Malformed> {
        while !bytes.is_empty() && self.state != State::Done {
            bytes = match self.state {
                State::Head => self.head(bytes)?,
                State::Length(left) => {
                    let (data, rest) = split(bytes, left);
                    self.state = self.after_data(data, left - data.len() as u64, State::Done);
                    rest
                }
                State::UntilClosed => {
                    self.keep(bytes);
                    &[]
                }
                State::Chunk(left) => {
                    let (data, rest) = split(bytes, left);
                    self.state = self.after_data(data, left - data.len() as u64, State::ChunkEnd);
                    rest
                }
                _ => {
                    self.state = self.line(bytes[0])?;
                    &bytes[1..]
                }
            };
        }
        match self.state == State::Done {
            true if !bytes.is_empty() => Err(Malformed("more bytes than its head says")),
            done => Ok(done),
        }
    }

    /// Ends the response with its connection; answers whether it is complete.
    pub(super) fn end(&mut self) -> bool {
        if self.state == State::UntilClosed {
            self.state = State::Done;
        }
        self.keeps = false;
        self.state == State::Done
    }

    fn keep(&mut self, data: &[u8]) {
        self.body_bytes += data.len() as u64;
        let room = self.kept_bytes.saturating_sub(self.body.len());
        self.body.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// The state after `data`, when `left` bytes are still to come; `then` when none are.
    fn after_data(&mut self, data: &[u8], left: u64, then: State) -> State {
        self.keep(data);
        match (left, then) {
            (0, then) => then,
            (left, State::Done) => State::Length(left),
            (left, _) => State::Chunk(left),
        }
    }

    /// Parses the head if it is complete, and returns the bytes after it.
    fn head<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Malformed> {
        if self.head.is_empty() {
            if let Some(length) = self.parse(bytes)? {
                return Ok(&bytes[length..]);
            }
            self.head.extend_from_slice(bytes);
        } else {
            let before = self.head.len();
            self.head.extend_from_slice(bytes);
            let head = std::mem::take(&mut self.head);
            let parsed = self.parse(&head);
            self.head = head;
            if let Some(length) = parsed? {
                self.head.clear();
                return Ok(&bytes[length - before..]);
            }
        }
        match self.head.len() > HEAD_BYTES_MAX {
            true => Err(Malformed("a head of more than 64 KB")),
            false => Ok(&[]),
        }
    }

    /// Parses a head and returns its length; none where it is incomplete.
    fn parse(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(bytes).map_err(|_| Malformed("no head of HTTP/1"))?;
        let httparse::Status::Complete(length) = parsed else { return Ok(None) };
        self.status = response.code.unwrap_or(0);
        if (100..200).contains(&self.status) {
            // An interim answer: the real one follows.
            self.state = State::Head;
            return Ok(Some(length));
        }
        self.keeps = response.version == Some(1);
        let (mut content_length, mut chunked) = (None, false);
        for header in response.headers.iter() {
            let value = header.value.trim_ascii();
            if header.name.eq_ignore_ascii_case("content-length") {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                content_length =
                    Some(number.ok_or(Malformed("a content-length that is no number"))?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = value.to_ascii_lowercase().ends_with(b"chunked");
            } else if header.name.eq_ignore_ascii_case("connection") {
                let value = value.to_ascii_lowercase();
                let says = |word: &[u8]| value.windows(word.len()).any(|part| part == word);
                self.keeps = !says(b"close") && (self.keeps || says(b"keep-alive"));
            }
        }
        self.state =
            match (self.bodyless || matches!(self.status, 204 | 304), chunked, content_length) {
                (true, ..) | (false, false, Some(0)) => State::Done,
                (false, true, _) => State::ChunkSize { bytes: 0, digits: 0, over: false },
                (false, false, Some(length)) => State::Length(length),
                (false, false, None) => State::UntilClosed,
            };
        Ok(Some(length))
    }

    /// A byte of the lines between chunks.
    fn line(&self, byte: u8) -> Result<State, Malformed> {
        Ok(match (self.state, byte) {
            (State::ChunkSize { digits: 0, .. }, b'\n') => {
                return Err(Malformed("a chunk without a size"));
            }
            (State::ChunkSize { bytes: 0, .. }, b'\n') => State::Trailer { empty: true },
            (State::ChunkSize { bytes, .. }, b'\n') => State::Chunk(bytes),
            (State::ChunkSize { bytes, digits, over: false }, byte) => {
                match (byte as char).to_digit(16) {
                    Some(_) if digits == 15 => return Err(Malformed("a chunk beyond all sizes")),
                    Some(digit) => {
                        let bytes = bytes * 16 + u64::from(digit);
                        State::ChunkSize { bytes, digits: digits + 1, over: false }
                    }
                    None if matches!(byte, b'\r' | b';' | b' ') => {
                        State::ChunkSize { bytes, digits, over: true }
                    }
                    None => return Err(Malformed("a chunk's size that is no number")),
                }
            }
            (State::ChunkEnd, b'\r') => State::ChunkEnd,
            (State::ChunkEnd, b'\n') => State::ChunkSize { bytes: 0, digits: 0, over: false },
            (State::ChunkEnd, _) => return Err(Malformed("a chunk longer than its size")),
            (State::Trailer { empty: true }, b'\n') => State::Done,
            (State::Trailer { .. }, b'\n') => State::Trailer { empty: true },
            (State::Trailer { empty }, byte) => State::Trailer { empty: empty && byte == b'\r' },
            (state, _) => state,
        })
    }
}

fn split(bytes: &[u8], most: u64) -> (&[u8], &[u8]) {
    bytes.split_at(usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, body, and whether the connection may be kept, of an answer that comes in pieces of `size` bytes.
    fn read(answer: &[u8], size: usize, method: &str) -> Result<(u16, Vec<u8>, bool), Malformed> {
        let mut reader = AnswerReader::new();
        reader.begin(method, "/");
        assert!(reader.is_untouched());
        let mut done = false;
        for piece in answer.chunks(size) {
            assert!(!done, "it was whole before its end");
            done = reader.feed(piece)?;
        }
        assert!(done || reader.end(), "it is not whole");
        assert_eq!(reader.body_bytes, reader.body.len() as u64);
        Ok((reader.status, reader.body, reader.keeps))
    }

    fn every_way(answer: &[u8], method: &str) -> (u16, Vec<u8>, bool) {
        let whole = read(answer, answer.len(), method).unwrap();
        for size in 1..answer.len() {
            assert_eq!(read(answer, size, method).unwrap(), whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn a_length_says_where_the_body_ends() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Type: a\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(every_way(answer, "GET"), (200, b"hello".to_vec(), true));
        let empty = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        assert_eq!(every_way(empty, "GET"), (404, vec![], false));
    }

    #[test]
    fn the_beginning_is_kept_and_all_of_many_searches() {
        let body = vec![b'x'; 2 * KEPT_BYTES];
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        for (path, kept) in [("/a/_search", KEPT_BYTES), ("/a/_msearch", body.len())] {
            let mut reader = AnswerReader::new();
            reader.begin("POST", path);
            assert_eq!(reader.feed(&[head.as_bytes(), &body[..]].concat()), Ok(true));
            assert_eq!((reader.body.len(), reader.body_bytes), (kept, body.len() as u64));
        }
    }

    #[test]
    fn chunks_are_joined_and_their_extensions_and_trailers_left_out() {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n\
            5;name=1\r\nhello\r\n00A\r\n, world ab\r\n0\r\nX-Sum: 1\r\nY: \r\n\r\n";
        assert_eq!(every_way(answer, "GET"), (200, b"hello, world ab".to_vec(), true));
    }

    #[test]
    fn without_a_length_the_end_of_the_connection_is_the_end() {
        let answer = b"HTTP/1.1 200 OK\r\n\r\nhello";
        assert_eq!(every_way(answer, "GET"), (200, b"hello".to_vec(), false));
        let mut reader = AnswerReader::new();
        reader.begin("GET", "/");
        assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"), Ok(false));
        assert!(!reader.end(), "broken off");
    }

    #[test]
    fn answers_without_a_body() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
        assert_eq!(every_way(head, "HEAD"), (200, vec![], true));
        assert_eq!(every_way(b"HTTP/1.1 204 No Content\r\n\r\n", "DELETE"), (204, vec![], true));
        let interim =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\n{";
        assert_eq!(every_way(interim, "PUT"), (201, b"{".to_vec(), true));
    }

    #[test]
    fn old_versions_keep_a_connection_only_where_they_say_so() {
        let old = b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx";
        assert!(!every_way(old, "GET").2);
        let keeps = b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx";
        assert!(every_way(keeps, "GET").2);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let refused = |answer: &[u8]| read(answer, answer.len(), "GET").unwrap_err().0;
        assert_eq!(refused(b"SSH-2.0-x\r\n"), "no head of HTTP/1");
        assert!(refused(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n").contains("no number"));
        assert!(refused(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab").contains("more bytes"));
        let chunked = |body: &str| {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            refused(format!("{head}{body}").as_bytes())
        };
        assert!(chunked("x\r\n").contains("no number"));
        assert!(chunked("\r\n").contains("without a size"));
        assert!(chunked("2\r\nabc").contains("longer"));
        assert!(chunked("1111111111111111\r\n").contains("beyond"));
        let endless = vec![b'a'; 70 << 10];
        let head = [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &endless].concat();
        assert!(refused(&head).contains("64 KB"));
    }

    #[test]
    fn a_large_body_is_counted_and_not_kept() {
        let mut reader = AnswerReader::new();
        let scroll = ("/a/_search?scroll=10s", KEPT_OF_SCROLL_BYTES);
        for (path, kept_bytes) in [("/a/_search", KEPT_BYTES), scroll, ("/a/_search", KEPT_BYTES)] {
            reader.begin("GET", path);
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n";
            assert_eq!(reader.feed(head), Ok(false));
            for n in 0..400 {
                assert_eq!(reader.feed(&[b'x'; 1000]), Ok(n == 399));
            }
            assert_eq!((reader.body_bytes, reader.body.len()), (400_000, kept_bytes));
        }
    }
}
