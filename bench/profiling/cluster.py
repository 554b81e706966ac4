"""Runs `atoll bench` beside a profiler, in its own runtime folder."""
import json
import os
import re
import subprocess
import threading
import time

WARM_UP_S = 2
STARTED = re.compile(r"^run 1 of \d+: (\d+) s after (\d+) s warm-up")


class ProfileError(Exception):
    """What the user is told."""


class Benchmark:
    """One benchmark on an own cluster. `binaries` holds atoll and the programs of the nodes."""

    def __init__(self, binaries, work, arguments):
        self.binaries = binaries
        self.work = work
        self.arguments = arguments
        self.process = None
        self.output = []
        self.started = threading.Event()
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=str(work))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.stop()

    def start(self, seconds, extra=()):
        command = [str(self.binaries / "atoll"), "bench", *self.arguments, *extra,
                   "--warmup", str(WARM_UP_S), "--seconds", str(seconds), "--no-verify"]
        self.process = subprocess.Popen(command, env=self.environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.output.append(line)
            if STARTED.match(line):
                self.started.set()
        self.started.set()

    def wait_for_run(self):
        """Returns once the tables are loaded and the run has begun."""
        self.started.wait()
        if not any(STARTED.match(line) for line in self.output):
            self.process.wait()
            raise ProfileError("the benchmark ended before its run:\n" + "".join(self.output))

    def status(self):
        run = subprocess.run([str(self.binaries / "atoll"), "status", "--json"],
                             env=self.environment, capture_output=True, text=True)
        if run.returncode != 0:
            raise ProfileError("the cluster is gone: " + run.stderr + "".join(self.output[-20:]))
        return json.loads(run.stdout)

    def node_pids(self):
        return [node["pid"] for node in self.status()["nodes"]]

    def commits(self):
        return sum(node["commits"] + node["read_only_commits"] for node in self.status()["nodes"])

    def finish(self, patience=120):
        try:
            self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.stop()
            raise ProfileError(f"the benchmark did not end within {patience} s")
        if self.process.returncode != 0:
            raise ProfileError("the benchmark failed:\n" + "".join(self.output[-20:]))

    def stop(self):
        """Ends the benchmark early, as Ctrl-C does; its cluster goes with it."""
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        time.sleep(0.1)
