//! CPU time the balancer spends per proxied request, read from `/proc/PID/stat`.
//!
//! `cargo run --release -p plumbline-balancer --example cpu_per_request -- [REQUESTS] [CLIENTS]`
//!
//! Starts the sibling `balancer` binary with one proxy thread in front of three tiny backends in this
//! process, sends REQUESTS (default 60,000) GETs over CLIENTS (default 16) keep-alive connections as
//! fast as they are answered, and prints one JSON line per arm. Absolute figures belong to the
//! machine they were measured on: compare only arms of one run.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Requests before the clock starts.
const WARM_UP: usize = 2000;
const SEED: &str = "42";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx-worker-timing: queue_wait_us=1,service_time_us=2\r\nendpoint-load-metrics: TEXT cpu_utilization=0.41,rps_fractional=30.5,eps=0,named_metrics.active=3,named_metrics.mean50=187.2\r\n\r\nok\n";
const REQUEST: &[u8] = b"GET /users/orders/payments HTTP/1.1\r\nhost: balancer\r\nx-task-size-mi: 412.5\r\nx-request-id: b01-2-3-004711\r\naccept: */*\r\n\r\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let requests: usize = args.next().map_or(Ok(60_000), |n| n.parse())?;
    let clients: usize = args.next().map_or(Ok(16), |n| n.parse())?;
    let log = std::env::temp_dir().join(format!("cpu-per-request-{}.jsonl", std::process::id()));
    let log_text = log.display().to_string();
    let arms: [(&str, &[&str]); 3] = [
        ("plain", &["--protection", "plain"]),
        (
            "plain, event log",
            &["--protection", "plain", "--event-log", &log_text],
        ),
        ("guarded", &["--protection", "guarded"]),
    ];
    for (name, flags) in arms {
        let arm = measure(flags, requests, clients)?;
        println!(
            "{{\"arm\":\"{name}\",\"requests\":{requests},\"clients\":{clients},\"threads\":1,\"seed\":{SEED},\
             \"cpu_us_per_request\":{:.1},\"user_us\":{:.1},\"system_us\":{:.1},\"requests_per_s\":{:.0}}}",
            arm.user_us + arm.system_us,
            arm.user_us,
            arm.system_us,
            arm.rate_rps
        );
    }
    // The log was only written to be paid for.
    std::fs::remove_file(log)?;
    Ok(())
}

struct Arm {
    user_us: f64,
    system_us: f64,
    rate_rps: f64,
}

fn measure(
    flags: &[&str],
    requests: usize,
    clients: usize,
) -> Result<Arm, Box<dyn std::error::Error>> {
    let backends: Vec<_> = (0..3).map(|_| backend()).collect::<Result<_, _>>()?;
    let (mut child, address) = start(&backends, flags)?;
    send(&address, WARM_UP, clients);
    let before = cpu_ticks(child.id())?;
    let started = Instant::now();
    send(&address, requests, clients);
    let seconds = started.elapsed().as_secs_f64();
    let after = cpu_ticks(child.id())?;
    child.kill()?;
    child.wait()?;
    let us = |ticks: u64| ticks as f64 * 1e6 / ticks_per_s() / requests as f64;
    Ok(Arm {
        user_us: us(after.0 - before.0),
        system_us: us(after.1 - before.1),
        rate_rps: requests as f64 / seconds,
    })
}

fn start(
    backends: &[String],
    flags: &[&str],
) -> Result<(Child, String), Box<dyn std::error::Error>> {
    // target/release/examples/this -> target/release/balancer
    let own = std::env::current_exe()?;
    let folder = own
        .ancestors()
        .nth(2)
        .ok_or("no folder above the examples")?;
    let mut command = Command::new(folder.join("balancer"));
    command.args([
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--threads",
        "1",
    ]);
    command
        .args(["--seed", SEED, "--strategy", "least-request"])
        .args(flags);
    command.env("RUST_LOG", "error").stdout(Stdio::piped());
    for address in backends {
        command.args(["--backend", &format!("url=http://{address}")]);
    }
    let mut child = command.spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    let address = line
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    Ok((child, address.ok_or("no address")?.to_string()))
}

/// Answers every request alike; statistics polls get the same, which is no statistics.
fn backend() -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer_all(stream));
        }
    });
    Ok(address)
}

fn answer_all(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut bytes = [0_u8; 4096];
    // One request per read: the balancer never pipelines.
    while let Ok(n) = stream.read(&mut bytes) {
        if n == 0 || stream.write_all(ANSWER).is_err() {
            return;
        }
    }
}

fn send(address: &str, requests: usize, clients: usize) {
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut stream = TcpStream::connect(address).expect("the balancer listens");
                let _ = stream.set_nodelay(true);
                let mut bytes = vec![0_u8; 16 * 1024];
                for _ in 0..requests / clients {
                    stream.write_all(REQUEST).expect("the balancer reads");
                    let mut filled = 0;
                    while !bytes[..filled].ends_with(b"\r\n\r\nok\n") {
                        let n = stream
                            .read(&mut bytes[filled..])
                            .expect("the balancer answers");
                        assert!(n > 0, "the balancer closed");
                        filled += n;
                    }
                    assert!(bytes.starts_with(b"HTTP/1.1 200"), "not ok");
                }
            });
        }
    });
}

/// User and system time of a process so far, clock ticks.
fn cpu_ticks(pid: u32) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold spaces; the 14th and 15th field count from the pid.
    let rest = text.rsplit_once(')').ok_or("no process name")?.1;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next().ok_or("too few fields");
    Ok((next()?.parse()?, next()?.parse()?))
}

/// Linux shows these times in hundredths of a second on every architecture.
fn ticks_per_s() -> f64 {
    100.0
}
