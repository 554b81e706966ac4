#!/usr/bin/python3
"""The status page in a real browser: its texts and charts agree with the metrics, and people can
read it in light and dark, and on a phone."""
import json
import re
import sys
import tempfile
import unittest
import urllib.request

sys.dont_write_bytecode = True
from browser_page import Page, find_browser  # noqa: E402
from cli_cluster import Cluster, Folder, wait_until  # noqa: E402

PUTS = 300
# The rows of a table of the page, each as an object of texts by the titles of the columns.
ROWS = """
(id => {
  const table = document.getElementById(id);
  const titles = [...table.tHead.rows[0].cells].map(cell => cell.innerText.trim());
  return [...table.tBodies[0].rows].map(row => Object.fromEntries(
    titles.map((title, i) => [title, row.cells[i].innerText.trim()])));
})
"""
# The charts by title: the newest value as text, and the points of all lines.
CHARTS = """
Object.fromEntries([...document.querySelectorAll("#charts figure")].map(figure => [
  figure.querySelector("figcaption span").innerText,
  {now: figure.querySelector("strong").innerText,
   lines: [...figure.querySelectorAll("path")].map(path => path.getAttribute("d"))}]))
"""
# The colours of texts that a reader needs, with that of what is behind them.
COLOURS = """
["h1", "dt", "dd", "th", "td", "figcaption span", "#state", "#health", "footer"].map(selector => {
  const element = document.querySelector(selector);
  let behind = element;
  const colour = e => getComputedStyle(e).backgroundColor;
  while (/, 0\\)$/.test(colour(behind))) behind = behind.parentElement;
  return {selector, text: getComputedStyle(element).color, behind: colour(behind)};
})
"""
READABLE_CONTRAST = 4.5  # WCAG 2.1, level AA


