//! What a host answered: whether it is the cluster's answer, and what a refusal says.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::questions::allowed_by;
use crate::error::shown;
use crate::http::{Address, error_in, is_idempotent};
use crate::reading::changes_nothing;
use crate::{Error, Result};

/// How much of an answer that is no JSON is shown.
const SHOWN_CHARS: usize = 60;
/// What a node without a manager says before it does anything, or hands anything on.
const BLOCKED: &str = "cluster_block_exception";

/// The body of an answer that says yes; `sent` is the kind of credentials that were sent.
pub(super) fn judge(
    sent: &'static str,
    address: &Address,
    method: &str,
    path: &str,
    status: u16,
    body: Bytes,
) -> Result<Bytes> {
    if (200..300).contains(&status) {
        return Ok(body);
    }
    let (kind, reason) = error_in(&body);
    // A gateway answers for a cluster that may be at it, or have done it.
    let may_be_done = status >= 500 && kind != BLOCKED && !changes_nothing(method, path);
    let doubt = if may_be_done { "; it may have been done all the same" } else { "" };
    let html = looks_like_html(&body).then(|| {
        format!(
            "a page of HTML ({}): a proxy or another server is there; give the address of a node, or the path that \
             the proxy forwards{doubt}",
            excerpt(&body)
        )
    });
    match (status, html) {
        // Amazon's service answers so to whoever asks for what it offers to nobody, whatever the credentials.
        (401, _)
            if !(reason.starts_with("Your request: ") && reason.contains("is not allowed")) =>
        {
            Err(Error::Unauthorized { address: address.to_string(), sent, reason })
        }
        (403, _) => Err(Error::Forbidden {
            method: method.to_owned(),
            path: path.to_owned(),
            reason,
            needs: allowed_by(method, path),
        }),
        (300..=399, _) => Err(Error::Peer {
            address: address.to_string(),
            why: format!(
                "answered {} with {status}: it leads elsewhere, and no credentials are sent there; a proxy or a \
                 page to sign in is there: give the address of a node, or what `curl -I` shows as location",
                shown(path)
            ),
        }),
        // Another host may be asked the same.
        (_, Some(page)) if !may_be_done || is_idempotent(method) => Err(Error::Peer {
            address: address.to_string(),
            why: format!("answered {} with {status} and {page}", shown(path)),
        }),
        (_, page) => Err(Error::Refused {
            method: method.to_owned(),
            path: path.to_owned(),
            status,
            kind,
            reason: page.unwrap_or_else(|| reason + doubt),
        }),
    }
}

/// Whether a request that was answered so, or not at all, may succeed at another host. One that may have been carried
/// out goes there only if it has the same effect twice as once: a bulk request would index its documents twice.
pub(super) fn is_worth_another_host(error: &Error, method: &str, path: &str) -> bool {
    match error {
        Error::Connection { .. } | Error::Peer { .. } | Error::Refused { status: 429, .. } => true,
        Error::Refused { status: 503, kind, .. } if kind == BLOCKED => true,
        Error::Timeout { .. } | Error::Broken { .. } | Error::Refused { status: 502..=504, .. } => {
            is_idempotent(method) || changes_nothing(method, path)
        }
        _ => false,
    }
}

/// Whether it is known what comes of a change that was answered so: it was made, or is not made later either. Whoever
/// stands before the cluster may answer before it does.
pub(super) fn is_known(answer: &Result<Bytes>) -> bool {
    match answer {
        Ok(body) => !looks_like_html(body),
        Err(
            Error::Refused { status: 400 | 401 | 429, .. }
            | Error::Forbidden { .. }
            | Error::Unauthorized { .. },
        ) => true,
        Err(_) => false,
    }
}

/// An empty body is read as `null`.
pub(super) fn json_of<T: DeserializeOwned>(path: &str, body: &Bytes) -> Result<T> {
    let text: &[u8] = if body.is_empty() { b"null" } else { body };
    serde_json::from_slice(text).map_err(|error| {
        let reason = if looks_like_html(body) {
            format!(
                "a page of HTML ({}): a proxy or another server answers there; give the address of a node",
                excerpt(body)
            )
        } else {
            format!("{error}; it begins with \"{}\"", excerpt(body))
        };
        Error::NotJson { path: path.to_owned(), reason }
    })
}

fn looks_like_html(body: &[u8]) -> bool {
    let start = body.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(0);
    body.get(start) == Some(&b'<')
}

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN_CHARS)]);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect()
}
