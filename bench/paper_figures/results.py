"""Writes the results of an experiment: JSON, a Markdown table, plots, a section of RESULTS.md."""
import json
import textwrap

from common.output import load_plots, save_plot, table_head, table_row
from paper_figures.benches import PaperError
from paper_figures.published import NOTES, TITLES

INCHES = (5.5, 3.4)
PANEL_INCHES = 1.9
MARKERS = "os^Dv"


def marks_of(command):
    """Returns the lines before and after the part of a Markdown file that the command replaces."""
    return f"<!-- {command}: begin -->", f"<!-- {command}: end -->"


BEGIN, END = marks_of("bench/paper")


def cell(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2f}" if abs(value) < 10 else f"{value:,.0f}"


def table(outcome):
    return "\n".join([table_head(outcome.columns, outcome.texts),
                      *(table_row(map(cell, row)) for row in outcome.rows)])


def wrapped(text, bullet=""):
    return textwrap.fill(text, 100, initial_indent=bullet, subsequent_indent=" " * len(bullet),
                         break_long_words=False, break_on_hyphens=False)


def check_lines(outcome):
    return [wrapped(f"{check['what']}: {check['value']:g}, must be {check['limit']}: "
                    f"{'holds' if check['holds'] else 'DOES NOT HOLD'}.", "* ")
            for check in outcome.checks]


def write(name, outcome, machine, command, folder):
    """Writes NAME.json, NAME.md, NAME.svg and NAME.png into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {"schema_version": 1, "experiment": name, "title": TITLES[name], "command": command,
             "machine": machine, "columns": outcome.columns, "rows": outcome.rows,
             "texts": outcome.texts, "checks": outcome.checks, "plot": outcome.plot}
    (folder / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n",
                                         encoding="utf-8")
    (folder / f"{name}.md").write_text(section(name, outcome, command, None) + "\n",
                                       encoding="utf-8")
    for suffix in ("svg", "png"):
        draw(outcome.plot, TITLES[name], folder / f"{name}.{suffix}")


def draw(plot, title, file):
    pyplot = load_plots()
    if "panels" in plot:
        figure = draw_panels(pyplot, plot, title)
        save_plot(figure, file)
        pyplot.close(figure)
        return
    figure, axes = pyplot.subplots(layout="constrained", figsize=INCHES)
    if "lines" in plot:
        draw_lines(axes, plot)
    elif "stacks" in plot:
        draw_stacks(pyplot, axes, plot)
    else:
        draw_bars(axes, plot)
    axes.set_title(title, fontsize="medium")
    if "right" in plot:  # the colors of the axes replace the legend
        draw_right(axes, plot)
    else:
        axes.set_ylabel(plot["y"])
        axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    save_plot(figure, file)
    pyplot.close(figure)


def draw_lines(axes, plot):
    for marker, (name, points) in zip(MARKERS, plot["lines"].items()):
        axes.plot(*zip(*points), marker=marker, label=name)
    scales = plot.get("log", "")
    if "x" in scales:
        axes.set_xscale("log")
        ticks = sorted({x for points in plot["lines"].values() for x, _ in points})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    if "y" in scales:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(plot["x"])
    axes.grid(True, alpha=0.3)


def draw_right(axes, plot):
    """Draws the lines of another unit, with an axis of their own at the right."""
    right = axes.twinx()
    for name, points in plot["right"].items():
        right.plot(*zip(*points), marker=MARKERS[1], color="C1", label=name)
    right.set_ylim(bottom=0)
    for at, label, color in ((axes, plot["y"], "C0"), (right, plot["y2"], "C1")):
        at.set_ylabel(label, color=color)
        at.tick_params(axis="y", colors=color)


def draw_panels(pyplot, plot, title):
    """Draws throughput and latency over time, a panel below the other, with the same scales. Grey
    times are those of checkpoints or snapshots."""
    panels = plot["panels"]
    figure, rows = pyplot.subplots(len(panels), layout="constrained", squeeze=False, sharex=True,
                                   figsize=(INCHES[0] * 1.4, PANEL_INCHES * len(panels)))
    figure.suptitle(title, fontsize="medium")
    tops = {name: max((y for panel in panels.values() for _, y in panel[name]), default=0) or 1
            for name in ("throughput", "latency")}
    for axes, (name, panel) in zip(rows[:, 0], panels.items()):
        for begin, end in panel["spans"]:
            axes.axvspan(begin, end, color="lightgrey", linewidth=0)
        right = axes.twinx()
        for at, (kind, color) in ((axes, ("throughput", "C0")), (right, ("latency", "C1"))):
            points = panel[kind]
            at.plot([x for x, _ in points], [y for _, y in points], color=color, linewidth=1)
            at.set_ylim(0, 1.05 * tops[kind])
            at.tick_params(axis="y", colors=color)
        axes.set_ylabel(plot["y"], color="C0")
        right.set_ylabel(plot["y2"], color="C1")
        axes.set_title(name, fontsize="small", loc="left")
    rows[-1, 0].set_xlabel(plot["x"])
    return figure


def draw_bars(axes, plot):
    width = 0.8 / len(plot["groups"])
    for number, (name, values) in enumerate(plot["groups"].items()):
        axes.bar([at + number * width for at in range(len(values))], values, width, label=name)
    middle = width * (len(plot["groups"]) - 1) / 2
    axes.set_xticks([at + middle for at in range(len(plot["bars"]))], plot["bars"])


def draw_stacks(pyplot, axes, plot):
    colors = pyplot.get_cmap("tab20").colors
    bottoms = [0.0] * len(plot["stacks"])
    for color, (name, values) in zip(colors, plot["parts"].items()):
        axes.bar(plot["stacks"], values, 0.6, bottom=bottoms, label=name, color=color)
        bottoms = [bottom + value for bottom, value in zip(bottoms, values)]


def section(name, outcome, command, picture):
    """The Markdown text of an experiment. `picture`: path of the plot, or None."""
    lines = [f"### {TITLES[name]}", "", f"`{command}`", "", table(outcome), ""]
    if picture is not None:
        lines += [f"![{TITLES[name]}]({picture})", ""]
    return "\n".join([*lines, *check_lines(outcome), *(wrapped(note, "* ") for note in NOTES[name])])


def machine_line(machine):
    return wrapped(f"Machine: {machine['cores']} cores of {machine['cpu']}, "
                   f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['kernel']}.")


def put_into(file, sections, machine, marks=(BEGIN, END)):
    """Replaces the text between the marks of a Markdown file."""
    begin, end = marks
    text = file.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise PaperError(f"{file}: has no lines \"{begin}\" and \"{end}\", or several")
    head, tail = text[:text.index(begin) + len(begin)], text[text.index(end):]
    body = "\n\n".join([machine_line(machine), *sections])
    file.write_text(f"{head}\n\n{body}\n\n{tail}", encoding="utf-8")
