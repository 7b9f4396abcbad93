//! Header fields: what belongs to one connection only is removed, what the balancer says is added.

use http::Version;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use schema::headers::{CONTAINER, REQUEST_ID, RESERVED_PREFIX};
use std::net::IpAddr;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const PROXY_AUTHENTICATE: HeaderName = HeaderName::from_static("proxy-authenticate");
const PROXY_AUTHORIZATION: HeaderName = HeaderName::from_static("proxy-authorization");
const PROXY_AUTHENTICATION_INFO: HeaderName = HeaderName::from_static("proxy-authentication-info");
const X_CONTAINER: HeaderName = HeaderName::from_static(CONTAINER);
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const REQUEST_ID_NAME: HeaderName = HeaderName::from_static(REQUEST_ID);
const VIA_VALUE: HeaderValue = HeaderValue::from_static("1.1 plumbline");
/// How every balancer ends its part of `Via`.
pub(crate) const VIA_NAME: &str = " plumbline";

/// Fields that belong to one connection only (RFC 9110, 7.6.1).
fn is_hop_by_hop(name: &HeaderName) -> bool {
    [
        CONNECTION,
        TRANSFER_ENCODING,
        TE,
        UPGRADE,
        TRAILER,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        PROXY_AUTHENTICATION_INFO,
    ]
    .contains(name)
}

/// Removes what is meant for one connection, whatever `Connection` names, and what only the balancer
/// may set. One pass over the names when none of it is there.
pub(crate) fn remove_foreign(headers: &mut HeaderMap) {
    let mut named = Vec::new();
    let mut found = false;
    for (name, value) in headers.iter() {
        found |= is_foreign(name);
        if *name == CONNECTION && !is_plain_connection(value) {
            let tokens = value.as_bytes().split(|b| *b == b',');
            named.extend(tokens.filter_map(|t| HeaderName::from_bytes(t.trim_ascii()).ok()));
        }
    }
    if !found {
        return;
    }
    // What frames or routes the message stays, whoever names it.
    for name in named
        .iter()
        .filter(|n| **n != HOST && **n != CONTENT_LENGTH)
    {
        headers.remove(name);
    }
    let foreign: Vec<HeaderName> = headers.keys().filter(|n| is_foreign(n)).cloned().collect();
    for name in foreign {
        headers.remove(name);
    }
}

fn is_foreign(name: &HeaderName) -> bool {
    is_hop_by_hop(name) || name.as_str().starts_with(RESERVED_PREFIX) || *name == X_CONTAINER
}

/// The usual values, which name no other field: they need no parsing.
fn is_plain_connection(value: &HeaderValue) -> bool {
    let value = value.as_bytes();
    value.eq_ignore_ascii_case(b"keep-alive") || value.eq_ignore_ascii_case(b"close")
}

/// Who sent a request, and whether what it says of earlier hops is believed.
pub(crate) struct Peer<'a> {
    pub(crate) address: IpAddr,
    pub(crate) version: Version,
    /// Peers whose `X-Forwarded-*` are believed.
    pub(crate) trusted: &'a [IpAddr],
}

/// Turns a client's fields into what the backend gets. `request_id` goes along exactly once; a body of
/// unknown length is framed anew.
pub(crate) fn for_backend(
    headers: &mut HeaderMap,
    peer: &Peer<'_>,
    request_id: &HeaderValue,
    is_chunked: bool,
) {
    let wants_trailers = headers.get_all(TE).iter().any(|value| {
        let mut tokens = value.as_bytes().split(|b| *b == b',');
        tokens.any(|t| t.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    });
    remove_foreign(headers);
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if is_chunked {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    // The library has answered or will answer `100-continue` itself.
    headers.remove(EXPECT);
    forwarded(headers, peer);
    let via = if peer.version == Version::HTTP_10 {
        "1.0 plumbline"
    } else {
        "1.1 plumbline"
    };
    headers.append(VIA, HeaderValue::from_static(via));
    headers.insert(REQUEST_ID_NAME, request_id.clone());
}

fn forwarded(headers: &mut HeaderMap, peer: &Peer<'_>) {
    let trusted = peer.trusted.contains(&peer.address);
    let own = peer.address.to_string();
    let earlier = headers.get_all(FORWARDED_FOR).iter();
    let chain: Vec<&[u8]> = earlier
        .filter(|_| trusted)
        .map(HeaderValue::as_bytes)
        .chain([own.as_bytes()])
        .collect();
    if let Ok(chain) = HeaderValue::from_bytes(&chain.join(&b", "[..])) {
        headers.insert(FORWARDED_FOR, chain);
    }
    if !(trusted && headers.contains_key(FORWARDED_PROTO)) {
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static("http"));
    }
    if !(trusted && headers.contains_key(FORWARDED_HOST))
        && let Some(host) = headers.get(HOST).cloned()
    {
        headers.insert(FORWARDED_HOST, host);
    }
}

/// Turns a backend's fields into what the client gets.
pub(crate) fn for_client(headers: &mut HeaderMap) {
    remove_foreign(headers);
    headers.remove(REQUEST_ID_NAME);
    headers.append(VIA, VIA_VALUE);
}

/// The client's request id if it is a safe one (1 to 128 of `[A-Za-z0-9._-]`).
pub(crate) fn safe_request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut given = headers.get_all(REQUEST_ID_NAME).iter();
    let id = given.next().filter(|_| given.next().is_none())?;
    let safe = |b: &u8| b.is_ascii_alphanumeric() || b"._-".contains(b);
    ((1..=128).contains(&id.len()) && id.as_bytes().iter().all(safe)).then(|| id.clone())
}

