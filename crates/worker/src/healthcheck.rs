//! `worker healthcheck`: one GET by hand, since images have no other HTTP client.

use anyhow::{Context, bail};
use schema::problem::{Problem, Problems};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Bytes of the answer that are read; its first line is what counts.
const MAX_ANSWER_BYTES: u64 = 4096;

/// Asks `url`; good if the answer is 200.
///
/// # Errors
/// A malformed URL, no connection, no whole answer within `timeout`, another status.
pub(crate) fn run(url: &str, timeout: Duration) -> anyhow::Result<()> {
    let (authority, path) = split(url)?;
    let (sender, asked) = sync_channel(1);
    let name = authority.clone();
    // Looking a name up knows no limit, and an answer may come byte by byte: the thread is left behind.
    std::thread::spawn(move || sender.send(ask(&authority, &path, timeout)));
    asked
        .recv_timeout(timeout)
        .unwrap_or_else(|_| bail!("{name}: no answer within {timeout:?}"))
}

fn ask(authority: &str, path: &str, timeout: Duration) -> anyhow::Result<()> {
    let address = authority
        .to_socket_addrs()
        .with_context(|| format!("{authority}: no such address"))?
        .next()
        .with_context(|| format!("{authority}: no such address"))?;
    let mut stream = TcpStream::connect_timeout(&address, timeout)
        .with_context(|| format!("{authority}: no connection"))?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let head = format!("GET {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    stream
        .take(MAX_ANSWER_BYTES)
        .read_to_end(&mut answer)
        .with_context(|| format!("{authority}: no answer"))?;
    let line = String::from_utf8_lossy(&answer);
    let line = line.lines().next().unwrap_or_default();
    if line.split(' ').nth(1) != Some("200") {
        bail!("{authority}{path}: not healthy: \"{line}\"");
    }
    Ok(())
}

/// `host:port` and path of a plain HTTP URL.
fn split(url: &str) -> Result<(String, String), Problems> {
    let problem = || {
        Problems::from(
            Problem::new("--url", url, "not an address of a worker")
                .allowed("http://HOST:PORT or http://HOST:PORT/PATH"),
        )
    };
    let rest = url.strip_prefix("http://").ok_or_else(problem)?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, "healthz"));
    let port = authority
        .rsplit_once(':')
        .map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(1..))) || url.bytes().any(|b| b <= b' ' || b == 0x7f) {
        return Err(problem());
    }
    let path = if path.is_empty() { "healthz" } else { path };
    Ok((authority.to_string(), format!("/{path}")))
}

#[cfg(test)]
mod tests {
    use super::{run, split};
    use std::io::Write as _;
    use std::time::Duration;

    #[test]
    fn an_answer_that_trickles_is_no_answer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            while stream.write_all(b"H").is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let error = run(&url, Duration::from_millis(200)).expect_err("no end");
        assert!(
            error.to_string().contains("no answer within 200ms"),
            "{error}"
        );
    }

    #[test]
    fn a_url_without_a_path_means_healthz() {
        let healthz = Ok(("h:1".to_string(), "/healthz".to_string()));
        for url in ["http://h:1", "http://h:1/", "http://h:1/healthz"] {
            assert_eq!(split(url), healthz, "{url}");
        }
        for bad in [
            "h:1",
            "https://h:1",
            "http://h",
            "http://h:0",
            "http://h:1/a b",
        ] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }
}
