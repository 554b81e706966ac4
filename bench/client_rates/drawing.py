"""Draws the rates of bench/clients: a plot for gets and one for puts."""
import statistics

from client_rates.systems import RatesError

COLORS = {"Atoll": "C0", "Redis": "C1", "SQLite": "C2", "LMDB": "C3"}
INCHES_PER_BAR = 0.17
WIDTH = 12


def load_library(file):
    """Loads the library of plots. Called first, so that no measurement is lost without it."""
    try:
        import matplotlib
    except ImportError as error:
        raise RatesError(f"--plot {file}: needs the package python3-matplotlib") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def label(row):
    clients = "" if row.clients == 1 else f", {row.clients} clients"
    durability = "" if row.durability in ("", "durable") else f", {row.durability}"
    return f"{row.client}: {row.case}{clients}{durability}"


def color(system):
    return next(shade for name, shade in COLORS.items() if name.lower() == system.lower())


def draw(rows, file):
    pyplot = load_library(file)
    kinds = {kind: [row for row in rows if row.case.startswith(kind) and row.runs]
             for kind in ("get", "put")}
    bars = max(1, *map(len, kinds.values()))
    figure, axes = pyplot.subplots(1, 2, layout="constrained",
                                   figsize=(WIDTH, 1.2 + INCHES_PER_BAR * bars))
    for each, (kind, found) in zip(axes, kinds.items()):
        for place, row in enumerate(found):
            rates = [rate / 1e3 for rate in row.runs]
            middle = statistics.median(rates)
            each.barh(place, middle, color=color(row.system),
                      xerr=[[middle - min(rates)], [max(rates) - middle]])
        each.set_yticks(range(len(found)), [label(row) for row in found], fontsize="x-small")
        each.invert_yaxis()
        each.set_xscale("log")
        each.set_title(f"{kind}s")
        each.grid(axis="x", alpha=0.3)
    figure.supxlabel("thousand records per second", fontsize="medium")
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=shade) for shade in COLORS.values()]
    figure.legend(handles, COLORS, loc="outside upper center", ncol=len(COLORS), fontsize="small")
    figure.savefig(file, dpi=150)
    pyplot.close(figure)