#[cfg(test)]
mod tests {
    use super::{Peer, for_backend, remove_foreign, safe_request_id};
    use http::header::{HeaderName, HeaderValue};
    use http::{HeaderMap, Version};

    fn map(fields: &[(&str, &str)]) -> HeaderMap {
        let pair = |(n, v): &(&str, &str)| {
            (
                n.parse::<HeaderName>().unwrap(),
                v.parse::<HeaderValue>().unwrap(),
            )
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(pair) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn fields_named_by_connection_go_with_it() {
        let mut headers = map(&[
            ("host", "h"),
            ("connection", "close, X-Foo ,host"),
            ("connection", "x-baz, content-length"),
            ("content-length", "5"),
            ("x-foo", "1"),
            ("x-foo", "2"),
            ("x-baz", "1"),
            ("te", "gzip"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "secret"),
            ("proxy-authenticate", "basic"),
            ("trailer", "x-t"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("x-plumbline-reason", "forged"),
            ("x-container", "forged"),
            ("x-bar", "2"),
        ]);
        remove_foreign(&mut headers);
        let kept = [("host", "h"), ("content-length", "5"), ("x-bar", "2")];
        assert_eq!(headers, map(&kept));
    }

    #[test]
    fn a_backend_sees_the_peer_and_no_forged_names() {
        let client = map(&[
            ("host", "h"),
            ("x-forwarded-for", "9.9.9.9"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "shop"),
            ("x-plumbline-decision", "container=a"),
            ("x-request-id", "one"),
            ("x-request-id", "two"),
            ("te", "trailers, gzip"),
            ("expect", "100-continue"),
        ]);
        let address = [127, 0, 0, 1].into();
        let seen = |trusted: &[std::net::IpAddr], version, is_chunked| {
            let mut headers = client.clone();
            let peer = Peer {
                address,
                version,
                trusted,
            };
            let id = HeaderValue::from_static("id");
            for_backend(&mut headers, &peer, &id, is_chunked);
            headers
        };
        let expected = map(&[
            ("host", "h"),
            ("te", "trailers"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-host", "h"),
            ("via", "1.1 plumbline"),
            ("x-request-id", "id"),
        ]);
        assert_eq!(seen(&[], Version::HTTP_11, false), expected);
        let expected = map(&[
            ("host", "h"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("x-forwarded-for", "9.9.9.9, 127.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "shop"),
            ("via", "1.0 plumbline"),
            ("x-request-id", "id"),
        ]);
        assert_eq!(seen(&[address], Version::HTTP_10, true), expected);
    }

    #[test]
    fn only_one_safe_request_id_is_kept() {
        assert!(safe_request_id(&map(&[("x-request-id", "b01-a1.7_x")])).is_some());
        for bad in [
            vec![],
            vec![("x-request-id", "a b")],
            vec![("x-request-id", "a"), ("x-request-id", "b")],
        ] {
            assert!(safe_request_id(&map(&bad)).is_none(), "{bad:?}");
        }
        assert!(safe_request_id(&map(&[("x-request-id", &"x".repeat(129))])).is_none());
    }
}
