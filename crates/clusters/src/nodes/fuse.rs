//! As much of the kernel's FUSE protocol as a directory with two files needs (`include/uapi/linux/fuse.h`, 7.31):
//! requests and answers as bytes, in this machine's order. Pure.

use rustix::io::Errno;

/// Bytes that one request reads or writes at most.
pub(super) const TRANSFER_BYTES_MAX: u32 = 1 << 20;
/// A request is no longer than this.
pub(super) const REQUEST_BYTES_MAX: usize = TRANSFER_BYTES_MAX as usize + 4096;

const VERSION: (u32, u32) = (7, 31);
/// `fuse_in_header`.
const HEAD_BYTES: usize = 40;
/// `fuse_write_in`, behind which the bytes come.
const WRITE_BYTES: usize = 40;
/// `FUSE_ASYNC_READ`, `FUSE_BIG_WRITES`, `FUSE_ASYNC_DIO` and `FUSE_MAX_PAGES`.
const WANTED: u32 = 1 | 1 << 5 | 1 << 15 | 1 << 22;
/// Nothing of a file is kept by the kernel (`FOPEN_DIRECT_IO`).
const OPEN_DIRECT: u32 = 1;
/// Seconds for which the kernel may keep the attributes of a file: nobody else changes them.
const VALID_S: u64 = 86_400;
const PAGE_BYTES: u32 = 4096;

/// What the kernel asks for. A file is named by its number; 1 is the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked<'a> {
    /// Which of its features are used.
    Begin {
        offered: u32,
    },
    /// The number of a file in the directory.
    Find {
        name: &'a [u8],
    },
    /// The attributes of a file: they are asked for, or are to be changed, which is answered with them unchanged.
    Describe,
    Open,
    Read {
        offset: u64,
        bytes: u32,
    },
    Write {
        offset: u64,
        bytes: &'a [u8],
    },
    /// What wants no answer.
    Nothing,
    /// What there is not.
    Other,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    id: u64,
    pub(super) file: u64,
    pub(super) asked: Asked<'a>,
}

/// What a file is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Described {
    pub(super) file: u64,
    pub(super) bytes: u64,
    pub(super) is_directory: bool,
}

impl<'a> Request<'a> {
    /// Reads one; none where it is cut short.
    pub(super) fn of(request: &'a [u8]) -> Option<Request<'a>> {
        let body = request.get(HEAD_BYTES..)?;
        let asked = match number(request, 4)? {
            1 => Asked::Find { name: body.split(|byte| *byte == 0).next()? },
            3 | 4 => Asked::Describe,
            14 => Asked::Open,
            15 => Asked::Read { offset: long(body, 8)?, bytes: number(body, 16)? },
            16 => {
                let bytes = body.get(WRITE_BYTES..)?.get(..number(body, 16)? as usize)?;
                Asked::Write { offset: long(body, 8)?, bytes }
            }
            26 => Asked::Begin { offered: number(body, 12)? },
            // The kernel forgets a file or several, or interrupts a request: none of them has an answer.
            2 | 36 | 42 => Asked::Nothing,
            _ => Asked::Other,
        };
        Some(Request { id: long(request, 8)?, file: long(request, 16)?, asked })
    }

    /// The answer to a refused request.
    pub(super) fn refuse(&self, why: Errno) -> Vec<u8> {
        self.answer(-why.raw_os_error(), &[])
    }

    /// The answer with these bytes.
    pub(super) fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.answer(0, bytes)
    }

    /// The answer to [`Asked::Begin`].
    pub(super) fn begun(&self, offered: u32) -> Vec<u8> {
        let ((major, minor), pages) = (VERSION, (TRANSFER_BYTES_MAX / PAGE_BYTES) as u16);
        let mut out = Vec::with_capacity(64);
        // Bytes that are read ahead; requests under way of which nobody waits, and how many are many.
        for number in [major, minor, TRANSFER_BYTES_MAX, WANTED & offered] {
            out.extend(number.to_ne_bytes());
        }
        for short in [64_u16, 48] {
            out.extend(short.to_ne_bytes());
        }
        // Bytes that are written at once, and the grain of times in nanoseconds.
        for number in [TRANSFER_BYTES_MAX, 1] {
            out.extend(number.to_ne_bytes());
        }
        out.extend(pages.to_ne_bytes());
        out.resize(64, 0);
        self.bytes(&out)
    }

