"""What scrapes of the metrics cost a cluster: throughput with and without, and processor time."""
import statistics
import threading
import time

PAIRS = 10
COUNTED = 50    # scrapes whose processor time is counted
PERIOD_S = 1


class Scraper:
    """Reads all metrics at once, and then every second, while the `with` block runs."""

    def __init__(self, cluster):
        self.cluster, self.ends = cluster, threading.Event()
        self.thread = threading.Thread(target=self.work)

    def work(self):
        begin = time.monotonic()
        number = 0
        while not self.ends.is_set():
            self.cluster.scrape()
            number += 1
            self.ends.wait(max(0.0, begin + number * PERIOD_S - time.monotonic()))

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def measure(cluster, options):
    """Pipelined gets of two clients, with and without scrapes, in turns."""
    row = next(row for row in cluster.rows() if row.case == "get-pipelined" and row.clients == 2)
    changes = []
    for pair in range(1 if options.smoke else PAIRS):
        # Every other pair has the other order, so that a steady change of the machine cancels out.
        for scraped in ((False, True) if pair % 2 == 0 else (True, False)):
            if scraped:
                with Scraper(cluster):
                    row.run(options.seconds)
                with_scrapes = row.runs[-1]
            else:
                row.run(options.seconds)
                without = row.runs[-1]
        changes.append(with_scrapes / without - 1)
    cluster.scrape()
    before, begin = cluster.cpu_s(), time.monotonic()
    time.sleep(max(1.0, options.seconds))
    idle_per_s = (cluster.cpu_s() - before) / (time.monotonic() - begin)
    before, begin, size = cluster.cpu_s(), time.monotonic(), 0
    for _ in range(COUNTED):
        size += cluster.scrape()
    spent = cluster.cpu_s() - before - idle_per_s * (time.monotonic() - begin)
    changes.sort()
    return {"pairs": len(changes), "change_percent": 100 * statistics.median(changes),
            "change_percent_quartiles": [100 * changes[len(changes) // 4],
                                         100 * changes[-1 - len(changes) // 4]],
            "processes": len(cluster.targets()), "bytes": size // COUNTED,
            "cpu_ms": 1e3 * spent / COUNTED}


def text_of(found):
    low, high = found["change_percent_quartiles"]
    return (f"\nA scrape of all {found['processes']} processes every second changes the rate of "
            f"pipelined gets by {found['change_percent']:+.2f} % (median of {found['pairs']} "
            f"pairs; quartiles {low:+.2f} to {high:+.2f} %). It has {found['bytes']:,} bytes, and "
            f"costs the cluster {found['cpu_ms']:.2f} ms of processor time, "
            f"{found['cpu_ms'] / 10:.2f} % of one CPU.")
