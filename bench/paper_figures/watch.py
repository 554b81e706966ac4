"""Watches the metrics of a cluster while a benchmark runs, because its cluster ends with it."""
import contextlib
import http.client
import threading

from common.metrics import scrape


class MetricsWatch:
    """Calls `take` with the metrics of all processes, as (name, value) pairs, again and again.
    `log_dir`: returns the folder with the logs of the cluster. Use it in a `with` block."""

    def __init__(self, log_dir, period_s):
        self.log_dir, self.period_s = log_dir, period_s
        self.end = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()

    def _watch(self):
        while not self.end.wait(self.period_s):
            # There are no metrics before the cluster has started, and after it has ended.
            with contextlib.suppress(OSError, ValueError, StopIteration, http.client.HTTPException):
                self.take(list(scrape(self.log_dir())))

    def take(self, found):
        raise NotImplementedError
