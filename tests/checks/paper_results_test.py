"""bench/paper writes tables, plots and the section of RESULTS.md, and checks shapes."""
import json
import pathlib
import sys
import tempfile
import types

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import plain_tests  # noqa: E402
from paper_figures import experiments, published, results  # noqa: E402
from paper_figures.benches import PaperError  # noqa: E402

MACHINE = {"cores": 2, "cpu": "a processor", "memory_bytes": 2**33, "kernel": "6.1"}


class FakeBench:
    """Answers with rates instead of measuring."""

    def __init__(self, rates):
        self.rates, self.machine, self.configs = iter(rates), MACHINE, []
        self.delay_error = None
        self.warmups = []

    def report(self, *_, warmup=None, **__):
        self.warmups.append(warmup)
        return {"throughput_tps": 1000.0 * next(self.rates), "machine": MACHINE}

    tpcc = run = report

    def config(self, text):
        self.configs.append(text)
        return "paper.toml"


def options(**more):
    values = {"nodes": 2, "workers": 1, "warehouses": 0, "pool_mib": 512, "seconds": 1,
              "warmup": 0, "repeat": 1, "blocks": False, "shapes": [], "ratios": [0, 10],
              "latencies": [0.1, 10.0], "lines": [15, 500], **more}
    return types.SimpleNamespace(**values)


def holds(outcome):
    return [check["holds"] for check in outcome.checks]


def test_shapes_are_checked():
    good = experiments.figure7(FakeBench([100, 90, 85, 80]), options())
    assert holds(good) == [True, True], good.checks
    bad = experiments.figure7(FakeBench([100, 90, 80, 80]), options())
    assert holds(bad) == [False, True], "80 % of the throughput is too little"
    assert not holds(experiments.figure7(FakeBench([100, 90]), options(ratios=[0])))
    # Latency 0.1 with both caches, then 10.
    assert holds(experiments.figure8(FakeBench([100, 50, 90, 10]), options())) == [True]
    assert holds(experiments.figure8(FakeBench([100, 50, 80, 10]), options())) == [False]
    assert holds(experiments.figure10(FakeBench([9, 9, 10, 13]), options())) == [True]
    assert holds(experiments.figure10(FakeBench([9, 9, 10, 12.9]), options())) == [False]


def test_hot_and_cold_have_time_to_fill_the_cache():
    bench = FakeBench([9, 9, 10, 13])
    experiments.figure10(bench, options(warmup=3))
    assert bench.warmups == [12] * 4, bench.warmups


def test_latencies_reach_the_config():
    bench = FakeBench([1, 1, 1])
    experiments.figure8(bench, options(latencies=[0.1], blocks=True))
    assert all("nvm_read_ns = 100\n" in config for config in bench.configs)
    assert ["nvm_block_ns" in config for config in bench.configs] == [False, False, True]
    assert ["lend_pool = false" in config for config in bench.configs] == [False, True, False]


def test_scale_up_ends_with_all_cores():
    found = experiments.shapes(options(nodes=2, workers=4))
    assert found == [(1, 1), (2, 1), (2, 2), (2, 4), (1, 8)], found
    assert experiments.shapes(options(nodes=3, workers=1))[-2][0] >= 3


def test_files_and_section():
    outcome = experiments.figure7(FakeBench([100, 90, 70, 80]), options())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        results.write("figure7", outcome, MACHINE, "bench/paper figure7", folder)
        assert json.loads((folder / "figure7.json").read_text())["rows"][1][0] == 10
        assert "<svg" in (folder / "figure7.svg").read_text()
        assert (folder / "figure7.png").read_bytes().startswith(b"\x89PNG")
        text = (folder / "figure7.md").read_text()
        assert "DOES NOT HOLD" in text and "| 10 | 70 | 80 | 0.70 | 0.89 |" in text, text
        first = (folder / "figure7.svg").read_bytes()
        results.draw(outcome.plot, published.TITLES["figure7"], folder / "figure7.svg")
        assert first == (folder / "figure7.svg").read_bytes(), "equal figures give equal plots"

        page = folder / "RESULTS.md"
        page.write_text(f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n")
        results.put_into(page, ["### new"], MACHINE)
        text = page.read_text()
        assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
        assert "### new" in text and "2 cores of a processor" in text
        page.write_text("no marks\n")
        try:
            results.put_into(page, ["### new"], MACHINE)
        except PaperError as error:
            assert "has no lines" in str(error)
        else:
            raise AssertionError("a file without marks was accepted")
    assert (ROOT / "bench/RESULTS.md").read_text().count(results.BEGIN) == 1


def test_lines_are_short():
    outcome = experiments.figure7(FakeBench([100, 90, 70, 80]), options())
    for name in published.TITLES:
        text = results.section(name, outcome, f"bench/paper {name}", f"plots/paper/{name}.svg")
        long = [line for line in text.splitlines() if len(line) > 100 and line[0] not in "|!"]
        assert not long, long


def test_other_plots_are_drawn():
    with tempfile.TemporaryDirectory() as folder:
        for plot in ({"y": "y", "bars": ["a", "b"], "groups": {"x": [1, 2], "y": [2, 1]}},
                     {"y": "y", "stacks": ["a", "b"], "parts": {"x": [1, 2], "y": [2, 1]}}):
            results.draw(plot, "title", pathlib.Path(folder) / "plot.svg")
            assert "<svg" in (pathlib.Path(folder) / "plot.svg").read_text()


if __name__ == "__main__":
    plain_tests.run(globals())
