"""Tests the limits of bench/memory: what passes, what is a miss, and which rows --must-hold runs."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
from larger_than_memory.cases import MIB, Case  # noqa: E402
from larger_than_memory.must_hold import misses, verdict  # noqa: E402
from larger_than_memory.programs import Run, result  # noqa: E402


def load_script():
    loader = importlib.machinery.SourceFileLoader("bench_memory", str(BENCH / "memory"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


SCRIPT = load_script()
AT_THE_LIMITS = {"longest_pause_ms": 100, "worst_below_mean_percent": 50, "p999_ms": 50,
                 "longest_ms": 250}
LATENCIES = {"all": {"p99": 20e3, "p99.9": 40e3, "max": 95e3},
             "delivery": {"p99": 60e3, "p99.9": 90e3, "max": 95e3}}


class NoDevice:
    name = None

    @staticmethod
    def counts():
        return 0, 0


class Limits(unittest.TestCase):
    def test_a_run_at_all_limits_passes(self):
        self.assertEqual(misses(AT_THE_LIMITS), [])
        self.assertEqual(verdict([AT_THE_LIMITS] * 3), "pass")

    def test_a_run_past_any_limit_misses_only_this_one(self):
        for key, limit in AT_THE_LIMITS.items():
            found = misses({**AT_THE_LIMITS, key: limit + 1})
            self.assertEqual(len(found), 1, key)
            self.assertIn(str(limit + 1), found[0])

    def test_one_run_of_three_past_a_limit_is_a_miss(self):
        late = {**AT_THE_LIMITS, "longest_ms": 900}
        self.assertEqual(verdict([AT_THE_LIMITS, late, AT_THE_LIMITS]),
                         "miss in 1 of 3 runs: longest 900 ms")

    def test_the_worst_second_counts_against_the_mean(self):
        for worst, expected in ((50, 50), (49, 51), (0, 100), (100, 0)):
            run = result(Case(1, "50:50", "uniform", 10), Run(NoDevice), (0, 1, 1), (100, worst),
                         LATENCIES, 1)
            self.assertAlmostEqual(run["worst_below_mean_percent"], expected)

    def test_p999_of_all_operations_counts_and_the_longest_of_any(self):
        run = result(Case(1, "TPC-C", "", 2), Run(NoDevice), (0, 1, 1), (100, 60), LATENCIES, 1)
        self.assertEqual((run["p999_ms"], run["slowest_p999_ms"], run["longest_ms"]), (40, 90, 95))
        self.assertEqual(misses(run), [])


class Options(unittest.TestCase):
    @staticmethod
    def parse(*arguments):
        before, sys.argv = sys.argv, ["bench/memory", *arguments]
        try:
            return SCRIPT.parse()
        finally:
            sys.argv = before

    def test_everything_has_all_ratios_and_medians_of_three(self):
        options = self.parse()
        self.assertEqual((list(options.ratios), options.repeat), ([0.5, 1, 2, 4, 10], 3))
        rows = {(case.mix, case.distribution) for case in SCRIPT.cases(options)}
        self.assertEqual(len(list(SCRIPT.cases(options))), 5 * len(rows))
        self.assertLessEqual({("scan", "zipfian"), ("insert", "new"), ("TPC-C", "")}, rows)

    def test_must_hold_runs_writing_mixes_of_atoll_once(self):
        options = self.parse("--must-hold")
        self.assertEqual((list(options.systems), options.repeat), (["atoll"], 1))
        cases = list(SCRIPT.cases(options))
        self.assertEqual(len(cases), 18)
        self.assertEqual({case.mix for case in cases}, {"95:5", "50:50", "insert", "TPC-C"})
        self.assertGreater(max(case.count for case in cases), 9 * 640 * MIB // 140)

    def test_given_lists_win_over_those_of_must_hold(self):
        options = self.parse("--must-hold", "--ratios", "2", "--repeat", "3")
        self.assertEqual((list(options.ratios), options.repeat), ([2.0], 3))

    def test_wrong_values_are_usage_errors(self):
        for wrong in (("--ratios", "0"), ("--mixes", "10:90"), ("--repeat", "0")):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                self.parse(*wrong)

    def test_medians_are_of_each_figure(self):
        runs = [{"rate": 3, "reads": None}, {"rate": 9, "reads": 4}, {"rate": 5, "reads": 6}]
        self.assertEqual(SCRIPT.median(runs), {"rate": 5, "reads": 5})


if __name__ == "__main__":
    unittest.main()