def luminance(colour):
    """The relative luminance of rgb(r, g, b), by WCAG 2.1."""
    def linear(part):
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
    red, green, blue = (linear(int(part) / 255) for part in re.findall(r"\d+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def count_text(value):
    return f"{int(value):,}"


def bytes_text(value):
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    unit = 0
    while value >= 1024 and unit + 1 < len(units):
        value /= 1024
        unit += 1
    return (count_text(value) if unit == 0 else f"{value:,.1f}") + " " + units[unit]


class Metrics:
    """The samples of one scrape of all processes."""

    def __init__(self, cluster):
        self.samples = []
        for process in cluster.json("status")["processes"]:
            for line in get(f"http://{process['metrics']}/metrics").splitlines():
                found = re.match(r"(\w+)(?:\{(.*)\})? (\S+)$", line)
                if found:
                    labels = dict(re.findall(r'(\w+)="([^"]*)"', found.group(2) or ""))
                    self.samples.append((found.group(1), labels, float(found.group(3))))

    def sum(self, name, **wanted):
        found = [value for sample, labels, value in self.samples
                 if sample == name and wanted.items() <= labels.items()]
        if not found:
            raise AssertionError(f"no sample of {name} with {wanted}")
        return sum(found)


@unittest.skipIf(find_browser() is None, "no browser: run ops/setup --test, or set ATOLL_BROWSER")
class StatusPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.addClassCleanup(cls.folder.remove)
        cls.cluster = Cluster(cls.folder, "shown", {"metrics": {"base_port": "0"},
                                                    "status_page": {"port": "0"}})
        cls.enterClassContext(cls.cluster)
        lines = ["create people --type mastertree", "create idle --type hash"]
        lines += [f"put people key{i} value" for i in range(PUTS)]
        cls.cluster.atoll("shell", text="\n".join(lines) + "\n")
        cls.url = cls.cluster.json("status")["status_page"]
        cls.page = cls.enterClassContext(
            Page(tempfile.mkdtemp(dir=cls.folder.path), cls.url))
        shown = wait_until(lambda: cls.page.evaluate(
            "document.querySelectorAll('#storages tbody tr').length") == 2)
        if not shown:
            raise AssertionError("the page does not show the storages")

    def rows(self, table):
        return self.page.evaluate(f"{ROWS}('{table}')")

    def assert_soon_equal(self, shown, expected):
        """The page shows what the metrics say as soon as the cluster is idle again."""
        if not wait_until(lambda: shown() == expected()):
            self.assertEqual(shown(), expected())

    def test_the_tables_show_the_values_of_the_metrics(self):
        def nodes_shown():
            return [{title: row[title] for title in ("Commits", "Aborts", "Pool", "Log written")}
                    for row in self.rows("nodes")]

        def nodes_expected():
            metrics = Metrics(self.cluster)
            return [{"Commits": count_text(metrics.sum("atoll_commits_total", node=node)),
                     "Aborts": count_text(metrics.sum("atoll_aborts_total", node=node)),
                     "Pool": bytes_text(metrics.sum("atoll_pool_size_bytes", node=node)),
                     "Log written": bytes_text(metrics.sum("atoll_logger_written_bytes_total",
                                                           node=node))} for node in "01"]

        def operations_expected():
            metrics = Metrics(self.cluster)
            return {name: count_text(metrics.sum("atoll_storage_operations_total", storage=name))
                    for name in ("people", "idle")}

        self.assert_soon_equal(nodes_shown, nodes_expected)
        self.assert_soon_equal(
            lambda: {row["Name"]: row["Operations"] for row in self.rows("storages")},
            operations_expected)
        self.assertEqual(operations_expected()["people"], count_text(PUTS))

    def test_the_charts_show_the_commits_of_the_metrics(self):
        def history_now():
            return json.loads(self.page.evaluate(
                "fetch('/history.json').then(answer => answer.text())"))

        self.assertTrue(wait_until(lambda: history_now()["transactions_per_s"]), "there is none")
        history = history_now()
        known = len(history["transactions_per_s"])

        def heights():
            line = self.page.evaluate(CHARTS)["Transactions/s"]["lines"][0]
            return [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", line)]

        self.assertTrue(wait_until(lambda: len(heights()) >= known), "the chart has all samples")
        top = max(history["transactions_per_s"])
        drawn = sum((98 - height) / 96 * top * seconds
                    for height, seconds in zip(heights(), history["seconds"]))
        committed = Metrics(self.cluster).sum("atoll_commits_total")
        # A point is drawn with an error of up to a thousandth of the largest value.
        self.assertAlmostEqual(drawn, committed, delta=0.02 * committed + known * top / 500)
        self.assertGreaterEqual(committed, PUTS)

    def test_its_texts_can_be_read_in_light_and_dark(self):
        for scheme, low, high in (("light", 0.8, 1.0), ("dark", 0.0, 0.05)):
            self.page.call("Emulation.setEmulatedMedia", features=[
                {"name": "prefers-color-scheme", "value": scheme}])
            back = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
            self.assertTrue(low <= luminance(back) <= high, f"{scheme}: {back}")
            for colour in self.page.evaluate(COLOURS):
                self.assertGreaterEqual(contrast(colour["text"], colour["behind"]),
                                        READABLE_CONTRAST, f"{scheme}: {colour}")
        self.page.call("Emulation.setEmulatedMedia", features=[])

    def test_it_is_usable_on_a_phone(self):
        self.page.call("Emulation.setDeviceMetricsOverride", width=360, height=740,
                       deviceScaleFactor=2, mobile=True)
        self.addCleanup(self.page.call, "Emulation.clearDeviceMetricsOverride")
        widths = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        self.assertLessEqual(widths[0], widths[1], "the page is not moved sideways")
        smallest = self.page.evaluate(
            "Math.min(...[...document.querySelectorAll('body *')].filter(e => e.innerText)"
            ".map(e => parseFloat(getComputedStyle(e).fontSize)))")
        self.assertGreaterEqual(smallest, 12)
        charts = self.page.evaluate(
            "[...document.querySelectorAll('svg')].map(e => e.getBoundingClientRect().width)")
        self.assertTrue(all(250 < width <= 360 for width in charts), charts)
        # A tap on a heading sorts.
        tap = "[...document.querySelectorAll('#storages th button')].find(e => e.innerText === '{}')"
        for title, first in (("Name", "idle"), ("Operations", "people")):
            self.page.evaluate(tap.format(title) + ".click()")
            self.assertEqual(self.rows("storages")[0]["Name"], first)

    def test_it_loads_nothing_from_other_hosts_and_has_no_errors(self):
        self.assertGreater(len(self.page.requested), 2)
        for url in self.page.requested:
            self.assertTrue(url.startswith((self.url, "data:,", "about:")), url)
        self.assertEqual(self.page.complaints, [])


if __name__ == "__main__":
    unittest.main()
