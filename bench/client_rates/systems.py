"""The systems that bench/clients measures: their servers, their programs and their cases."""
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

from common.compiler import ROOT, compile_sources, has_header

FOLDER = "bench/client_rates"
PATIENCE_S = 60
START_S = 10
ALL_CASES = ("get", "get-pipelined", "get-batch", "put", "put-pipelined", "put-batch")
# Requests in flight. Durable puts of Atoll wait for an epoch, so their rate depends on it.
MANY_PUTS = "put-pipelined:4096"
NAMES = {"atoll": "Atoll", "redis": "Redis", "sqlite": "SQLite", "lmdb": "LMDB"}


class RatesError(Exception):
    """What the user is told."""


class Row:
    """A line of the table: a case of a system."""

    def __init__(self, system, client, case, command, clients=1, durability="",
                 environment=None):
        self.system, self.client, self.case, self.clients = system, client, case, clients
        self.durability = durability
        self.command, self.environment = command, environment
        self.runs = []

    def run(self, seconds):
        """Measures once, and keeps the rate."""
        done = subprocess.run([*map(str, self.command), str(seconds)], capture_output=True,
                              text=True, timeout=PATIENCE_S + 10 * seconds, env=self.environment)
        if done.returncode != 0:
            raise RatesError(f"{' '.join(map(str, self.command))}: {done.stderr.strip()}")
        self.runs.append(float(done.stdout))


def skip(what, reason):
    print(f"... {what} is skipped: {reason}", file=sys.stderr)


def python_with(module, environment=None):
    """An interpreter that has a module: this one, or that of Debian. None: neither has it."""
    if environment is None and importlib.util.find_spec(module):
        return sys.executable
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", f"import {module}"], capture_output=True,
                              env=environment).returncode == 0:
                return python
    return None


def python_rows(rows, system, where, cases, work, durability="", environment=None):
    """Rows of a package of Python, if an interpreter has it."""
    module = "sqlite3" if system == "sqlite" else system
    python = python_with(module, environment)
    if python is None:
        return skip(f"{system} in Python", f"no interpreter has the package {module}")
    program = ROOT / FOLDER / "python_rates.py"
    for case in cases:
        rows.append(Row(NAMES[system], "Python", case,
                        [python, program, system, where, case],
                        durability=durability if case.startswith("put") else "",
                        environment=environment))
    return None


class Atoll:
    """A cluster of one node with one worker, with the default epochs and a log."""

    def __init__(self, binaries, work):
        self.binaries, self.work = binaries, work
        self.config = work / "rates.toml"
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=str(work), HOME=str(work))
        self.config.write_text(
            f'[cluster]\nname = "rates"\ndata_dir = "{work / "data"}"\n'
            f'log_dir = "{work / "logs"}"\n[memory]\nvolatile_pool = "256MiB"\n'
            f'snapshot_cache = "32MiB"\n[network]\nenabled = true\n'
            f'key_file = "{work / "node.keys"}"\nauthorised_keys = "{work / "authorised"}"\n'
            f'[[node]]\nworkers = 1\n', encoding="utf-8")

    def __enter__(self):
        self.make_keys()
        self.atoll("up", "-c", self.config)
        self.atoll("storage", "create", "t", "--type", "mastertree", "-c", self.config)
        return self

    def __exit__(self, *_):
        with contextlib.suppress(RatesError):
            self.atoll("down", "-c", self.config)

    def atoll(self, *words):
        command = [str(self.binaries / "atoll"), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment,
                              timeout=PATIENCE_S)
        if done.returncode != 0:
            raise RatesError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def make_keys(self):
        self.atoll("keys", "generate", self.work / "node.keys")
        key = self.atoll("keys", "generate", self.work / "client.keys").strip()
        (self.work / "authorised").write_text(f"{key} bench read,write\n", encoding="utf-8")

    def status(self):
        return json.loads(self.atoll("status", "--json", "-c", self.config))

    def network_address(self):
        network = next(each["network"] for each in self.status()["processes"]
                       if "network" in each)
        address = network["endpoint"].removeprefix("tcp://")
        return (f"atoll+tcp://{address}?server_key={network['key']}"
                f"&key_file={self.work / 'client.keys'}")

    def rows(self):
        libraries = self.binaries.parent / "lib"
        program = self.work / "atoll-rates"
        compile_sources(program, [f"{FOLDER}/client_rates_main.cpp", f"{FOLDER}/rates.cpp"],
                        f"-L{libraries}", "-latoll_client", f"-Wl,-rpath,{libraries}")
        rows = []
        local = f"atoll://{self.work}/atoll/rates"

        def add(client, where, case, clients=1):
            rows.append(Row("Atoll", client, case.split(":")[0],
                            [program, where, "t", case, clients], clients,
                            "durable" if case.startswith("put") else "",
                            environment=self.environment))

        for client, where in (("C, local", local), ("C, network", self.network_address())):
            for case in ALL_CASES:
                add(client, where,
                    MANY_PUTS if case == "put-pipelined" and where == local else case)
            for clients in (2, 4, 8):
                add(client, where, "get", clients)
            add(client, where, "get-pipelined", 2)
            add(client, where, "put-pipelined", 8)
            add(client, where, "get-batch-pipelined:64")
            add(client, where, "put-batch-pipelined:64")
        environment = dict(self.environment,
                           PYTHONPATH=str(ROOT / "shared/python/src"),
                           ATOLL_CLIENT_LIBRARY=str(libraries / "libatoll_client.so.0"))
        python_rows(rows, "atoll", local, ("get", "get-batch", "get-many", "get-asyncio", "put",
                                           "put-many", "put-asyncio"),
                    self.work, "durable", environment)
        return rows

    def targets(self):
        """The addresses of all metrics."""
        listed = json.loads((self.work / "logs" / "prometheus-targets.json").read_text())
        return [address for group in listed for address in group["targets"]]

    def scrape(self):
        """Reads the metrics of all processes. Returns their bytes."""
        size = 0
        for target in self.targets():
            with urllib.request.urlopen(f"http://{target}/metrics", timeout=PATIENCE_S) as answer:
                size += len(answer.read())
        return size

    def cpu_s(self):
        """Processor time of all processes of the cluster so far."""
        total = 0
        for process in self.status()["processes"]:
            for task in pathlib.Path(f"/proc/{process['pid']}/task").iterdir():
                with contextlib.suppress(OSError):
                    total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9


