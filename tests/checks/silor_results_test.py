"""bench/silor computes windows, medians and checks from samples and reports."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import types
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import plain_tests  # noqa: E402
from paper_figures import (  # noqa: E402
    machine, published, results, silor, silor_compare, silor_period, silor_recovery, silor_whole)
from paper_figures.benches import MIB, PaperError  # noqa: E402
from paper_figures.experiments import Outcome  # noqa: E402
from paper_figures.silor_runs import (  # noqa: E402
    Runs, RunWatch, Sample, System, arguments_of, checkpoint_spans, panel, require_taken, windows)

MACHINE = {"cores": 2, "cpu": "a processor", "memory_bytes": 2**33, "kernel": "6.1"}


def report(rate, per_second=(900.0, 1100.0), p99=20_000):
    latency = {"read": {"p50": 10, "p99": 20}, "update": {"p50": 9_000, "p99": p99}}
    return {"throughput_tps": rate, "machine": MACHINE,
            "runs": [{"per_second_tps": list(per_second), "durable_latency_us": latency,
                      "latency_us": {"read": {"p50": 1, "p99": 2}}}]}


class FakeBench:
    """Answers with rates instead of measuring. There is no cluster whose metrics could be read."""

    def __init__(self, rates=()):
        self.rates, self.machine, self.work = iter(rates), MACHINE, pathlib.Path("/work")
        self.commands = []

    def run(self, *arguments, what=""):
        self.commands.append((what, [str(each) for each in arguments]))
        return report(1000.0 * next(self.rates))

    def log_dir(self):
        raise OSError("no cluster")

    def say(self, text):
        pass


def options(**more):
    values = {"nodes": 2, "workers": 1, "pool_mib": 512, "seconds": 2, "warmup": 0, "repeat": 1,
              "records": 4000, "interval": 1, "smoke": True, **more}
    return types.SimpleNamespace(**values)


def sample(at, commits, is_copying=False, epochs=0.0, epoch_s=0.0, lag_s=0.0, written=0.0,
           memory=0.0, taken=0, took_s=0.0):
    return Sample(at, is_copying, commits, written, memory, epochs, epoch_s, lag_s, taken, took_s)


def watch_of(samples):
    watch = RunWatch(FakeBench())
    watch.samples = samples
    return watch


def holds(outcome):
    return [check["holds"] for check in outcome.checks]


def fits(outcome):
    return all(len(row) == len(outcome.columns) for row in outcome.rows)


def script():
    """Returns the module of the script, whose name has no suffix."""
    loader = importlib.machinery.SourceFileLoader("silor_script", str(ROOT / "bench/silor"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def parsed(*words):
    """Returns the options, or the text of the error."""
    errors = io.StringIO()
    with mock.patch.object(sys, "argv", ["bench/silor", *words]), \
            contextlib.redirect_stderr(errors):
        try:
            return script().parse()
        except SystemExit:
            return errors.getvalue()


def test_sizes_that_would_be_zero_are_errors():
    assert parsed("recovery", "--records", "4", "--nodes", "3", "--pool-mib", "6").records == 4
    assert "--records is at least 4" in parsed("recovery", "--records", "3")
    found = parsed("compare", "--nodes", "3", "--pool-mib", "5")
    assert "--pool-mib is at least 6 for 3 nodes; it is 5" in found, found
    assert parsed("recovery", "--smoke", "--records", "1").smoke, "smoke runs have their own sizes"


def test_the_command_has_all_sizes():
    words = ["figure1", "--seconds", "7", "--warmup", "0", "--repeat", "2", "--nodes", "2",
             "--workers", "3", "--records", "50", "--interval", "4"]
    found = script().command_of("figure1", parsed(*words))
    assert found == " ".join(["bench/silor", *words]), found
    assert "--pool-mib 99" in script().command_of("recovery", parsed("recovery", "--pool-mib",
                                                                     "99"))


def test_samples_are_sums_over_processes():
    watch = RunWatch(FakeBench())
    watch.take([("atoll_commits_total{node=\"0\"}", 1.0)])
    assert not watch.samples, "the coordinator has not started"
    watch.take([("atoll_commits_total{node=\"0\",type=\"write\"}", 5.0),
                ("atoll_commits_total{node=\"1\",type=\"write\"}", 7.0),
                ("atoll_pool_size_bytes{node=\"0\"}", 100.0),
                ("atoll_pool_free_bytes{node=\"0\"}", 30.0),
                ("atoll_snapshot_cache_used_bytes{node=\"0\"}", 5.0),
                ("atoll_logger_written_bytes_total{logger=\"0\"}", 3.0),
                ("atoll_checkpoint_written_bytes_total{node=\"1\"}", 4.0),
                ("atoll_epoch_current", 9.0), ("atoll_checkpoint_running", 1.0),
                ("atoll_checkpoints_taken_total", 2.0),
                ("atoll_checkpoint_duration_seconds", 0.5)])
    found = watch.samples[0]
    assert (found.commits, found.memory, found.written) == (12.0, 75.0, 7.0), found
    assert found.is_copying and (found.taken, found.took_s) == (2, 0.5)


def test_the_measured_time_ends_with_the_last_commit():
    # The load ends at 1, the run goes from 4 to 6, and the cluster ends at 8.
    commits = {0: 0, 1: 50, 2: 50, 3: 50, 4: 50, 5: 60, 6: 70, 7: 75, 8: 75}
    watch = watch_of([sample(at, count) for at, count in commits.items()])
    assert [each.at for each in watch.measured(2)] == [5, 6]
    assert watch_of([sample(0, 5), sample(1, 5)]).measured(2) == []


def test_windows_have_rates_and_latencies():
    samples = [sample(10.0, 0), sample(10.2, 100, epochs=2, epoch_s=0.02),
               sample(10.4, 200, epochs=4, epoch_s=0.08), sample(10.6, 200, epochs=4, epoch_s=0.08),
               sample(10.8, 200, epochs=4, epoch_s=0.08, lag_s=0.3)]
    found = [tuple(round(each, 6) for each in window) for window in windows(samples)]
    # The last window has no epoch that became durable, and no commit.
    assert found == [(0.4, 0.5, 20.0), (0.6, 0.25, 30.0), (0.8, 0.0, 300.0)], found
    assert windows(samples[:2]) == []
    runs = Runs(1)
    runs.add(report(1000.0), watch_of(samples))
    # The last periods without a commit are not part of the measured time.
    assert [each.at for each in runs.samples()[0]] == [10.0, 10.2]
    assert runs.worst_window == 0.0 and runs.window_latencies == [0.0, 0.0]


def test_spans_of_checkpoints_are_joined():
    samples = [sample(at, at, copying) for at, copying in
               enumerate([False, True, True, False, False, True])]
    assert checkpoint_spans(samples) == [(0, 2), (4, 5)]


def test_runs_have_medians():
    runs = Runs(3)
    for rate, worst, p99 in ((1000.0, 800.0, 9_000), (3000.0, 100.0, 30_000),
                             (2000.0, 900.0, 20_000)):
        samples = [sample(0, 0, written=50.0, memory=1.0), sample(1, 10, written=90.0, memory=7.0),
                   sample(2, 20, written=130.0, memory=3.0), sample(3, 30, written=500.0)]
        runs.add(report(rate, (worst, 5000.0), p99), watch_of(samples))
    assert (runs.rate, runs.worst_second, runs.latencies) == (2.0, 0.8, [9.0, 20.0])
    assert (runs.memory, runs.written_per_commit, runs.written_mb) == (7.0, 4.0, 40 / 1e6)
    assert runs.per_second == [[0, 0.9], [1, 5.0]]


def runs_with(*counters):
    """Runs that end with these counters of checkpoints. One was taken before the measured time."""
    runs = Runs(2)
    for counter in counters:
        samples = [sample(0, 0), sample(1, 10, True, taken=1, took_s=9.0),
                   sample(2, 20, counter > 1, taken=counter, took_s=0.25 * counter),
                   sample(3, 30), sample(4, 30)]
        runs.add(report(1000.0), watch_of(samples))
    return runs


def test_only_checkpoints_of_the_measured_time_count():
    runs = runs_with(1, 3, 4)
    assert (runs.taken_of_each, runs.taken, runs.took_s) == ([0, 2, 3], 2, 0.75)
    assert runs.copying_share == 1.0 and runs_with(1).copying_share == 0.5
    require_taken(options(smoke=False), "figure", {"SiloR": runs_with(2, 2)})
    require_taken(options(), "figure", {"SiloR": runs})
    try:
        require_taken(options(smoke=False), "figure", {"SiloR": runs})
    except PaperError as error:
        assert "figure: SiloR has completed no checkpoint" in str(error), error
    else:
        raise AssertionError("a run without a checkpoint was accepted")
    empty = Runs(2)
    empty.add(report(1000.0), watch_of([]))
    assert (empty.taken, empty.took_s, empty.copying_share) == (0, 0.0, 0.0)


def test_arguments_have_the_shape_of_the_system():
    system = System({"node.running_workers": 6}, ("--durability", "off"), workers=6)
    found = " ".join(map(str, arguments_of(FakeBench(), options(), system)))
    assert "--nodes 2 --workers-per-node 6" in found and found.endswith("--durability off"), found
    assert "--set node.running_workers=6" in found


def test_fewer_workers_are_an_eighth_less_but_at_least_one():
    assert silor.fewer_workers(options(nodes=4, workers=8)) == (4, 7)
    assert silor.fewer_workers(options(nodes=2, workers=2)) == (2, 1)
    assert silor.fewer_workers(options(nodes=2, workers=1)) == (1, 1)
    assert silor.fewer_workers(options(nodes=1, workers=1)) == (1, 1)


def test_figures_check_the_ratios_of_the_paper():
    good = silor.figure1(FakeBench([100, 95, 92, 80]), options())
    assert holds(good) == [True, True] and fits(good), good.checks
    paper = [(row[0], row[3], row[5]) for row in good.rows[4:]]
    assert paper == [("paper, MemSilo", "", ""), ("paper, LogSilo", "", ""),
                     ("paper, SiloR (mean latency)", 90.0, 1192.0)], paper
    bad = silor.figure5(FakeBench([100, 99, 92, 80]), options())
    assert holds(bad) == [False, False] and fits(bad), bad.checks
    try:
        silor.figure1(FakeBench([100, 95, 92, 80]), options(smoke=False))
    except PaperError as error:
        assert "silor1: gleaned has completed no checkpoint or snapshot" in str(error), error
    else:
        raise AssertionError("a run without checkpoints was accepted")


def test_figures_2_to_4_run_their_systems():
    bench = FakeBench([100, 90])
    figure2 = silor.figure2(bench, options(workers=8))
    assert fits(figure2) and [row[1] for row in figure2.rows] == [16, 14, 32, 28], figure2.rows
    assert [row[2] for row in figure2.rows] == [2, 2, "", ""], figure2.rows
    bench = FakeBench([100, 90, 80, 70])
    figure3 = silor.figure3(bench, options())
    assert fits(figure3) and [row[1] for row in figure3.rows] == [1, 2, 4, 4, 28, 32], figure3.rows
    assert [row[2] for row in figure3.rows] == [1, 2, 2, 2, "", ""], figure3.rows
    # The default of running_workers would be all of them on a machine with few cores.
    running = [[word for word in words if "running_workers" in word] for _, words in bench.commands]
    assert running == [[], [], ["node.running_workers=1"], ["node.running_workers=2"]], running
    bench = FakeBench([100, 90, 80])
    with mock.patch.object(silor, "allows_direct_io", lambda _: True):
        figure4 = silor.figure4(bench, options())
    assert fits(figure4) and len(figure4.rows) == 3 and not figure4.checks
    with mock.patch.object(silor, "allows_direct_io", lambda _: False):
        assert len(silor.figure4(FakeBench([100, 90, 80]), options()).checks) == 2
    syncs = ["durability.checkpoint_sync_volume=0B" in words for _, words in bench.commands]
    pauses = [f"durability.checkpoint_pause={silor.PAUSE}" in words for _, words in bench.commands]
    assert syncs == [True, True, False] and pauses == [False, True, False]


def test_many_syncs_may_be_a_tenth_worse_than_one():
    def windows_of(worst_window, longest):
        return types.SimpleNamespace(worst_window=worst_window, window_latencies=[1.0, longest])

    for worst, longest, expected in ((91.0, 109.0, [True, True]), (89.0, 111.0, [False, False]),
                                     (500.0, 5.0, [True, True])):
        outcome = Outcome([], [])
        silor.check_syncs(outcome, windows_of(100.0, 100.0), windows_of(worst, longest))
        assert holds(outcome) == expected, outcome.checks


def test_direct_io_is_tried():
    with tempfile.TemporaryDirectory() as folder:
        assert isinstance(machine.allows_direct_io(folder), bool)
        assert not list(pathlib.Path(folder).iterdir()), "the file is removed"
    # The temporary file is opened with os.open, too.
    with mock.patch.object(machine.tempfile, "NamedTemporaryFile"), \
            mock.patch.object(machine.os, "open", side_effect=OSError(22, "Invalid argument")):
        assert not machine.allows_direct_io("folder")


def test_killed_clusters_have_their_settings():
    texts = []

    class ConfigBench(FakeBench):
        def config(self, text):
            texts.append(text)
            return "silor.toml"

    cluster = silor_recovery.KilledCluster(ConfigBench(), options(pool_mib=127))
    cluster.set_order(silor_recovery.OLDEST)
    assert all('log_file_size = "256MiB"' in text for text in texts), texts
    assert f'volatile_pool = "{62 * MIB}B"' in texts[0], "a multiple of 2 MiB for each node"
    assert [f'replay_order = "{order}"' in text for order, text in
            zip(("newest_first", "oldest_first"), texts)] == [True, True], texts
    assert all('checkpoint_interval = "0s"' in text and "[gleaner]" not in text for text in texts)
    silor_recovery.KilledCluster(ConfigBench(), options(), "tpcc", "gleaned")
    assert 'scheme = "gleaned"' in texts[2] and "checkpoint_interval" not in texts[2], texts
    assert '[gleaner]\ninterval = "24h"\nlog_volume = "1TiB"' in texts[2], texts
    assert f'volatile_pool = "{1024 * MIB}B"' in texts[2]
    silor_recovery.KilledCluster(ConfigBench(), options(), log_file="8MiB")
    assert 'log_file_size = "8MiB"' in texts[3], texts


def test_log_files_are_counted_between_kill_and_start():
    calls = []

    class CountedCluster(silor_recovery.KilledCluster):
        def kill(self):
            calls.append("kill")

        def atoll(self, *arguments):
            calls.append((arguments, self.log_files))

    with tempfile.TemporaryDirectory() as folder:
        bench = FakeBench()
        bench.work, bench.config = pathlib.Path(folder), lambda text: text
        for path in ("node0/log_1_0_000000.atlog", "node1/log_1_0_000001.atlog",
                     "coordinator/ddl_000000.atlog"):
            file = bench.work / "data" / path
            file.parent.mkdir(parents=True)
            file.touch()
        CountedCluster(bench, options()).recover()
    assert calls == ["kill", (("up",), 2), (("bench", "ycsb", "verify"), 2)], calls


class FakeCluster:
    """Overwrites fewer records with the newest file first, except if `overwritten` says so."""

    overwritten = {silor_recovery.NEWEST: 10, silor_recovery.OLDEST: 40}

    sizes = []
    log_files = 3

    def __init__(self, *_, log_file=None):
        self.order = silor_recovery.NEWEST
        self.sizes.append(log_file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def set_order(self, order):
        self.order = order

    def replay(self):
        return {"ms": 1000, "bytes": 10**9, "inserted": 5, "older": 7,
                "overwritten": self.overwritten[self.order]}

    def fill(self, records):
        pass

    def atoll(self, *arguments):
        pass

    def change(self, seconds):
        pass

    def recover(self):
        return 2.5


def test_recoveries_compare_the_orders():
    real = silor_recovery.KilledCluster
    silor_recovery.KilledCluster = FakeCluster
    try:
        found = silor_recovery.recovery(FakeBench(), options())
        assert holds(found) == [True] * 5 and fits(found), found.checks
        assert sum("oldest file first" in row[0] for row in found.rows) == 2
        # Each file was read by one of the two nodes.
        assert found.rows[0][2:6] == [3, 1000.0, 1.0, 1000.0], found.rows[0]
        assert FakeCluster.sizes == ["8MiB"] * 5, FakeCluster.sizes
        FakeCluster.overwritten[silor_recovery.NEWEST] = 40
        found = silor_recovery.recovery(FakeBench(), options())
        assert holds(found) == [True, True, True, False, False], found.checks
    finally:
        silor_recovery.KilledCluster = real


def test_the_comparison_has_both_schemes_and_workloads():
    clusters = []

    class TimedCluster(FakeCluster):
        """Recovers in 1, 9 and 2 seconds, again and again."""

        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.number, self.calls = len(clusters), [arguments[2:]]
            clusters.append(self.calls)

        def atoll(self, *arguments):
            self.calls.append(arguments)

        def change(self, seconds):
            self.calls.append(seconds)

        def recover(self):
            return (1.0, 9.0, 2.0)[self.number % 3]

    every = mock.patch.object(silor_compare, "SMOKE_WORKLOADS", silor_compare.WORKLOADS)
    with every, mock.patch.object(silor_compare, "KilledCluster", TimedCluster):
        found = silor_compare.compare(FakeBench([100, 90, 50, 40]), options(interval=7))
        assert [row[-1] for row in found.rows] == [1.0, 9.0, 2.0, 1.0], "one recovery each"
        assert clusters == [[("ycsb", "silor"), ("checkpoint", "take"), 7],
                            [("ycsb", "gleaned"), ("snapshot", "take"), 7],
                            [("tpcc", "silor"), ("checkpoint", "take"), 7],
                            [("tpcc", "gleaned"), ("snapshot", "take"), 7]], clusters
        clusters.clear()
        found = silor_compare.compare(FakeBench([100, 90, 50, 40] * 5), options(repeat=5))
    assert fits(found), found.rows
    assert [row[0] for row in found.rows] == ["YCSB, SiloR", "YCSB, gleaned", "TPC-C, SiloR",
                                              "TPC-C, gleaned"]
    assert [row[-1] for row in found.rows] == [2.0] * 4, "medians of three recoveries"
    assert len(clusters) == 12


class WholeBench(FakeBench):
    """Records the limit of each run."""

    def __init__(self, rates):
        super().__init__(rates)
        self.environment, self.limits = {}, []

    def run(self, *arguments, what=""):
        self.limits.append(self.environment[silor_whole.LIMIT])
        return super().run(*arguments, what=what)


def test_small_updates_are_measured_as_parts_and_whole():
    clusters = []

    class WholeCluster(FakeCluster):
        committed = 500_000.0

        def __init__(self, bench, _, record):
            super().__init__()
            clusters.append((bench.environment[silor_whole.LIMIT], record))

    with mock.patch.object(silor_whole, "KilledCluster", WholeCluster):
        bench = WholeBench([100, 90] * 4)
        found = silor_whole.whole(bench, options(smoke=False))
    assert fits(found) and [row[1] for row in found.rows] == [64, 64, 128, 128, 256, 256, 512, 512]
    limits = ["0", "64", "0", "128", "0", "256", "0", "512"]
    assert bench.limits == limits and [limit for limit, _ in clusters] == limits, clusters
    assert clusters[2][1] == ("--record-bytes", 128, "--fields", 8), clusters
    assert "--record-bytes 512 --fields 32" in " ".join(bench.commands[-1][1]), bench.commands
    # Half a million transactions in a second, 1 GB of files, each read by one node.
    assert found.rows[1][3] == 0.9 and found.rows[1][5:] == [1.0, 1000.0, 0.5, 2.0], found.rows
    assert bench.environment == {}, "other clusters have the limit of the product"


def test_nodes_must_obey_the_limit():
    found = {name: types.SimpleNamespace(written_per_commit=50.0, rate=1.0)
             for name in (silor_whole.PARTS, silor_whole.WHOLE)}
    with mock.patch.object(silor_whole, "run_in_turns", lambda *_: found):
        try:
            silor_whole.whole(WholeBench([]), options())
        except PaperError as error:
            assert silor_whole.LIMIT in str(error), error
        else:
            raise AssertionError("equally long logs were accepted")


def test_the_interval_of_checkpoints_is_varied():
    assert silor_period.intervals(options(interval=5)) == [1, 2, 5, 10]
    assert silor_period.intervals(options(interval=1)) == [1, 2]
    calls = []

    class PeriodCluster(FakeCluster):
        def atoll(self, *arguments):
            calls.append(arguments)

        def change(self, seconds):
            calls.append(seconds)

    bench = FakeBench([50, 80, 90, 100])
    with mock.patch.object(silor_period, "KilledCluster", PeriodCluster):
        found = silor_period.period(bench, options(interval=5))
    assert fits(found) and [row[2] for row in found.rows] == [0.5, 0.8, 0.9, 1.0], found.rows
    assert [row[8] for row in found.rows] == [2.5] * 4, found.rows
    take = ("checkpoint", "take")
    assert calls == [take, 1, take, 2, take, 5, take, 10], calls
    settings = [word for _, words in bench.commands for word in words if "interval=" in word]
    assert settings == [f"durability.checkpoint_interval={s}s" for s in (1, 2, 5, 10)], settings
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "plot.svg"
        results.draw(found.plot, "title", file)
        assert "recovery, s" in file.read_text(encoding="utf-8")


def test_sections_and_plots():
    samples = [sample(at, 10 * at, at == 2, epochs=at, epoch_s=0.01 * at) for at in range(6)]
    plot = {"x": "seconds", "y": "thousand/s", "y2": "latency, ms",
            "panels": {"one": panel(samples), "none": panel([])}}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "plot.svg"
        results.draw(plot, "title", file)
        assert "<svg" in file.read_text()
        first = file.read_bytes()
        results.draw(plot, "title", file)
        assert first == file.read_bytes(), "equal figures give equal plots"
    outcome = silor.figure1(FakeBench([100, 95, 92, 80]), options())
    for name in silor.NAMES.values():
        assert name in published.TITLES
        text = results.section(name, outcome, f"bench/silor {name}", None)
        long = [line for line in text.splitlines() if len(line) > 100 and line[0] not in "|!"]
        assert not long, long
    assert set(silor.NAMES) == set(silor.EXPERIMENTS)


def test_each_experiment_has_its_part_of_the_results():
    page = (ROOT / "bench/RESULTS.md").read_text(encoding="utf-8")
    for name in silor.EXPERIMENTS:
        for mark in results.marks_of(f"bench/silor {name}"):
            assert page.count(mark) == 1, mark
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "RESULTS.md"
        file.write_text(page, encoding="utf-8")
        results.put_into(file, ["### new"], MACHINE, results.marks_of("bench/silor compare"))
        text = file.read_text(encoding="utf-8")
    begin, end = results.marks_of("bench/silor compare")
    assert "### new" in text[text.index(begin):text.index(end)]
    assert text[:text.index(begin)] == page[:page.index(begin)]
    assert text[text.index(end):] == page[page.index(end):]


if __name__ == "__main__":
    plain_tests.run(globals())