    /// The answer to [`Asked::Find`].
    pub(super) fn found(&self, found: Described) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        for long in [found.file, 0, VALID_S, VALID_S, 0] {
            out.extend(long.to_ne_bytes());
        }
        found.write(&mut out);
        self.bytes(&out)
    }

    /// The answer to [`Asked::Describe`].
    pub(super) fn described(&self, described: Described) -> Vec<u8> {
        let mut out = Vec::with_capacity(104);
        out.extend(VALID_S.to_ne_bytes());
        out.extend([0; 8]);
        described.write(&mut out);
        self.bytes(&out)
    }

    /// The answer to [`Asked::Open`].
    pub(super) fn opened(&self) -> Vec<u8> {
        let mut out = vec![0; 8];
        out.extend(OPEN_DIRECT.to_ne_bytes());
        out.extend([0; 4]);
        self.bytes(&out)
    }

    /// The answer to [`Asked::Write`] whose bytes were all taken.
    pub(super) fn written(&self, bytes: usize) -> Vec<u8> {
        let mut out = (bytes as u32).to_ne_bytes().to_vec();
        out.extend([0; 4]);
        self.bytes(&out)
    }

    fn answer(&self, error: i32, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + body.len());
        out.extend((16 + body.len() as u32).to_ne_bytes());
        out.extend(error.to_ne_bytes());
        out.extend(self.id.to_ne_bytes());
        out.extend(body);
        out
    }
}

impl Described {
    /// `fuse_attr`.
    fn write(&self, out: &mut Vec<u8>) {
        let times = [0; 3];
        for long in [self.file, self.bytes, self.bytes.div_ceil(512)].iter().chain(&times) {
            out.extend(long.to_ne_bytes());
        }
        let (kind, links) = if self.is_directory { (0o040_700, 2) } else { (0o100_600, 1) };
        // Three parts of times, mode, links, user, group, device, block size, flags.
        for number in [0, 0, 0, kind, links, 0, 0, 0, PAGE_BYTES, 0] {
            out.extend(u32::to_ne_bytes(number));
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `fuse_in_header`, and what follows it.
    fn request(opcode: u32, file: u64, body: &[u8]) -> Vec<u8> {
        let mut out = (40 + body.len() as u32).to_ne_bytes().to_vec();
        out.extend(opcode.to_ne_bytes());
        out.extend(7_u64.to_ne_bytes());
        out.extend(file.to_ne_bytes());
        // User, group, process, and what is not used.
        out.extend([0; 16]);
        out.extend(body);
        out
    }

    /// `fuse_read_in` and `fuse_write_in` begin alike.
    fn transfer(offset: u64, bytes: u32, data: &[u8]) -> Vec<u8> {
        let mut out = 9_u64.to_ne_bytes().to_vec();
        out.extend(offset.to_ne_bytes());
        out.extend(bytes.to_ne_bytes());
        out.extend([0; 20]);
        out.extend(data);
        out
    }

    #[test]
    fn requests_are_read_as_the_kernel_writes_them() {
        let asked = |opcode: u32, body: &[u8]| {
            let bytes = request(opcode, 2, body);
            let request = Request::of(&bytes).unwrap();
            assert_eq!((request.id, request.file), (7, 2));
            format!("{:?}", request.asked)
        };
        let is = |asked: Asked<'_>| format!("{asked:?}");
        assert_eq!(asked(1, b"image\0"), is(Asked::Find { name: b"image" }));
        let read = Asked::Read { offset: 4096, bytes: 512 };
        assert_eq!(asked(15, &transfer(4096, 512, &[])), is(read));
        let write = Asked::Write { offset: 4096, bytes: b"four" };
        assert_eq!(asked(16, &transfer(4096, 4, b"four")), is(write));
        for (opcode, what) in [(14, Asked::Open), (3, Asked::Describe), (2, Asked::Nothing)] {
            assert_eq!(asked(opcode, &[]), is(what));
        }
        assert_eq!(asked(17, &[]), is(Asked::Other));
    }

    #[test]
    fn a_request_that_is_cut_short_is_none() {
        let whole = request(16, 2, &transfer(0, 4, b"four"));
        assert!(Request::of(&whole).is_some());
        for bytes in 0..whole.len() {
            assert_eq!(Request::of(&whole[..bytes]), None, "{bytes}");
        }
    }

    #[test]
    fn answers_have_the_sizes_and_the_head_that_the_kernel_expects() {
        let bytes = request(26, 1, &[0; 64]);
        let request = Request::of(&bytes).unwrap();
        let image = Described { file: 2, bytes: 1 << 20, is_directory: false };
        let answers = [
            (request.begun(u32::MAX), 64),
            (request.found(image), 128),
            (request.described(image), 104),
            (request.opened(), 16),
            (request.written(512), 8),
            (request.bytes(b"four"), 4),
        ];
        for (answer, body) in answers {
            assert_eq!(answer.len(), 16 + body);
            assert_eq!(number(&answer, 0), Some(16 + body as u32));
            assert_eq!((number(&answer, 4), long(&answer, 8)), (Some(0), Some(7)));
        }
        let refused = request.refuse(Errno::NOENT);
        assert_eq!(number(&refused, 4), Some(-2_i32 as u32));
    }
}
