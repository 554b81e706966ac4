"""The metrics of a running cluster, as Prometheus gets them.

Needs the package prometheus_client (Debian: python3-prometheus-client).
"""
from __future__ import annotations

import json
import os
import pathlib
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .errors import Unavailable

ENDPOINTS = "endpoints.json"
"""File in the run folder with the addresses of all processes that publish metrics."""


class Sample(NamedTuple):
    """A value of a metric."""

    name: str
    labels: dict[str, str]
    value: float
    process: str
    """Address of the process that published it."""


def run_folder(where: str) -> pathlib.Path:
    """The run folder that a connection string of a local cluster names."""
    parts = urlsplit(where)
    if parts.scheme != "atoll":
        raise ValueError(f'where: {where!r}: expected "atoll:NAME" or "atoll:///run/folder"')
    if parts.path.startswith("/"):
        return pathlib.Path(parts.path)
    if parts.netloc or not parts.path:
        raise ValueError(f'where: {where!r}: expected "atoll:NAME" or "atoll:///run/folder"')
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    is_set = runtime.startswith("/")  # the XDG specification ignores relative values
    base = pathlib.Path(runtime, "atoll") if is_set else pathlib.Path(f"/tmp/atoll-{os.geteuid()}")
    return base / parts.path


def read(where: str, timeout: float = 10) -> Iterator[Sample]:
    """The samples of all processes of a cluster. Raises Unavailable if it is not running."""
    from prometheus_client import parser

    families_of: Any = parser.text_string_to_metric_families
    path = run_folder(where) / ENDPOINTS
    try:
        targets = json.loads(path.read_text(encoding="utf-8"))["metrics"].values()
    except FileNotFoundError as error:
        raise Unavailable(f"{path}: is missing: the cluster is not running: start it with "
                          "`atoll up`") from error
    for target in targets:
        try:
            with urllib.request.urlopen(f"http://{target}/metrics", timeout=timeout) as answer:
                text = answer.read().decode("utf-8")
        except OSError as error:
            raise Unavailable(f"http://{target}/metrics: {error}") from error
        for family in families_of(text):
            for sample in family.samples:
                yield Sample(sample.name, dict(sample.labels), sample.value, target)


def value(where: str, name: str, **labels: str) -> float:
    """The sum of all samples of a metric with these labels. Raises KeyError if there are none."""
    found = [sample.value for sample in read(where)
             if sample.name == name and labels.items() <= sample.labels.items()]
    if not found:
        raise KeyError(f"{name}{labels or ''}: the cluster publishes no such sample")
    return sum(found)
