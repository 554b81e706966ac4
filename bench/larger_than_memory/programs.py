"""Runs programs, and counts what a block device does meanwhile."""
import os
import pathlib
import re
import subprocess
import threading
import time

from larger_than_memory.cases import MemoryBenchError

SECOND = re.compile(r"^\s*(\d+) s:\s+([\d,]+) ")
SAMPLE_S = 0.05
SECTOR_BYTES = 512
PATIENCE_S = 3 * 3600
STOP_PATIENCE_S = 60


class Device:
    """The block device under a folder."""

    def __init__(self, folder):
        number = os.stat(folder).st_dev
        path = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        self.name = path.resolve().name if path.exists() else None

    def counts(self):
        """Returns (reads, bytes written) of all programs since the system started."""
        for line in pathlib.Path("/proc/diskstats").read_text(encoding="utf-8").splitlines():
            fields = line.split()
            if fields[2] == self.name:
                return int(fields[3]), int(fields[9]) * SECTOR_BYTES
        return 0, 0


class Run:
    """The run of a program: its lines with their times, and the counts of the device."""

    def __init__(self, device):
        self.lines = []     # (time, text)
        self.samples = []   # (time, reads, bytes written), the oldest first
        self.device = device
        self.is_late = False  # it was killed because it took too long

    @property
    def text(self):
        return "".join(text for _, text in self.lines)

    def sample(self):
        self.samples.append((time.monotonic(), *self.device.counts()))

    def seconds(self):
        """Returns {second: (time of its line, rate)} of the lines `3 s: 123,456 ...`."""
        return {int(found[1]): (at, int(found[2].replace(",", "")))
                for at, text in self.lines if (found := SECOND.match(text))}

    def sync(self):
        """Writes to the device what the program left in the page cache. Returns the time."""
        os.sync()
        self.sample()
        return self.samples[-1][0]

    def device_counts(self, begin, end):
        """Returns the device's (reads, bytes written) in a time, or None without a device."""
        if self.device.name is None:
            return None, None
        first, last = ([sample for sample in self.samples if sample[0] <= at][-1:]
                       or self.samples[:1] for at in (begin, end))
        return tuple(last[0][i] - first[0][i] for i in (1, 2))


def run(command, device, environment=None):
    """Runs a program to its end. If this raises, the program has ended, too."""
    done = Run(device)
    end = threading.Event()
    # A session of its own: Ctrl-C reaches only this script, which then stops the program once.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment, start_new_session=True) as process:

        def watch():
            limit = time.monotonic() + PATIENCE_S
            while not end.wait(SAMPLE_S):
                done.sample()
                if time.monotonic() > limit:
                    done.is_late = True
                    process.kill()

        done.sample()
        sampler = threading.Thread(target=watch)
        sampler.start()
        try:
            for line in process.stdout:
                done.lines.append((time.monotonic(), line))
            code = process.wait()
        except BaseException:
            stop(process)
            raise
        finally:
            end.set()
            sampler.join()
            done.sample()
    if code != 0:
        last = "".join(text for _, text in done.lines[-8:])
        reason = (f"killed after {PATIENCE_S} s: use fewer records (--ratios, --memory-mib)"
                  if done.is_late else f"ends with {code}")
        raise MemoryBenchError(f"{' '.join(command)}: {reason}:\n{last}")
    return done


def stop(process):
    process.terminate()
    try:
        process.wait(STOP_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def measured(done, options):
    """Returns (time, rate) of each measured second of a program that prints lines of seconds."""
    found = done.seconds()
    warmup, seconds = options.warmup, options.seconds
    lines = [found[second] for second in range(warmup + 1, warmup + seconds + 1) if second in found]
    if warmup not in found or not lines:
        raise MemoryBenchError(f"a run of {seconds} s prints no rates:\n{done.text[-400:]}")
    return [found[warmup], *lines]


def result(case, done, times, rates, latencies_us, changed_bytes_per_s):
    """Returns the figures of a run.

    `times`: begin and end of the measured time, and the end of the writes of what it changed.
    `rates`: mean and worst second. `latencies_us`: p99, p99.9 and max of each type of operation,
    and of `all` operations.
    """
    begin, end, end_of_writes = times
    reads, written = done.device_counts(begin, end)
    _, written_later = done.device_counts(begin, end_of_writes)

    def slowest(name):
        return max(each[name] for each in latencies_us.values()) / 1000

    def per_s(count, unit=1):
        return None if count is None or unit == 0 else count / (end - begin) / unit

    return {"ratio": case.ratio, "rate": rates[0], "worst": rates[1],
            "worst_below_mean_percent": 100 * (1 - rates[1] / rates[0]) if rates[0] else 100,
            "p99_ms": slowest("p99"), "p999_ms": latencies_us["all"]["p99.9"] / 1000,
            "slowest_p999_ms": slowest("p99.9"), "longest_ms": slowest("max"),
            "longest_pause_ms": None, "reads_per_s": per_s(reads),
            "written_per_s": per_s(written),
            "write_amplification": per_s(written_later, changed_bytes_per_s)}
