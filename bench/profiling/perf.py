"""Samples of the program counter, by perf."""
import collections
import re
import subprocess
import time

from .cluster import WARM_UP_S, ProfileError

COLUMNS = [("ns", "ns a transaction")]
FREQUENCY = 4000  # a second and thread
SLACK_S = 5  # the run lasts longer by this, because perf takes a while to begin and to end
MMAP = re.compile(r"PERF_RECORD_MMAP2? (\d+)/\d+: \[(0x[0-9a-f]+)\((0x[0-9a-f]+)\) @ "
                  r"(0x[0-9a-f]+|0) .*?: r-xp (\S+)")
SAMPLE = re.compile(r"^\s*(\d+)\s+([0-9a-f]+)\s+\((.*)\)\s*$")


def measure(benchmark, window):
    """Returns ({(object, address): [ns]}, commits): time of all node processes."""
    benchmark.start(window + WARM_UP_S + SLACK_S)
    benchmark.wait_for_run()
    data = benchmark.work / "perf.data"
    time.sleep(WARM_UP_S)
    pids = benchmark.node_pids()
    before = benchmark.commits()
    record = subprocess.run(
        ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", str(data),
         "-p", ",".join(map(str, pids)), "--", "sleep", str(window)],
        capture_output=True, text=True)
    commits = benchmark.commits() - before
    benchmark.finish()
    if record.returncode != 0 or not data.exists():
        raise ProfileError("perf record: " + record.stderr.strip())
    return read(data, benchmark.binaries / "atoll-node"), commits


def script(data, *arguments):
    run = subprocess.run(["perf", "script", "-i", str(data), *arguments],
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise ProfileError("perf script: " + run.stderr.strip())
    return run.stdout.splitlines()


def load_segments(binary):
    """[(offset in the file, size, address)] of what is mapped."""
    run = subprocess.run(["readelf", "-lW", str(binary)], capture_output=True, text=True)
    segments = []
    for line in run.stdout.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"]:
            segments.append((int(words[1], 16), int(words[4], 16), int(words[2], 16)))
    if not segments:
        raise ProfileError(f"readelf {binary}: {run.stderr.strip() or 'no segments'}")
    return segments


def to_address(segments, offset):
    for start, size, address in segments:
        if start <= offset < start + size:
            return offset - start + address
    return offset


def read(data, binary):
    segments = load_segments(binary)
    maps = collections.defaultdict(list)
    costs = collections.defaultdict(lambda: [0])
    for line in script(data, "--show-mmap-events", "-F", "pid,ip,dso"):
        if found := MMAP.search(line):
            pid, start, size, offset, path = found.groups()
            maps[int(pid)].append((int(start, 16), int(size, 16), int(offset, 16), path))
        elif found := SAMPLE.match(line):
            pid, address, dso = int(found[1]), int(found[2], 16), found[3]
            for start, size, offset, path in maps[pid]:
                if start <= address < start + size:
                    key = (path, to_address(segments, address - start + offset))
                    break
            else:
                key = (dso, None)
            costs[key][0] += 1e9 / FREQUENCY
    return costs
