#!/usr/bin/env python3
"""Uses an installed Atoll as its users do: `use_installation.py PREFIX`.

It needs nothing of the source tree, so it also runs in a clean root with the packages installed. It
runs a cluster, reads and writes records, and builds and runs a C client by pkg-config.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

PREFIX = pathlib.Path(sys.argv[1] if __name__ == "__main__" else os.environ["ATOLL_PREFIX"])
PROGRAM = PREFIX / "bin" / "atoll"
CONFIG = """
[cluster]
name = "installed"
[nodes]
count = 2
[memory]
volatile_pool = "16MiB"
log_buffer = "2MiB"
exchange = "2MiB"
"""
CLIENT = """
#include <atoll_client.h>
#include <stdio.h>

int main(void) {
  atoll_connection* db = NULL;
  atoll_result* result = NULL;
  if (atoll_connect("atoll:installed", &db) != ATOLL_OK ||
      atoll_get(db, "people", atoll_text("alice"), NULL, &result) != ATOLL_OK) {
    puts(atoll_last_message());
    return 1;
  }
  const atoll_bytes value = atoll_result_value(result);
  printf("%.*s\\n", (int)value.size, (const char*)value.data);
  atoll_result_free(result);
  atoll_connection_free(db);
  return 0;
}
"""
PYTHON_CLIENT = """
import atoll
with atoll.connect("atoll:installed") as db:
    print(db.get("people", b"alice").decode())
