"""A benchmark that is stopped by SIGTERM removes its folder, also while its cluster runs."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
PATIENCE_S = 120


class StoppedBenchmark(unittest.TestCase):
    def test_bench_paper_leaves_no_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            parent = pathlib.Path(folder)
            script = subprocess.Popen(
                [sys.executable, BENCH / "paper", "figure7", "--smoke", "--bin", BIN,
                 "--directory", folder, "--out", parent / "out"], stderr=subprocess.DEVNULL)
            end = time.monotonic() + PATIENCE_S
            while not list(parent.glob("atoll-paper-*/data*/*")):
                self.assertLess(time.monotonic(), end, "no cluster has begun")
                self.assertIsNone(script.poll(), "it has ended already")
                time.sleep(0.01)
            script.send_signal(signal.SIGTERM)
            self.assertEqual(script.wait(PATIENCE_S), 130)
            self.assertEqual(list(parent.glob("atoll-paper-*")), [])


if __name__ == "__main__":
    BIN = sys.argv.pop()
    unittest.main()
