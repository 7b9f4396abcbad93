//! A running worker and a client that speaks HTTP by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

/// The program under test.
pub(crate) fn worker() -> Command {
    Command::new(env!("CARGO_BIN_EXE_worker"))
}

/// Runs the program to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    worker().args(args).output().expect("the worker starts")
}

/// A worker process; killed when dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) traffic: String,
    pub(crate) admin: String,
}

impl Running {
    /// Starts a fast emulated worker named a with further `flags`.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let common = ["--name", "a", "--mips-per-core", "100000"];
        Self::start_with(&[&common, flags].concat())
    }

    /// Starts a worker on free ports.
    pub(crate) fn start_with(flags: &[&str]) -> Self {
        let mut child = worker()
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the worker starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("stdout");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let after = |mark: &str| {
            let (_, rest) = line.split_once(mark).expect("an address");
            rest.split([' ', ')', '\n'])
                .next()
                .expect("an address")
                .to_string()
        };
        Self {
            child,
            traffic: after("listening on http://"),
            admin: after("admin http://"),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        ask(&self.traffic, &format!("GET {path} HTTP/1.1"), "")
    }

    pub(crate) fn stats(&self) -> serde_json::Value {
        self.get("/stats").json()
    }

    /// Asks for `/stats` until `good` holds.
    pub(crate) fn wait_for(&self, good: impl Fn(&serde_json::Value) -> bool) {
        while !good(&self.stats()) {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let field = |line: &'_ str| -> Option<(usize, usize)> {
            let (key, _) = line.split_once(": ")?;
            (key == name).then_some((key.len() + 2, line.len()))
        };
        self.head
            .lines()
            .find_map(|line| field(line).map(|(from, to)| &line[from..to]))
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }
}

/// Sends one request with further header lines (each ending in CRLF) on a connection of its own.
pub(crate) fn ask(address: &str, line: &str, fields: &str) -> Answer {
    read(send(address, line, fields))
}

/// Sends a request and leaves the answer to be read.
pub(crate) fn send(address: &str, line: &str, fields: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let request = format!("{line}\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    stream
}

/// Reads an answer to its end.
pub(crate) fn read(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
    Answer {
        status: status.expect("a status"),
        head: head.to_string(),
        body: body.to_string(),
    }
}
