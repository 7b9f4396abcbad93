//! A scripted backend.

use super::{fields, read_head};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as the backend saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
}

/// What a backend does with a request.
pub(crate) enum Act {
    /// Sends these bytes and goes on.
    Answer(Vec<u8>),
    /// Sends these bytes and closes.
    AnswerAndClose(Vec<u8>),
    /// Sends these bytes, then resets the connection.
    AnswerAndReset(Vec<u8>),
    /// Never answers; ends when the balancer closes.
    Hang,
}

/// A 200 with this body.
pub(crate) fn ok(body: &str) -> Act {
    let length = body.len();
    Act::Answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes())
}

type Script = Arc<dyn Fn(&Seen) -> Act + Send + Sync>;

/// A scripted backend on a port of its own.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    play: Arc<Play>,
}

/// What a backend does, and what was done to it.
struct Play {
    script: Script,
    stats: Script,
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    stats_connections: AtomicUsize,
    hanging: AtomicUsize,
}

impl Backend {
    pub(crate) fn start(script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Self {
        let none = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        Self::telling(|_| Act::Answer(none.into()), script)
    }

    /// One that answers its statistics page by a script of its own.
    pub(crate) fn telling(
        stats: impl Fn(&Seen) -> Act + Send + Sync + 'static,
        script: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let play = Arc::new(Play {
            script: Arc::new(script),
            stats: Arc::new(stats),
            seen: Mutex::default(),
            connections: AtomicUsize::default(),
            stats_connections: AtomicUsize::default(),
            hanging: AtomicUsize::default(),
        });
        let backend = Self {
            address,
            play: Arc::clone(&play),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let play = Arc::clone(&play);
                std::thread::spawn(move || play.serve(stream.unwrap()));
            }
        });
        backend
    }

    /// Requests seen, statistics polls left out.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.play.seen.lock().unwrap().clone()
    }

    /// Connections that carried requests.
    pub(crate) fn connections(&self) -> usize {
        self.play.connections.load(Ordering::SeqCst)
    }

    /// Connections that carried questions for statistics.
    pub(crate) fn stats_connections(&self) -> usize {
        self.play.stats_connections.load(Ordering::SeqCst)
    }

    /// Requests and questions being hung.
    pub(crate) fn hanging(&self) -> usize {
        self.play.hanging.load(Ordering::SeqCst)
    }
}

impl Play {
    fn serve(&self, mut stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let (mut number, mut stats_number) = (None, None);
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        loop {
            let head = read_head(&mut reader);
            if head.is_empty() {
                return;
            }
            let is_stats = head.starts_with("GET /stats ");
            let Some(body) = read_body(&mut reader, &head) else {
                return;
            };
            let (number, counter) = if is_stats {
                (&mut stats_number, &self.stats_connections)
            } else {
                (&mut number, &self.connections)
            };
            let connection = *number.get_or_insert_with(|| counter.fetch_add(1, Ordering::SeqCst));
            let request = Seen {
                head,
                body,
                connection,
            };
            let act = if is_stats {
                (self.stats)(&request)
            } else {
                self.seen.lock().unwrap().push(request.clone());
                (self.script)(&request)
            };
            match act {
                Act::Answer(bytes) => {
                    if stream.write_all(&bytes).is_err() {
                        return;
                    }
                }
                Act::AnswerAndClose(bytes) => {
                    let _ = stream.write_all(&bytes);
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
                Act::AnswerAndReset(bytes) => {
                    let _ = stream.write_all(&bytes);
                    if !bytes.is_empty() {
                        // What was sent must arrive before the reset overtakes it.
                        std::thread::sleep(Duration::from_millis(30));
                    }
                    let socket = socket2::SockRef::from(&stream);
                    socket.set_linger(Some(Duration::ZERO)).unwrap();
                    return;
                }
                Act::Hang => {
                    self.hanging.fetch_add(1, Ordering::SeqCst);
                    let mut rest = Vec::new();
                    let _ = reader.read_to_end(&mut rest);
                    self.hanging.fetch_sub(1, Ordering::SeqCst);
                    return;
                }
            }
        }
    }
}

/// Reads by length or by chunks, decoded; `None` if it breaks off.
fn read_body(reader: &mut impl BufRead, head: &str) -> Option<Vec<u8>> {
    if let Some(length) = fields(head, "content-length").first() {
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).ok()?;
        return Some(body);
    }
    let mut body = Vec::new();
    if fields(head, "transfer-encoding").is_empty() {
        return Some(body);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let size = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(&chunk[..size]);
    }
}
