"""bench/lines divides counts by commits, sums over homes, and sorts structures."""
import importlib.machinery
import importlib.util
import pathlib
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import plain_tests  # noqa: E402


def script():
    """Returns the module of the script, whose name has no suffix."""
    loader = importlib.machinery.SourceFileLoader("lines_script", str(ROOT / "bench/lines"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


SCRIPT = script()


def report(own_misses=100, commits=10):
    home = {"accesses": 1000, "writes": 40, "lines": 200, "firsts": 0, "firsts_of_dirty": 2,
            "misses": 0, "upgrades": 10}
    structure = {"written_lines": 1, "contended_lines": 1, "writes": 3, "upgrades": 1,
                 "misses_own": 4, "misses_other": 5, "firsts_other": 2, "firsts_of_dirty": 1}
    return {"commits": commits, "aborts": 5, "contended_lines": 7,
            "homes": {"own": {**home, "misses": own_misses}, "other": {**home, "misses": 20},
                      "cluster": home},
            "structures": {"busy": structure, "idle": {key: 0 for key in structure}}}


def row_of(lines, first):
    found = [line.strip("| ").split(" | ") for line in "\n".join(lines).splitlines()
             if line.startswith(f"| {first} |")]
    assert len(found) == 1, (first, found)
    return found[0]


def test_figures_are_of_a_transaction():
    lines = SCRIPT.tables("tpcc", {"2x1": [report(), report(own_misses=300)]}, 10)
    row = dict(zip(row_of(lines, "nodes x workers"), row_of(lines, "2x1"), strict=True))
    assert row["accesses"] == "300" and row["lines"] == "60.0", row
    assert row["misses, own node"] == "20.0" and row["misses, other nodes"] == "2.00", row
    assert row["upgrades"] == "3.00" and row["first accesses to dirty lines"] == "0.60", row


def test_contended_lines_are_those_of_the_whole_run():
    lines = SCRIPT.tables("tpcc", {"2x1": [report(), report(commits=40)]}, 10)
    row = dict(zip(row_of(lines, "nodes x workers"), row_of(lines, "2x1"), strict=True))
    assert row["contended lines"] == "7.00", row


def test_structures_are_of_a_thousand_transactions_and_the_busiest_is_first():
    runs = {"2x1": [report()], "4x1": [report(commits=100)]}
    lines = SCRIPT.structure_table(runs, 1, ("misses_own", "misses_other", "upgrades"))
    assert row_of(lines, "busy") == ["busy", "1,000", "100"], lines
    assert not any(line.startswith("| idle") for line in lines)
    assert row_of(SCRIPT.structure_table(runs, 2, ("firsts_other",)), "busy")[1:] == ["200", "20.0"]


def test_the_spread_is_that_of_the_worst_seed():
    # 15 and 25 misses and upgrades of a transaction differ from their mean 20 by a quarter.
    assert abs(SCRIPT.spread({"2x1": [report(100), report(200)]}) - 0.25) < 1e-9
    assert SCRIPT.spread({"2x1": [report()]}) == 0


def test_shapes_have_nodes_and_workers():
    assert SCRIPT.shape_of_text("16x2") == "16x2"
    for text in ("16", "0x2", "x", "2x", "2x2x2"):
        try:
            SCRIPT.shape_of_text(text)
        except SCRIPT.argparse.ArgumentTypeError:
            continue
        raise AssertionError(text)


if __name__ == "__main__":
    plain_tests.run(globals())
