#!/usr/bin/env python3
"""Records what nginx and HAProxy pick, for the strategies that name them as their source.

    apt-get install nginx-core haproxy      # Debian 12: nginx 1.22.1, HAProxy 2.6.12
    python3 record.py                       # writes the *.txt files beside this one

Standard library only. Everything listens on 127.0.0.x; nothing else is touched. The files hold one
case per line: weights (or names), what was done, and who got each request (A, B, C ... in the order
of the configuration).
"""

import http.client
import http.server
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).parent
FRONT = 18080
FIRST_BACKEND = 18101


class Backend:
    """A server that names itself, fails when it is told to, and can hold its answers."""

    #: Requests that were failed once already: the second server they reach serves them.
    failed = set()

    def __init__(self, letter, address):
        self.letter, self.address = letter, address
        self.arrived = threading.Semaphore(0)
        self.may_answer = threading.Semaphore(0)
        self.server = None

    def start(self):
        backend = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self):
                if "x-hold" in self.headers:
                    backend.arrived.release()
                    backend.may_answer.acquire()
                number = self.headers.get("x-fail")
                fails = number is not None and number not in Backend.failed
                Backend.failed.add(number)
                self.send_response(500 if fails else 200)
                self.send_header("x-backend", backend.letter)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer(self.address, Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Proxy:
    """A proxy process with this configuration; stopped at the end of the block."""

    def __init__(self, command, config, folder):
        path = pathlib.Path(folder) / "proxy.conf"
        path.write_text(config)
        self.process = subprocess.Popen([part.format(conf=path, dir=folder) for part in command])

    def __enter__(self):
        for _ in range(200):
            try:
                ask("/ready?ignored")
                return self
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("the proxy did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def ask(path="/", **headers):
    """Status, backend and nginx's list of upstream addresses of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", FRONT, timeout=20)
    connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.getheader("x-backend"), answer.getheader("x-upstream")


def nginx(servers, rule="", retry="off", folder=None):
    """nginx in front of servers, given as their lines in the upstream block. /ready is answered by
    nginx itself, so that it moves nothing."""
    lines = "\n".join(f"    server {line};" for line in servers)
    config = f"""
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log crit;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
  fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  upstream pool {{
    {rule}
{lines}
  }}
  server {{
    listen 127.0.0.1:{FRONT};
    location = /ready {{ return 204; }}
    location / {{
      proxy_pass http://pool; proxy_next_upstream {retry};
      add_header x-upstream $upstream_addr always;
    }}
  }}
}}
"""
    return Proxy(["nginx", "-c", "{conf}", "-p", "{dir}"], config, folder)


def haproxy(backends, weights, balance, folder):
    servers = "\n".join(
        f"  server {b.letter} {b.address[0]}:{b.address[1]} weight {w}" for b, w in zip(backends, weights)
    )
    config = f"""
global
  maxconn 400
  nbthread 1
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 1s
  option http-server-close
frontend front
  bind 127.0.0.1:{FRONT}
  http-request return status 204 if {{ path /ready }}
  default_backend pool
