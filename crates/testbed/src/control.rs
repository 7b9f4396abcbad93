//! What the testbed asks of a running balancer and its workers over their admin listeners.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use reqwest::{Client, StatusCode};
use schema::problem::printable;
use schema::stats::Stats;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Longest wait for an answer of an admin listener.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Longest answer of an admin listener or a statistics page that is read, bytes.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Pause between two looks at a state that is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Where one worker can be reached from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkerAddress {
    pub(crate) name: String,
    /// Base URL of its traffic listener, which serves `/stats` too.
    pub(crate) url: String,
    /// Base URL of its admin listener.
    pub(crate) admin: String,
}

/// Where everything can be reached from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// Base URL of the balancer's traffic listener.
    pub(crate) balancer: String,
    /// Base URL of its admin listener.
    pub(crate) admin: String,
    pub(crate) workers: Vec<WorkerAddress>,
}

/// CPU and memory of one worker as the engine or the process table tells them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Usage {
    pub(crate) backend: String,
    /// 100 = one core; of an emulated worker as if it executed all of its work.
    pub(crate) cpu_percent: f64,
    pub(crate) memory_used_bytes: u64,
}

/// A client of the admin listeners.
#[derive(Debug, Clone)]
pub(crate) struct Control {
    client: Client,
    addresses: Addresses,
}

impl Control {
    pub(crate) fn new(addresses: Addresses) -> anyhow::Result<Self> {
        let client = Client::builder()
            .timeout(ANSWER_LIMIT)
            .no_proxy()
            .build()
            .context("cannot make an HTTP client")?;
        Ok(Self { client, addresses })
    }