"""
START_TIMEOUT_S = 120
# Installed packages need no variables: the linker, pkg-config and Python search these folders.
IS_SYSTEM = PREFIX == pathlib.Path("/usr")


def find_file(name):
    """The installed file of this name."""
    found = sorted(PREFIX.rglob(name))
    if len(found) != 1:
        raise AssertionError(f"{PREFIX}: expected one file {name}, found {found}")
    return found[0]


def commands_of(*words):
    """The commands under a command, by its help."""
    text = subprocess.run([PROGRAM, *words, "--help"], capture_output=True, text=True,
                          check=True).stdout
    section = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  ([a-z][a-z-]*) ", section.group(1), re.MULTILINE) if section else []


def options_of(*words):
    text = subprocess.run([PROGRAM, *words, "--help"], capture_output=True, text=True,
                          check=True).stdout
    return set(re.findall(r"(--[a-z][a-z-]*)[ ,{]", text))


class Installation(unittest.TestCase):
    """A cluster of the installed programs, with the storage `people`."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-use-"))
        cls.environment = {**os.environ, "HOME": str(cls.folder),
                           "XDG_RUNTIME_DIR": str(cls.folder), "XDG_STATE_HOME": str(cls.folder),
                           "XDG_DATA_HOME": str(cls.folder / "data")}
        cls.config = cls.folder / "installed.toml"
        cls.config.write_text(CONFIG, encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_in(self, *words, code=0, **environment):
        """Runs a command in the folder of the test. Returns its output."""
        ran = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                             cwd=self.folder, env={**self.environment, **environment}, check=False)
        self.assertEqual(ran.returncode, code, f"{words}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def atoll(self, *words, code=0):
        return self.run_in(PROGRAM, *words, code=code)

    def start_cluster(self):
        self.atoll("up", "-c", self.config)
        self.addCleanup(subprocess.run, [PROGRAM, "down", "--now", "-c", self.config],
                        env=self.environment, capture_output=True, check=False)


class Clusters(Installation):
    def test_a_cluster_serves_the_command_and_both_clients(self):
        self.assertRegex(self.atoll("version"), r"^atoll \d+\.\d+\.\d+\n")
        self.start_cluster()
        self.atoll("storage", "create", "people", "--type", "mastertree")
        self.atoll("kv", "put", "people", "alice", "100")
        self.assertEqual(self.atoll("kv", "get", "people", "alice"), "100\n")
        status = json.loads(self.atoll("status", "--json"))
        self.assertEqual(status["state"], "running")
        self.check_programs()
        self.check_c_client()
        self.check_python_client()
        self.check_completion()
        self.atoll("down")
        self.atoll("status", code=3)

    def check_programs(self):
        """All processes of the cluster are programs of this installation."""
        endpoints = json.loads((self.folder / "atoll/installed/endpoints.json").read_text())
        for process in endpoints["processes"]:
            program = pathlib.Path(os.readlink(f"/proc/{process['pid']}/exe"))
            self.assertEqual(program.parent, (PREFIX / "libexec/atoll").resolve())

    def check_c_client(self):
        (self.folder / "client.c").write_text(CLIENT, encoding="utf-8")
        path = {} if IS_SYSTEM else {"PKG_CONFIG_PATH": str(find_file("atoll_client.pc").parent)}
        flags = self.run_in("pkg-config", "--cflags", "--libs", "atoll_client", **path).split()
        self.run_in("gcc", "-Wall", "-Wextra", "-Werror", "client.c", "-o", "client", *flags)
        library = find_file("libatoll_client.so.0")
        path = {} if IS_SYSTEM else {"LD_LIBRARY_PATH": str(library.parent)}
        self.assertEqual(self.run_in(self.folder / "client", **path), "100\n")

    def check_python_client(self):
        variables = {"PYTHONDONTWRITEBYTECODE": "1"}
        if not IS_SYSTEM:
            variables["PYTHONPATH"] = str(find_file("_library.py").parents[1])
            variables["ATOLL_CLIENT_LIBRARY"] = str(find_file("libatoll_client.so.0"))
        printed = self.run_in("/usr/bin/python3", "-c", PYTHON_CLIENT, **variables)
        self.assertEqual(printed, "100\n")

    def check_completion(self):
        """The shells that are installed offer the cluster's names, and the program's words."""
        self.atoll("snapshot", "take")
        self.atoll("snapshot", "pin", "--name", "my-pin")
        expected = {("kv", "get", "peo"): ["people"], ("snapshot", "unpin", ""): ["my-pin"],
                    ("status", "--cluster", ""): ["installed"], ("stat",): ["status"],
                    ("procedure", "call", "kv."): ["kv.commit", "kv.txn"],
                    ("logs", "node"): ["node0", "node1"], ("kv", "get", "--node", ""): ["0", "1"],
                    ("storage", "create", "x", "--type", "a"): ["array"],
                    ("wal", "dump", "--storage", ""): ["people"],
                    ("bench", "ycsb", "--storage", "m"): ["mastertree"]}
        for shell, complete in (("bash", self.complete_in_bash), ("zsh", self.complete_in_zsh),
                                ("fish", self.complete_in_fish)):
            if shutil.which(shell) is None:
                print(f"{shell} is missing: run ops/setup --test")
                continue
            for words, offered in expected.items():
                found = complete(list(words))
                self.assertTrue(set(offered) <= set(found) and found, f"{shell}: {words}: {found}")
                self.assertTrue(all(word.startswith(words[-1]) for word in found), found)

    def complete_in_bash(self, words):
        script = (f"source {PREFIX}/share/bash-completion/completions/atoll; "
                  'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _atoll; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        return self.run_in("bash", "-c", script, "bash", PROGRAM, *words).split()

    def complete_in_zsh(self, words):
        # The functions of zsh's completion need a terminal, so this defines those that are called.
        script = ("compdef() { }; _files() { }; "
                  "_describe() { print -l -- ${candidates%%:*} }; "
                  f"source {find_file('_atoll')}; "
                  'words=("$@"); CURRENT=$#; _atoll')
        return self.run_in("zsh", "-f", "-c", script, "zsh", PROGRAM, *words).split()

    def complete_in_fish(self, words):
        script = (f"source {find_file('atoll.fish')}; "
                  f"complete --do-complete='atoll {' '.join(words)}'")
        path = f"{PREFIX}/bin:{os.environ['PATH']}"
        lines = self.run_in("fish", "--no-config", "-c", script, PATH=path).splitlines()
        return [line.split("\t")[0] for line in lines]


class Documents(Installation):
    def test_each_command_has_a_page_with_its_options(self):
        pages = find_file("atoll-kv.1.gz").parent
        verbs = commands_of()
        self.assertGreater(len(verbs), 15)
        names = {"atoll", "atoll-ledger"} | {f"atoll-{verb}" for verb in verbs}
        for verb in verbs:
            text = gzip.decompress((pages / f"atoll-{verb}.1.gz").read_bytes()).decode()
            text = text.replace("\\-", "-")
            self.assertIn(f".SH NAME\natoll-{verb} - ", text)
            below = [[verb, name] for name in commands_of(verb)]
            while below:
                words = below.pop()
                below += [[*words, name] for name in commands_of(*words)]
                names.add("-".join(["atoll", *words]))
                for option in options_of(*words):
                    self.assertIn(option, text, f"atoll {' '.join(words)}")
            for option in options_of(verb):
                self.assertIn(option, text, f"atoll {verb}")
            if shutil.which("groff") is not None:
                ran = subprocess.run(["groff", "-t", "-man", "-ww", "-z"], input=text.encode(),
                                     capture_output=True, check=True)
                self.assertEqual(ran.stderr.decode(), "", verb)
        self.assertEqual({path.name.removesuffix(".1.gz") for path in pages.glob("atoll*.1.gz")},
                         names)

    def test_the_configs_are_valid(self):
        # Packages install it in /etc.
        etc = PREFIX / "etc" if (PREFIX / "etc").exists() else PREFIX.parent / "etc"
        configs = [etc / "atoll/main.toml",
                   *(PREFIX / "share/doc/atoll-server/examples").glob("*.toml")]
        self.assertGreater(len(configs), 3, configs)
        # The examples are for other machines.
        anywhere = options_of("config", "check") & {"--any-machine"}
        for path in configs:
            self.atoll("config", "check", path, *anywhere)


class Service(Installation):
    def test_systemd_accepts_the_unit(self):
        unit = find_file("atoll@.service")
        self.assertIn(f"ExecStart={PROGRAM} up --foreground -c ", unit.read_text())
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is missing: run ops/setup --test")
        copy = self.folder / "atoll@main.service"
        # The user exists only where the package is installed.
        text = unit.read_text().replace("User=atoll", "User=daemon")
        copy.write_text(text.replace("Group=atoll", "Group=daemon"), encoding="utf-8")
        ran = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)],
                             capture_output=True, text=True, check=False)
        complaints = [line for line in ran.stderr.splitlines() if "atoll" in line]
        self.assertEqual((ran.returncode, complaints), (0, []))
        # The exposure is from 0 to 100; units without any hardening have 96.
        self.run_in("systemd-analyze", "security", "--offline=yes", "--threshold=25", copy)

    def test_the_foreground_launcher_reports_start_readiness_and_stop(self):
        path = self.folder / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.bind(str(path))
            channel.settimeout(START_TIMEOUT_S)
            launcher = subprocess.Popen(
                [PROGRAM, "up", "--foreground", "-c", self.config], stdout=subprocess.DEVNULL,
                env={**self.environment, "NOTIFY_SOCKET": str(path)})
            self.addCleanup(launcher.kill)
            messages = [channel.recv(4096).decode()]
            while "READY=1" not in messages[-1]:
                messages.append(channel.recv(4096).decode())
            self.assertIn("STATUS=starting: ", messages[0])
            self.assertIn("STATUS=runs: 2 nodes, ", messages[-1])
            self.atoll("status")  # the cluster serves requests
            launcher.terminate()
            while "STOPPING=1" not in messages[-1]:
                messages.append(channel.recv(4096).decode())
            self.assertEqual(launcher.wait(START_TIMEOUT_S), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