backend pool
  balance {balance}
{servers}
"""
    return Proxy(["haproxy", "-f", "{conf}"], config, folder)


def backends(n):
    made = [Backend(chr(65 + i), ("127.0.0.1", FIRST_BACKEND + i)) for i in range(n)]
    for backend in made:
        backend.start()
    return made


def lines_of(pool, weights, extra=""):
    return [f"{b.address[0]}:{b.address[1]} weight={w} {extra}" for b, w in zip(pool, weights)]


def write(name, head, cases):
    version = subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr.split("/")[-1]
    if name.startswith("haproxy"):
        version = subprocess.run(["haproxy", "-v"], capture_output=True, text=True).stdout.split()[2]
    proxy = name.split("-")[0]
    text = f"# {proxy} {version.strip()}. {head}\n" + "".join(f"{case}\n" for case in cases)
    (HERE / name).write_text(text)
    print(name, len(cases))


def comma(values):
    return ",".join(map(str, values))


VECTORS = [
    [4, 3, 2], [1, 1, 1], [5, 1, 1], [8, 2, 2, 1, 1], [2, 7, 1], [3, 3, 2], [100, 1], [7, 7],
    [13, 1, 7, 15, 2, 9], [1], [12, 9, 6], [1, 2, 3, 4, 5, 6, 7, 8],
]


def smooth(folder):
    cases = []
    for weights in VECTORS:
        pool = backends(len(weights))
        with nginx(lines_of(pool, weights, "max_fails=0"), folder=folder):
            picks = "".join(ask()[1] for _ in range(min(2 * sum(weights) + 5, 130)))
        cases.append(f"{comma(weights)} - {picks}")
        for out in range(len(weights) if 1 < len(weights) < 5 else 0):
            lines = lines_of(pool, weights, "max_fails=0")
            lines[out] += " down"
            with nginx(lines, folder=folder):
                picks = "".join(ask()[1] for _ in range(2 * sum(weights) + 3))
            cases.append(f"{comma(weights)} {chr(65 + out)} {picks}")
        for backend in pool:
            backend.stop()
    write("nginx-smooth.txt", "weights; who is down; picks of requests answered one by one", cases)


def failing(folder):
    """Some answers are failures, too few for anybody to be left out: working weights fall and rise."""
    draw = random.Random(1)
    cases, number = [], 0
    for weights, max_fails in [
        ([20, 15, 10], 10), ([4, 3, 2], 4), ([25, 9, 14], 7), ([50, 50], 9), ([6, 6, 6], 6), ([30, 1, 1], 15),
        ([8, 2, 2, 1, 1], 8), ([40, 20, 10], 5),
    ]:
        pool = backends(len(weights))
        extra = f"max_fails={max_fails} fail_timeout=600"
        retry = "http_500; proxy_next_upstream_tries 2"
        with nginx(lines_of(pool, weights, extra), retry=retry, folder=folder):
            picks, failures = "", dict.fromkeys("ABCDE", 0)
            for _ in range(2 * sum(weights) + 10):
                # Nobody may reach its limit, whoever is picked.
                fails = max(failures.values()) < max_fails - 1 and draw.random() < 0.25
                number += 1
                tried = tried_by(pool, ask(**({"x_fail": str(number)} if fails else {})))
                for letter in tried[:-1]:
                    failures[letter] += 1
                picks += "!".join(tried)
        cases.append(f"{comma(weights)} {max_fails} {picks}")
        for backend in pool:
            backend.stop()
    write("nginx-max-fails.txt", "weights; max_fails; picks, X!Y = X answered 500 and Y got it", cases)


def tried_by(pool, answer):
    """Letters of the servers that a request went to, in order."""
    letters = {f"{b.address[0]}:{b.address[1]}": b.letter for b in pool}
    return [letters[address] for address in answer[2].split(", ")]


def down_and_back(folder):
    """One server stops listening and comes back: max_fails=1, so that one refusal leaves it out."""
    cases = []
    for weights, out, first in [([4, 3, 2], 1, 4), ([4, 3, 2], 0, 6), ([5, 1, 1], 2, 9), ([2, 7, 1], 1, 3)]:
        pool = backends(len(weights))

        def take(n):
            return "".join("!".join(tried_by(pool, ask())) for _ in range(n))

        with nginx(lines_of(pool, weights, "max_fails=1 fail_timeout=2"), retry="error", folder=folder):
            begin = take(first)
            pool[out].stop()
            away = take(1)
            while "!" not in away:
                away += take(1)
            away += take(7)
            pool[out].start()
            time.sleep(4)
            back = take(2 * sum(weights))
        cases.append(f"{comma(weights)} {pool[out].letter} {begin}{away}+{back}")
        for backend in pool:
            backend.stop()
    head = "weights; who stops listening; picks, X!Y = X refused and Y got it, + = X may be picked again"
    write("nginx-down-and-back.txt", head, cases)


KEYS = 1500


def hashed(folder, name, rule, head):
    cases = []
    pools = [
        [(f"127.0.0.1:{FIRST_BACKEND + i}", w) for i, w in enumerate([4, 3, 2])],
        [(f"127.0.0.1:{FIRST_BACKEND + i}", 1) for i in range(3)],
        [(f"127.0.0.{10 + i}:{18200 + 7 * i}", 1) for i in range(10)],
        [(f"127.0.0.{30 + i}:18300", w) for i, w in enumerate([8, 2, 2, 1, 1])],
    ]
    for servers in pools:
        pool = []
        for i, (address, _) in enumerate(servers):
            host, port = address.split(":")
            pool.append(Backend(chr(65 + i), (host, int(port))))
            pool[-1].start()
        for out in [None, 1]:
            lines = [f"{address} weight={w} max_fails=0" for address, w in servers]
            if out is not None:
                lines[out] += " down"
            with nginx(lines, rule=rule, folder=folder):
                picks = "".join(ask(f"/items/{i}")[1] for i in range(KEYS))
            who = "-" if out is None else chr(65 + out)
            cases.append(f"{comma(f'{a}={w}' for a, w in servers)} {who} {picks}")
        for backend in pool:
            backend.stop()
    write(name, head + "; who is down; who gets /items/0, /items/1 ...", cases)


def held(pool, proxy, draw, steps, close):
    """Opens requests that are held, and lets some be answered: picks in order, -X = one at X ended."""
    open_by, script, threads = {b.letter: 0 for b in pool}, "", []
    with proxy:
        for _ in range(steps):
            busy = [letter for letter, n in open_by.items() if n > 0]
            if busy and draw.random() < close:
                letter = draw.choice(busy)
                answered = sum(not thread.is_alive() for thread in threads)
                pool[ord(letter) - 65].may_answer.release()
                while sum(not thread.is_alive() for thread in threads) == answered:
                    time.sleep(0.002)
                # The proxy counts it as done a little after its client does.
                time.sleep(0.15)
                open_by[letter] -= 1
                script += "-" + letter
                continue
            thread = threading.Thread(target=ask, kwargs={"x_hold": "1"}, daemon=True)
            thread.start()
            threads.append(thread)
            got = None
            while got is None:
                got = next((b for b in pool if b.arrived.acquire(blocking=False)), None)
                time.sleep(0.001)
            open_by[got.letter] += 1
            script += got.letter
        for backend in pool:
            for _ in range(open_by[backend.letter]):
                backend.may_answer.release()
        for thread in threads:
            thread.join()
    return script


def in_flight(folder, name, make, head):
    draw = random.Random(2)
    cases = []
    for weights in [[4, 3, 2], [1, 1, 1], [5, 1, 1], [8, 2, 2, 1, 1], [2, 7, 1]]:
        for close in [0.0, 0.45]:
            pool = backends(len(weights))
            script = held(pool, make(pool, weights), draw, 40 if close == 0.0 else 90, close)
            cases.append(f"{comma(weights)} {script}")
            for backend in pool:
                backend.stop()
    write(name, head, cases)


def main():
    for program in ["nginx", "haproxy"]:
        if shutil.which(program) is None:
            raise SystemExit(f"error: {program} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        smooth(folder)
        failing(folder)
        down_and_back(folder)
        hashed(folder, "nginx-hash.txt", "hash $request_uri;", "names=weights")
        hashed(folder, "nginx-ketama.txt", "hash $request_uri consistent;", "names=weights")
        head = "weights; requests that are held, in order: X = it went to X, -X = one at X was answered"
        least_conn = lambda pool, weights: nginx(  # noqa: E731
            lines_of(pool, weights, "max_fails=0"), rule="least_conn;", folder=folder
        )
        in_flight(folder, "nginx-least-conn.txt", least_conn, head)
        leastconn = lambda pool, weights: haproxy(pool, weights, "leastconn", folder)  # noqa: E731
        in_flight(folder, "haproxy-leastconn.txt", leastconn, head)


if __name__ == "__main__":
    main()