class Redis:
    """A server with the given policy for its append-only file."""

    def __init__(self, work, fsync):
        self.work, self.fsync = work, fsync
        self.folder = work / f"redis-{fsync}"
        self.socket = self.folder / "socket"
        self.port = 0
        self.server = None

    def __enter__(self):
        self.folder.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.server = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--unixsocket",
             str(self.socket), "--dir", str(self.folder), "--appendonly", "yes", "--appendfsync",
             self.fsync, "--save", ""], stdout=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while not self.socket.exists():
            if time.monotonic() > end or self.server.poll() is not None:
                raise RatesError("redis-server does not start")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()

    def rows(self):
        program = self.work / "redis-rates"
        if not program.exists():
            compile_sources(program, [f"{FOLDER}/redis_rates.cpp", f"{FOLDER}/rates.cpp"],
                            "-lhiredis")
        rows = []
        durability = {"always": "durable", "everysec": "loses 1 s"}[self.fsync]

        def add(client, where, case, clients=1):
            rows.append(Row("Redis", client, case.split(":")[0], [program, where, case, clients], clients,
                            durability if case.startswith("put") else ""))

        puts = [case for case in ALL_CASES if case.startswith("put")]
        for case in ALL_CASES if self.fsync == "everysec" else puts:
            add("C, Unix socket", self.socket, case)
        add("C, Unix socket", self.socket, "put-batch-pipelined:64")
        if self.fsync == "always":
            add("C, Unix socket", self.socket, "put-pipelined", 8)
            return rows
        for clients in (2, 4, 8):
            add("C, Unix socket", self.socket, "get", clients)
        for case in ALL_CASES:
            add("C, loopback", self.port, case)
        python_rows(rows, "redis", self.socket,
                    ("get", "get-pipelined", "get-batch", "put", "put-pipelined"), self.work,
                    durability)
        return rows


class Sqlite:
    def __init__(self, work):
        self.work = work

    def rows(self):
        program = self.work / "sqlite-rates"
        compile_sources(program, [f"{FOLDER}/sqlite_rates.cpp", f"{FOLDER}/rates.cpp"],
                        "-lsqlite3")
        rows = []
        file = self.work / "sqlite.db"
        for synchronous, durability in (("FULL", "durable"), ("NORMAL", "not synced")):
            for case in ("get", "get-batch", "put", "put-batch"):
                if case.startswith("get") and synchronous == "NORMAL":
                    continue
                rows.append(Row("SQLite", "C", case, [program, file, synchronous, case, 1],
                                durability=durability if case.startswith("put") else ""))
        python_rows(rows, "sqlite", file, ("get", "get-batch", "put", "put-batch"), self.work,
                    "durable")
        return rows


class Lmdb:
    def __init__(self, work):
        self.work = work

    def rows(self):
        program = self.work / "lmdb-rates"
        compile_sources(program, [f"{FOLDER}/lmdb_rates.cpp", f"{FOLDER}/rates.cpp"], "-llmdb")
        rows = []
        folder = self.work / "lmdb"
        folder.mkdir()
        for sync, durability in (("sync", "durable"), ("nosync", "not synced")):
            for case in ("get", "get-batch", "put", "put-batch"):
                if case.startswith("get") and sync == "nosync":
                    continue
                rows.append(Row("LMDB", "C", case, [program, folder, sync, case, 1],
                                durability=durability if case.startswith("put") else ""))
        python_rows(rows, "lmdb", folder, ("get", "get-batch", "put", "put-batch"), self.work,
                    "durable")
        return rows


def start_all(stack, wanted, binaries, work):
    """Starts the wanted systems. Returns Atoll, or None, and the rows of all systems."""
    rows, cluster = [], None
    if "atoll" in wanted:
        cluster = stack.enter_context(Atoll(binaries, work))
        rows += cluster.rows()
    if "redis" in wanted:
        if shutil.which("redis-server") is None or not has_header("hiredis/hiredis.h"):
            skip("Redis", "the packages redis-server and libhiredis-dev are not installed")
        else:
            for fsync in ("everysec", "always"):
                rows += stack.enter_context(Redis(work, fsync)).rows()
    for name, header, package, kind in (("sqlite", "sqlite3.h", "libsqlite3-dev", Sqlite),
                                        ("lmdb", "lmdb.h", "liblmdb-dev", Lmdb)):
        if name in wanted and has_header(header):
            rows += kind(work).rows()
        elif name in wanted:
            skip(name, f"the package {package} is not installed")
    return cluster, rows
