//! A balancer process, a worker process, a scripted backend, a raw client.

mod backend;

pub(crate) use backend::{Act, Backend, ok};

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A wait that is only reached when something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The program under test.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_balancer"));
    command
        .env("RUST_LOG", "error")
        .env_remove("PLUMBLINE_ADMIN_TOKEN");
    command
}

/// A running balancer; killed when dropped.
pub(crate) struct Balancer {
    child: Child,
    pub(crate) traffic: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Balancer {
    /// Starts one in front of these backends, named a, b, c ...
    pub(crate) fn start(backends: &[&Backend], flags: &[&str]) -> Self {
        let addresses: Vec<_> = backends.iter().map(|b| b.address).collect();
        Self::in_front_of(&addresses, flags)
    }

    pub(crate) fn in_front_of(backends: &[SocketAddr], flags: &[&str]) -> Self {
        Self::of_members(&named(backends), flags)
    }

    /// Starts one whose files may not grow beyond so many blocks of 512 or 1024 bytes.
    pub(crate) fn start_limited(backends: &[&Backend], flags: &[&str], blocks: u32) -> Self {
        let addresses: Vec<_> = backends.iter().map(|b| b.address).collect();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("ulimit -f {blocks}; exec \"$@\""), "sh"])
            .arg(program().get_program())
            .env("RUST_LOG", "error")
            .env_remove("PLUMBLINE_ADMIN_TOKEN");
        Self::run(shell, &named(&addresses), flags)
    }

    /// Starts one with these values of `--backend`.
    pub(crate) fn of_members(members: &[String], flags: &[&str]) -> Self {
        Self::run(program(), members, flags)
    }

    fn run(mut command: Command, members: &[String], flags: &[&str]) -> Self {
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        if !flags.contains(&"--stats-interval") {
            command.args(["--stats-interval", "20ms"]);
        }
        if !flags.contains(&"--threads") {
            command.args(["--threads", "2"]);
        }
        for member in members {
            command.args(["--backend", member]);
        }
        command.args(flags);
        let (child, [traffic, admin]) = started(command);
        Self {
            child,
            traffic,
            admin,
        }
    }

    /// Sends raw bytes on a connection of their own and reads to its end.
    pub(crate) fn raw(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect();
        // A balancer that has answered and closed early does not read the rest.
        let _ = stream.write_all(bytes.as_ref());
        read_all(&mut stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.traffic)
    }

    /// An admin request: status and body.
    pub(crate) fn admin(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = connect(self.admin);
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .unwrap();
        let answer = read_all(&mut stream);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
        (status(head), body.to_string())
    }

    pub(crate) fn state(&self) -> serde_json::Value {
        serde_json::from_str(&self.admin("GET", "/api/state", "").1).unwrap()
    }

    /// A sample of the metrics page.
    pub(crate) fn metric(&self, sample: &str) -> u64 {
        let page = self.admin("GET", "/metrics", "").1;
        let line = page.lines().find(|l| {
            l.strip_prefix(sample)
                .is_some_and(|rest| rest.starts_with(' '))
        });
        line.map_or(0, |l| {
            l.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
        })
    }

    /// Waits until something holds.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(
                Instant::now() < deadline,
                "never: {what}; state {}",
                self.state()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A memory figure of the process in KiB, such as `VmHWM`.
    pub(crate) fn memory_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|l| l.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(done.success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// Starts a program and reads where it listens: traffic, admin.
fn started(mut command: Command) -> (Child, [SocketAddr; 2]) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let addresses: Vec<SocketAddr> = line
        .split("http://")
        .skip(1)
        .map(|part| {
            part.trim_end_matches([')', '\n'])
                .split(' ')
                .next()
                .unwrap()
        })
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{line}")))
        .collect();
    (child, addresses.try_into().expect("two addresses"))
}

/// The program of the workspace that serves, built in the profile of this test run.
fn worker_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "--quiet",
            "--package",
            "plumbline-worker",
            "--bins",
        ]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success());
        Path::new(env!("CARGO_BIN_EXE_balancer")).with_file_name("worker")
    })
}

/// A running worker that executes one instruction in a hundred; killed when dropped.
pub(crate) struct Worker {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Worker {
    pub(crate) fn start(name: &str, cores: u32) -> Self {
        let mut command = Command::new(worker_program());
        command
            .env("RUST_LOG", "error")
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--name", name, "--cores", &cores.to_string()])
            .args(["--memory-gb", "1", "--burn-fraction", "0.01"]);
        let (child, [address, _]) = started(command);
        Self { child, address }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The values of `--backend` of these addresses, named a, b, c ...
fn named(backends: &[SocketAddr]) -> Vec<String> {
    let named = ["a", "b", "c", "d"].iter().zip(backends);
    named
        .map(|(name, address)| format!("name={name},url=http://{address}"))
        .collect()
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Everything up to the end of the connection; a reset is an end too.
pub(crate) fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut part = [0_u8; 65_536];
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(e) => panic!("{e}: after {:?}", String::from_utf8_lossy(&bytes)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The head up to and with its blank line.
pub(crate) fn read_head(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0_u8];
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn status(head: &str) -> u16 {
    let code = head.split(' ').nth(1).unwrap_or_default();
    code.parse()
        .unwrap_or_else(|_| panic!("no status in {head:?}"))
}

/// The values of a field.
pub(crate) fn fields<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(n, _)| n.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .collect()
}
