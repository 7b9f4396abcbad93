//! A server of raw sockets that behaves as told, one thread per connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the server does with a request, given its number in order of arrival.
type Behavior = dyn Fn(usize) -> Act + Send + Sync;

/// One way to treat a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Send these bytes after a delay.
    Send(String, Duration),
    /// Send these bytes, then close.
    SendAndClose(String),
    /// Close without a byte.
    Close,
    /// Never answer.
    Hang,
}

/// A whole answer with extra header lines (each ending in CRLF).
pub(crate) fn answer(status: u16, fields: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{fields}content-length: 2\r\n\r\nok")
}

/// A running server; it ends with the test.
pub(crate) struct Server {
    pub(crate) url: String,
    /// Heads and bodies in order of arrival.
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    pub(crate) connections: Arc<Mutex<usize>>,
    /// While set, nothing is read or answered.
    frozen: Arc<AtomicBool>,
}

impl Server {
    /// A server that answers everything after `delay`.
    pub(crate) fn answering(delay: Duration) -> Self {
        Self::start(move |_| Act::Send(answer(200, ""), delay))
    }

    pub(crate) fn start(behavior: impl Fn(usize) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Self {
            url,
            seen: Arc::default(),
            connections: Arc::default(),
            frozen: Arc::default(),
        };
        let behavior: Arc<Behavior> = Arc::new(behavior);
        let (seen, connections) = (Arc::clone(&server.seen), Arc::clone(&server.connections));
        let frozen = Arc::clone(&server.frozen);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                *connections.lock().expect("lock") += 1;
                let (behavior, seen) = (Arc::clone(&behavior), Arc::clone(&seen));
                let frozen = Arc::clone(&frozen);
                std::thread::spawn(move || serve(&socket, &behavior, &seen, &frozen));
            }
        });
        server
    }

    /// Stops answering for `duration`.
    pub(crate) fn freeze(&self, duration: Duration) {
        self.frozen.store(true, Ordering::SeqCst);
        std::thread::sleep(duration);
        self.frozen.store(false, Ordering::SeqCst);
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().expect("lock").len()
    }

    /// Waits until `count` requests have arrived.
    pub(crate) fn await_requests(&self, count: usize) {
        let start = Instant::now();
        while self.requests() < count {
            assert!(start.elapsed() < Duration::from_secs(60), "nothing arrives");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn serve(
    socket: &TcpStream,
    behavior: &Arc<Behavior>,
    seen: &Mutex<Vec<String>>,
    frozen: &AtomicBool,
) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(socket);
    loop {
        let request = read_request(&mut reader)?;
        let number = {
            let mut seen = seen.lock().ok()?;
            seen.push(request);
            seen.len() - 1
        };
        let act = behavior(number);
        let mut out = socket;
        match act {
            Act::Send(bytes, delay) => {
                std::thread::sleep(delay);
                while frozen.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                out.write_all(bytes.as_bytes()).ok()?;
            }
            Act::SendAndClose(bytes) => {
                out.write_all(bytes.as_bytes()).ok()?;
                return socket.shutdown(Shutdown::Both).ok();
            }
            Act::Close => return socket.shutdown(Shutdown::Both).ok(),
            Act::Hang => {
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest).ok()?;
            }
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<String> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let start = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head[start..].trim_end();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8(body).ok()?)
}
