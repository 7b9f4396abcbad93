//! What a request is keyed by, and the hashes of keys.

use crate::registry::{Kind, Parameter, Spec, Value};
use crate::values::Request;
use std::io::Write as _;
use std::net::IpAddr;

/// The parameter `key`.
pub(super) const PARAMETER: Parameter = Parameter {
    name: "key",
    kind: Kind::Key,
    or: &[],
    default: "url",
    summary: "what a request is keyed by; without it, by weight in turn",
};

/// What a request is keyed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Url,
    Path,
    ClientIp,
    ClientNet,
    Header,
}

/// Room for a key that is not a piece of the request: an address as text.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyRoom(Vec<u8>);

impl Key {
    pub(super) fn of(spec: &Spec) -> Self {
        match spec.value("key") {
            Some(Value::Word(word)) => match word.as_str() {
                "path" => Self::Path,
                "client-ip" => Self::ClientIp,
                "client-net" => Self::ClientNet,
                "url" => Self::Url,
                _ => Self::Header,
            },
            _ => Self::Url,
        }
    }

    /// The request's key; `None` if it has none.
    pub(super) fn in_request<'a>(
        self,
        request: &Request<'a>,
        room: &'a mut KeyRoom,
    ) -> Option<&'a [u8]> {
        let text = match self {
            Self::Url => Some(request.url),
            Self::Path => request.url.split('?').next(),
            Self::Header => request.key_header,
            Self::ClientIp | Self::ClientNet => {
                let address = request.client?.to_canonical();
                room.0.clear();
                let written = match address {
                    IpAddr::V4(v4) if self == Self::ClientNet => {
                        let [a, b, c, _] = v4.octets();
                        write!(room.0, "{a}.{b}.{c}")
                    }
                    other => write!(room.0, "{other}"),
                };
                return written.is_ok().then_some(room.0.as_slice());
            }
        };
        text.filter(|t| !t.is_empty()).map(str::as_bytes)
    }
}

/// XXH64 of several pieces one after the other.
pub(super) fn hash64(seed: u64, pieces: &[&[u8]]) -> u64 {
    use std::hash::Hasher as _;
    if let [one] = pieces {
        return twox_hash::XxHash64::oneshot(seed, one);
    }
    let mut hasher = twox_hash::XxHash64::with_seed(seed);
    for piece in pieces {
        hasher.write(piece);
    }
    hasher.finish()
}

/// IEEE CRC-32 of several pieces one after the other.
pub(super) fn crc32(pieces: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for piece in pieces {
        hasher.update(piece);
    }
    hasher.finalize()
}
