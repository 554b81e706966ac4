"""Markdown tables and plots of the scripts."""


class PlotError(Exception):
    """What the user is told."""


def load_plots(option="--plot"):
    """Returns the library of plots. Called first, so that no measurement is lost without it."""
    try:
        import matplotlib
    except ImportError as error:
        raise PlotError(f"{option}: needs the package python3-matplotlib") from error
    matplotlib.use("Agg")
    # Equal figures give equal files, so that a new plot differs only if its figures do.
    matplotlib.rcParams["svg.hashsalt"] = "atoll"
    from matplotlib import pyplot
    return pyplot


def save_plot(figure, file, dpi=150):
    """Writes the plot in the format that the name of the file ends with."""
    metadata = {"Date": None} if str(file).endswith(".svg") else {}
    figure.savefig(file, dpi=dpi, metadata=metadata)


def table_head(columns, texts=0):
    """Returns the first two lines of a table. The first `texts` columns hold texts, the others
    numbers, which are flushed right."""
    rules = "---|" * texts + "---:|" * (len(columns) - texts)
    return f"{table_row(columns)}\n|{rules}"


def table_row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
