"""Runs the program `atoll` and clusters for tests that need no library of the product.

The environment has ATOLL_BIN_DIR, the folder of the programs.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["ATOLL_BIN_DIR"])
PATIENCE_S = 60


def wait_until(condition):
    """Returns whether the condition became true."""
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True


class Folder:
    """A folder of a test, in which the commands find their default folders."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="atoll-"))
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.path), "HOME": str(self.path),
                            "XDG_STATE_HOME": str(self.path / "state"),
                            "XDG_DATA_HOME": str(self.path / "data")}

    def remove(self):
        shutil.rmtree(self.path)

    def atoll(self, *words, code=0, text=""):
        """Runs a command and checks its exit code."""
        ran = subprocess.run([BIN / "atoll", *map(str, words)], env=self.environment, input=text,
                             capture_output=True, text=True, timeout=10 * PATIENCE_S, check=False)
        if ran.returncode != code:
            raise AssertionError(f"{words}: exit code {ran.returncode}: {ran.stderr}{ran.stdout}")
        return ran

    def json(self, *words, code=0):
        return json.loads(self.atoll(*words, "--json", code=code).stdout)

    def write(self, name, text):
        path = self.path / name
        path.write_text(text, encoding="utf-8")
        return path


class Cluster:
    """A small durable cluster with two nodes, which runs within a `with` block."""

    def __init__(self, folder, name="small", more=None):
        self.folder = folder
        self.name = name
        self.values = {"cluster": {"name": f'"{name}"'}, "nodes": {"count": 2},
                       "memory": {"volatile_pool": '"16MiB"', "log_buffer": '"2MiB"',
                                  "exchange": '"2MiB"'},
                       "durability": {"mode": '"durable"', "log_file_size": '"1MiB"'}}
        self.file = folder.path / f"{name}.toml"
        self.set(**(more or {}))

    def set(self, **sections):
        """Changes values of the config file, as TOML texts by section and key."""
        for section, keys in sections.items():
            self.values.setdefault(section, {}).update(keys)
        lines = []
        for section, keys in self.values.items():
            lines += [f"[{section}]"] + [f"{key} = {value}" for key, value in keys.items()]
        self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def __enter__(self):
        self.folder.atoll("up", "-c", self.file)
        return self

    def __exit__(self, *_):
        subprocess.run([BIN / "atoll", "down", "--now", "-c", self.file], capture_output=True,
                       env=self.folder.environment, check=False)

    def atoll(self, *words, code=0, text=""):
        return self.folder.atoll(*words, "-c", self.file, code=code, text=text)

    def json(self, *words, code=0):
        return self.folder.json(*words, "-c", self.file, code=code)

    def pid(self, role):
        for process in self.json("status")["processes"]:
            if process["role"] == role:
                return process["pid"]
        raise AssertionError(f"no process {role}")
