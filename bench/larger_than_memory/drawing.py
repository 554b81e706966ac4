"""Draws the rates of bench/memory against the ratio of data to memory."""
from common.output import load_plots, save_plot
from larger_than_memory.cases import DISTRIBUTIONS, NEW_KEYS

STYLES = {"Atoll": ("C0", "o"), "RocksDB": ("C1", "s"), "LMDB": ("C2", "^")}
INCHES = 2.9  # of one plot
INCHES_OF_LEGEND = 0.4


def cells(rows):
    """Returns {(line, column): (title, rows)}: mixes are columns, distributions are lines. TPC-C
    has a column of its own."""
    mixes = list(dict.fromkeys(row["mix"] for row in rows))
    mixes.sort(key=lambda mix: mix == "TPC-C")
    found = {}
    lines = [name for name in DISTRIBUTIONS if any(row["distribution"] == name for row in rows)]
    for row in rows:
        keys = row["distribution"]
        place = (lines.index(keys) if keys in lines else 0, mixes.index(row["mix"]))
        title = row["mix"] + {"": "", NEW_KEYS: ", new keys"}.get(keys, f", {keys} keys")
        found.setdefault(place, (title, []))[1].append(row)
    return found


def draw(rows, file):
    pyplot = load_plots()
    found = cells(rows)
    lines, columns = (1 + max(place[i] for place in found) for i in (0, 1))
    width, height = INCHES * columns + INCHES_OF_LEGEND, INCHES * lines + INCHES_OF_LEGEND
    figure, axes = pyplot.subplots(lines, columns, squeeze=False, layout="constrained",
                                   figsize=(width, height))
    figure.get_layout_engine().set(rect=(0, 0, 1, INCHES * lines / height))
    for place in ((line, column) for line in range(lines) for column in range(columns)):
        if place in found:
            draw_cell(axes[place], *found[place])
        else:
            axes[place].set_axis_off()
    figure.supxlabel("data in times the memory", fontsize="medium")
    figure.supylabel("thousand per second", fontsize="medium")
    handles = {}
    for each in axes.flat:
        handles.update(zip(*reversed(each.get_legend_handles_labels())))
    figure.legend(handles.values(), handles.keys(), loc="upper center", ncol=len(handles),
                  fontsize="small")
    save_plot(figure, file)
    pyplot.close(figure)


def draw_cell(axes, title, rows):
    for system, (color, marker) in STYLES.items():
        points = sorted((row["ratio"], row["rate"] / 1000) for row in rows
                        if row["system"] == system)
        if points:
            axes.plot(*zip(*points), color=color, marker=marker, label=system)
    axes.set_title(title, fontsize="medium")
    axes.set(xscale="log", yscale="log")
    ticks = sorted({row["ratio"] for row in rows})
    axes.set_xticks(ticks, [f"{ratio:.2g}" for ratio in ticks])
    axes.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.grid(True, alpha=0.3)
