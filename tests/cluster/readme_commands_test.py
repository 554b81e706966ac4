#!/usr/bin/python3
"""The commands of the README run, in its order, and print what it says.

Other tests run the rest: the build and the packages (ops/run, ops/test, ops/package, and what is in
/etc) are steps of CI and of tests/packaging/, and client_library_test.cpp runs the programs in C and
Python.
"""
import contextlib
import os
import re
import shlex
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from cli_cluster import BIN, ROOT, Folder  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
ELSEWHERE = ("git clone", "./ops/", "apt-get", "systemctl", "atoll status -c /etc/")
# The commands that would not end, or would take long.
SHORTENED = {"top": "--once", "demo": "--seconds 1 --rate 100", "bench": "--records 1000"}
# Small clusters, for a machine that runs other tests.
SMALL = {"ATOLL_MEMORY_VOLATILE_POOL": "16MiB", "ATOLL_MEMORY_LOG_BUFFER": "2MiB",
         "ATOLL_MEMORY_EXCHANGE": "2MiB", "ATOLL_MEMORY_SNAPSHOT_CACHE": "8MiB",
         "ATOLL_METRICS_BASE_PORT": "0", "ATOLL_STATUS_PAGE_PORT": "0"}


def section(title):
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README,
                     re.DOTALL | re.MULTILINE).group(1)


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def blocks_with(text, word):
    """The blocks of commands that have a word, as Markdown."""
    return "".join(f"```sh\n{block}```\n" for block in blocks(text, "sh") if word in block)


def commands(text):
    """The commands of a text, each with what its comment says."""
    lines = "".join(blocks(text, "sh")).replace("\\\n", " ").splitlines()
    found = []
    for line in filter(None, map(str.strip, lines)):
        command, _, comment = re.sub(r"\s#", "\n#", line, count=1).partition("\n#")
        found.append((command.strip(), comment.strip()))
    return found


def free_ports(count):
    """Returns the first of `count` free ports in a row. They are below those that the kernel gives
    to clients, so that no connection takes one before the node does."""
    first = 20000 + os.getpid() % 10000
    while True:
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                return first
            except OSError:
                first += count


class ReadmeCommandsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.remove)
        self.folder.environment.update(SMALL)
        (self.folder.path / "bench").symlink_to(ROOT / "bench")
        (self.folder.path / "build").mkdir()
        (self.folder.path / "build" / "release").symlink_to(BIN.parent)
        self.ran = set()
        self.addCleanup(self.shell, f"{BIN}/atoll down --now -c bank.toml; true")

    def shell(self, command):
        ran = subprocess.run(["bash", "-c", command], cwd=self.folder.path, text=True,
                             env=self.folder.environment, stdin=subprocess.DEVNULL,
                             capture_output=True, timeout=600, check=False)
        self.assertEqual(ran.returncode, 0, f"{command}\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def run_commands(self, text):
        """Runs commands, and checks the outputs of which the comments speak."""
        for command, comment in commands(text):
            self.ran.add(command)
            words = shlex.split(command)
            more = SHORTENED.get(words[1], "") if words[0].endswith("/atoll") else ""
            printed = self.shell(f"{command} {more}")
            expected = re.match(r"prints (\S+)$", comment)
            if expected:
                self.assertEqual(printed, expected.group(1) + "\n", command)
            if comment == "prints two rows":
                self.assertEqual(len(re.findall(r'"key"', printed)), 2, printed)

    def test_all_commands_run_and_print_what_is_said(self):
        self.run_commands(section("A first procedure"))
        # "The next `atoll up -c bank.toml` recovers what was committed."
        self.shell("build/release/bin/atoll up -c bank.toml")
        kept = self.shell("build/release/bin/atoll kv get accounts 1 --value-format i64")
        self.assertEqual(kept, "-100\n")
        self.run_commands(section("Records by hand"))
        self.shell("build/release/bin/atoll storage create people --type mastertree")
        self.shell("build/release/bin/atoll config check bank.toml")
        self.shell("build/release/bin/atoll config reload -c bank.toml")
        self.shell("build/release/bin/atoll kv put people alice 100")
        self.shell("build/release/bin/atoll down")
        self.run_network()
        rest = {command for command, _ in commands(README)
                if not command.startswith(ELSEWHERE)} - self.ran
        self.assertEqual(rest, set(), "no step above runs these commands")

    def run_network(self):
        text = section("From other machines")
        keys = []
        for command, _ in commands(text):
            self.ran.add(command)
            if "keys generate" in command:
                keys.append(self.shell(command).strip())
        self.assertEqual(len(keys), 2)
        (self.folder.path / "clients").write_text(f"{keys[1]} alice read,write\n")
        port = free_ports(2)
        config = blocks(text, "toml")
        self.assertEqual(len(config), 1)
        with open(self.folder.path / "bank.toml", "a", encoding="utf-8") as file:
            file.write(config[0].replace("7400 ", f"{port} ").replace("0.0.0.0", "127.0.0.1"))
        self.shell("build/release/bin/atoll up -c bank.toml")
        use = commands(blocks_with(text, "--connect"))
        script = "\n".join(command for command, _ in use)
        script = script.replace("HOST:7400", f"127.0.0.1:{port}")
        printed = self.shell("set -e\n" + script.replace("KEY_OF_THE_NODE", keys[0]))
        self.assertEqual(printed, use[-1][1].removeprefix("prints ") + "\n")


if __name__ == "__main__":
    unittest.main()
