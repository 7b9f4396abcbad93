//! Where requests go.

use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::Context;
use http::{HeaderValue, Uri};
use schema::problem::Problem;

/// A checked `http://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// As the user gave it, for messages.
    pub(crate) url: String,
    /// The `host` field of every request.
    pub(crate) authority: HeaderValue,
    host: String,
    port: u16,
}

impl Target {
    /// Reads a target.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(url: &str) -> Result<Self, Box<Problem>> {
        let wrong =
            |what: &str| Box::new(Problem::new("--target", url, what).allowed("http://HOST:PORT"));
        let uri: Uri = url.parse().map_err(|_| wrong("not a URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong("the scheme must be http"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("user names are not supported"));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong("paths come from the workload"));
        }
        let host = authority.host().trim_matches(['[', ']']);
        if host.is_empty() {
            return Err(wrong("no host"));
        }
        let port = match authority.as_str().strip_prefix(authority.host()) {
            None | Some("") => Some(80),
            // The library says "no port" for one that is too large.
            Some(rest) => rest[1..].parse::<u16>().ok().filter(|p| *p > 0),
        };
        Ok(Self {
            url: url.to_string(),
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| wrong("bad host"))?,
            host: host.to_string(),
            port: port.ok_or_else(|| wrong("the port must be 1 to 65535"))?,
        })
    }

    /// The first address of the host that accepts a connection.
    ///
    /// # Errors
    /// The name has no address, or none accepts.
    pub(crate) async fn reach(&self) -> anyhow::Result<SocketAddr> {
        let addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .with_context(|| format!("cannot resolve {}", self.url))?;
        let mut refusal = anyhow::anyhow!("no address");
        for address in addresses {
            match tokio::net::TcpStream::connect(address).await {
                Ok(_probe) => return Ok(address),
                Err(e) => refusal = e.into(),
            }
        }
        Err(refusal.context(format!(
            "cannot connect to {}: is the balancer running?",
            self.url
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn only_plain_http_without_a_path_is_a_target() {
        assert_eq!(Target::parse("http://[::1]:80/").map(|t| t.port), Ok(80));
        assert_eq!(Target::parse("http://localhost").map(|t| t.port), Ok(80));
        for bad in [
            "",
            "localhost:80",
            "https://a:1",
            "http://a:0",
            "http://a:70000",
            "http://a/b",
            "http://a:1/?q",
            "http://u@a:1",
            "http://:80",
            "http://a b",
            "ftp://a:1",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }
}