    pub(crate) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Waits until the balancer says it is ready.
    pub(crate) async fn ready(&self, limit: Duration) -> anyhow::Result<()> {
        let url = format!("{}/readyz", self.addresses.admin);
        let deadline = Instant::now() + limit;
        loop {
            let answer = self.client.get(&url).send().await;
            let reason = match answer {
                Ok(answer) if answer.status() == StatusCode::OK => return Ok(()),
                Ok(answer) => read_text(answer).await.unwrap_or_default(),
                Err(error) => format!("{:#}", anyhow::Error::from(error)),
            };
            if Instant::now() > deadline {
                bail!(
                    "the balancer is not ready after {} s: {}",
                    limit.as_secs(),
                    reason.trim()
                );
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Gives the balancer a fresh dispatcher with this strategy and starts a new event log.
    pub(crate) async fn reset_balancer(
        &self,
        strategy: &str,
        seed: u64,
        event_log: &str,
    ) -> anyhow::Result<()> {
        let order = serde_json::json!({
            "strategy": strategy, "seed": seed, "event_log": event_log
        });
        self.post(&self.addresses.admin, "/api/reset", &order)
            .await
            .with_context(|| format!("the balancer refused to start over with {strategy}"))
    }

    /// Clears every worker's window and counters.
    pub(crate) async fn reset_workers(&self) -> anyhow::Result<()> {
        for worker in &self.addresses.workers {
            self.post(&worker.admin, "/api/reset", &Value::Null)
                .await
                .with_context(|| format!("worker {} refused to start over", worker.name))?;
        }
        Ok(())
    }

    /// Lets the balancer send new requests to `name` and to no other backend.
    pub(crate) async fn only(&self, name: &str) -> anyhow::Result<()> {
        // First the one that may be used: there is always somebody.
        self.post(
            &self.addresses.admin,
            &format!("/api/backends/{name}/undrain"),
            &Value::Null,
        )
        .await?;
        let others = self.addresses.workers.iter().filter(|w| w.name != name);
        for other in others {
            let path = format!("/api/backends/{}/drain", other.name);
            self.post(&self.addresses.admin, &path, &Value::Null)
                .await?;
        }
        Ok(())
    }

    /// Hands CPU and memory of the workers to the balancer.
    pub(crate) async fn report(&self, usage: &[Usage]) -> anyhow::Result<()> {
        self.post(&self.addresses.admin, "/api/reports", &usage)
            .await
    }

    /// Requests in flight at the balancer, by backend.
    pub(crate) async fn in_flight(&self) -> anyhow::Result<Vec<(String, u64)>> {
        let backends: Value = self.get(&self.addresses.admin, "/api/backends").await?;
        let list = backends
            .as_array()
            .or_else(|| backends.get("backends")?.as_array())
            .context("/api/backends is no list")?;
        list.iter()
            .map(|backend| {
                let name = backend.get("name").and_then(Value::as_str);
                let in_flight = backend.get("in_flight").and_then(Value::as_u64);
                Ok((
                    name.context("a backend without a name")?.to_string(),
                    in_flight.context("a backend without in_flight")?,
                ))
            })
            .collect()
    }

    /// What every worker says of itself, in order.
    pub(crate) async fn worker_stats(&self) -> anyhow::Result<Vec<Stats>> {
        let mut all = Vec::new();
        for worker in &self.addresses.workers {
            let stats = self.get(&worker.url, "/stats").await;
            all.push(stats.with_context(|| format!("worker {} does not answer", worker.name))?);
        }
        Ok(all)
    }

    /// Waits until nothing is in flight anywhere; what still is, when that takes too long.
    pub(crate) async fn drained(&self, limit: Duration) -> anyhow::Result<Vec<String>> {
        let deadline = Instant::now() + limit;
        loop {
            let mut busy: Vec<String> = Vec::new();
            for (name, n) in self.in_flight().await?.into_iter().filter(|(_, n)| *n > 0) {
                busy.push(format!("balancer in_flight of {name} = {n}"));
            }
            for stats in self
                .worker_stats()
                .await?
                .iter()
                .filter(|s| s.active_requests > 0)
            {
                busy.push(format!(
                    "worker {} active_requests = {}",
                    stats.container, stats.active_requests
                ));
            }
            if busy.is_empty() || Instant::now() > deadline {
                return Ok(busy);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn post(&self, base: &str, path: &str, body: &impl Serialize) -> anyhow::Result<()> {
        let url = format!("{base}{path}");
        let mut request = self.client.post(&url);
        let body = serde_json::to_value(body)?;
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request
            .send()
            .await
            .with_context(|| format!("POST {url}"))?;
        let status = answer.status();
        if !status.is_success() {
            let text = read_text(answer).await.unwrap_or_default();
            bail!("POST {url}: {status}: {}", text.trim());
        }
        Ok(())
    }

    async fn get<T: DeserializeOwned>(&self, base: &str, path: &str) -> anyhow::Result<T> {
        let url = format!("{base}{path}");
        let answer = self.client.get(&url).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        let answer = answer.with_context(|| format!("GET {url}"))?;
        let text = read_text(answer)
            .await
            .with_context(|| format!("GET {url}"))?;
        serde_json::from_str(&text)
            .with_context(|| format!("GET {url}: unexpected answer {}", printable(&text)))
    }
}

/// The body of an answer, given up as soon as it is too long, whatever length its head tells.
async fn read_text(mut answer: reqwest::Response) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await? {
        if bytes.len() + part.len() > MAX_ANSWER_BYTES {
            bail!("the answer is above {MAX_ANSWER_BYTES} bytes");
        }
        bytes.extend_from_slice(&part);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Addresses, Control, WorkerAddress};
    use std::io::{Read as _, Write as _};

    #[tokio::test]
    async fn an_answer_without_an_end_is_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
            let mut sent = stream.write_all(head.as_bytes());
            while sent.is_ok() {
                sent = stream.write_all(chunk.as_bytes());
            }
        });
        let worker = WorkerAddress {
            name: "a".into(),
            url: url.clone(),
            admin: url.clone(),
        };
        let addresses = Addresses {
            balancer: url.clone(),
            admin: url,
            workers: vec![worker],
        };
        let error = Control::new(addresses)
            .unwrap()
            .worker_stats()
            .await
            .unwrap_err();
        assert!(format!("{error:#}").contains("above"), "{error:#}");
    }
}
