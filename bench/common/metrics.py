"""Scrapes the metrics of a cluster that a script has started."""
import json
import pathlib
import urllib.request

SCRAPE_PATIENCE_S = 60


def scrape(log_dir):
    """Yields (name with labels, value) of each of Atoll's metrics, of all processes."""
    targets = json.loads((pathlib.Path(log_dir) / "prometheus-targets.json").read_text())
    for target in (address for group in targets for address in group["targets"]):
        with urllib.request.urlopen(f"http://{target}/metrics", timeout=SCRAPE_PATIENCE_S) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("atoll_"):
                    name, value = line.rsplit(" ", 1)
                    yield name, float(value)
