#!/usr/bin/python3
"""Uses an installed Atoll as its users do: `use_installation.py PREFIX`.

It needs nothing of the source tree, so it also runs in a clean root with the packages installed. It
runs a cluster, the demo and the shell, builds C clients and a procedure, runs the examples, uses
sessions over the network, and attacks the network port. network_attacks.py beside it has the
attacks.
"""
import contextlib
import functools
import gzip
import json
import os
import pathlib
import pty
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import network_attacks

PREFIX = pathlib.Path(sys.argv[1] if __name__ == "__main__" else os.environ["ATOLL_PREFIX"])
PROGRAM = PREFIX / "bin" / "atoll"
CONFIG = """
[cluster]
name = "NAME"
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

int main(int count, char** words) {
  atoll_connection* db = NULL;
  atoll_result* result = NULL;
  const char* where = count > 1 ? words[1] : "atoll:installed";
  if (atoll_connect(where, &db) != ATOLL_OK ||
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
CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(client LANGUAGES C)
find_package(atoll_client REQUIRED)
add_executable(client client.c)
target_link_libraries(client PRIVATE atoll::atoll_client)
"""
PYTHON_CLIENT = """
import sys
import atoll
with atoll.connect(sys.argv[1]) as db:
    print(db.get("people", b"alice").decode())
"""
# Runs the blocks of a README one after another, each as a program of its own.
PYTHON_EXAMPLES = """
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
blocks = re.findall(r"^```python\\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
for block in blocks:
    exec(compile(block, sys.argv[1], "exec"), {"__name__": "example"})
"""
NETWORK = """
[network]
enabled = true
key_file = "node.key"
authorised_keys = "clients"
"""
MALFORMED_FRAMES = 10_000
DROPPED_CONNECTIONS = 1_000
# After a first round, by which buffers and pools have their size.
MOST_GROWTH_BYTES = 8 << 20
START_TIMEOUT_S = 120
# Packages are made for /usr, also if a test only unpacks them.
INSTALLED_PROGRAM = pathlib.Path("/usr/bin/atoll") if PREFIX.name == "usr" else PROGRAM
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

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-use-"))
        self.addCleanup(shutil.rmtree, self.folder)
        folder = str(self.folder)
        self.environment = {**os.environ, "HOME": folder, "XDG_RUNTIME_DIR": folder,
                            "XDG_STATE_HOME": folder, "XDG_DATA_HOME": f"{folder}/data"}
        self.config = self.write_config("installed")

    def write_config(self, name, more=""):
        """The config file of a cluster with this name."""
        path = self.folder / f"{name}.toml"
        path.write_text(CONFIG.replace("NAME", name) + more, encoding="utf-8")
        return path

    def finish(self, *words, given=None, **environment):
        """Runs a command in the folder of the test to its end."""
        return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              input=given, cwd=self.folder,
                              env={**self.environment, **environment}, check=False)

    def run_in(self, *words, code=0, **options):
        """Runs a command. Returns its output."""
        ran = self.finish(*words, **options)
        self.assertEqual(ran.returncode, code, f"{words}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def refusal(self, *words, code=1, **options):
        """Runs a command that fails. Returns its output and its messages."""
        ran = self.finish(*words, **options)
        self.assertEqual(ran.returncode, code, f"{words}: {ran.stdout}{ran.stderr}")
        return ran.stdout + ran.stderr

    def atoll(self, *words, **options):
        return self.run_in(PROGRAM, *words, **options)

    def start_cluster(self, config=None):
        config = config or self.config
        self.atoll("up", "-c", config)
        self.addCleanup(subprocess.run, [PROGRAM, "down", "--now", "-c", config],
                        env=self.environment, capture_output=True, check=False)

    def build_c_client(self):
        """Compiles the client by pkg-config. Returns the variables with which it runs."""
        (self.folder / "client.c").write_text(CLIENT, encoding="utf-8")
        path = {} if IS_SYSTEM else {"PKG_CONFIG_PATH": str(find_file("atoll_client.pc").parent)}
        flags = self.run_in("pkg-config", "--cflags", "--libs", "atoll_client", **path).split()
        self.run_in("gcc", "-Wall", "-Wextra", "-Werror", "client.c", "-o", "client", *flags)
        library = find_file("libatoll_client.so.0")
        return {} if IS_SYSTEM else {"LD_LIBRARY_PATH": str(library.parent)}

    @staticmethod
    def python_variables():
        variables = {"PYTHONDONTWRITEBYTECODE": "1"}
        if not IS_SYSTEM:
            variables["PYTHONPATH"] = str(find_file("_library.py").parents[1])
            variables["ATOLL_CLIENT_LIBRARY"] = str(find_file("libatoll_client.so.0"))
        return variables

    def build_by_cmake(self, source):
        """Builds a project that uses an installed package. Returns the folder of the build."""
        build = source / "build"
        shutil.rmtree(build, ignore_errors=True)
        self.run_in("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={PREFIX}")
        self.run_in("cmake", "--build", build)
        return build


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
        path = self.build_c_client()
        self.assertEqual(self.run_in(self.folder / "client", **path), "100\n")
        project = self.folder / "project"
        project.mkdir()
        shutil.copy(self.folder / "client.c", project)
        (project / "CMakeLists.txt").write_text(CMAKE_PROJECT, encoding="utf-8")
        self.assertEqual(self.run_in(self.build_by_cmake(project) / "client", **path), "100\n")

    def check_python_client(self):
        printed = self.run_in("/usr/bin/python3", "-c", PYTHON_CLIENT, "atoll:installed",
                              **self.python_variables())
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


class Examples(Installation):
    def test_the_demo_runs_and_audits_its_accounts(self):
        shown = self.atoll("demo", "--seconds", "2", "--rate", "200", "--dir", self.folder / "demo")
        self.assertRegex(shown, r"\n *[1-9][0-9,]* transfers.*correct")
        self.assertFalse((self.folder / "demo").exists())

    def test_the_shell_runs_scripts_and_serves_a_terminal(self):
        self.start_cluster()
        script = ("create people --type mastertree\nbegin\nput people alice 100\n"
                  "put people bob 7\ncommit\nget people bob\nscan people\n")
        shown = self.atoll("shell", given=script)
        self.assertIn("\n7\n", shown)
        self.assertRegex(shown, r"alice\s+100")
        failed = self.refusal(PROGRAM, "shell", "-e", "begin", "-e", "put people bob 8", "-e", "x",
                              code=2)
        self.assertIn("line 3: ", failed)
        self.assertEqual(self.atoll("kv", "get", "people", "bob"), "7\n")
        shown = self.use_terminal([PROGRAM, "shell"], "get people alice\n", "100\r\n", "quit\n")
        self.assertIn('Cluster "installed".', shown)

    def use_terminal(self, words, line, expected, last_line):
        """Types into a command until it has printed what is expected, and ends it."""
        master, slave = pty.openpty()
        with subprocess.Popen([str(word) for word in words], stdin=slave, stdout=slave,
                              stderr=slave, cwd=self.folder, start_new_session=True,
                              env={**self.environment, "TERM": "xterm"}) as program:
            os.close(slave)
            shown = ""
            os.write(master, line.encode())
            end = time.monotonic() + START_TIMEOUT_S
            while expected not in shown:
                ready, _, _ = select.select([master], [], [], end - time.monotonic())
                self.assertTrue(ready, f"{words} shows only {shown!r}")
                shown += os.read(master, 4096).decode()
            os.write(master, last_line.encode())
            with contextlib.suppress(OSError):  # the end of the terminal is an error of read
                while os.read(master, 4096):
                    pass
            self.assertEqual(program.wait(START_TIMEOUT_S), 0)
        os.close(master)
        return shown

    def test_a_procedure_is_built_loaded_called_and_replaced(self):
        project = self.folder / "transfer"
        shutil.copytree(find_file("transfer.cpp").parent, project)
        library = self.build_by_cmake(project) / "transfer.so"
        config = self.write_config("procedures", f'[procedures]\nlibraries = ["{library}"]\n')
        self.start_cluster(config)
        self.atoll("storage", "create", "accounts", "--type", "array", "--payload-bytes", "8",
                   "--records", "1000")
        self.assertEqual(self.atoll("procedure", "call", "transfer", "1 2 100"), "-100\n")
        self.refusal(PROGRAM, "procedure", "call", "transfer", "1 2 5000")
        self.assertEqual(self.atoll("procedure", "call", "transfer", "1 2 0"), "-100\n")
        # Another version, which pkg-config helps to build.
        source = project / "transfer.cpp"
        changed = source.read_text(encoding="utf-8").replace("std::to_string(balance)",
                                                             'std::to_string(balance) + " left"')
        self.assertIn(" left", changed)
        source.write_text(changed, encoding="utf-8")
        path = {} if IS_SYSTEM else {"PKG_CONFIG_PATH": str(find_file("atoll_procedure.pc").parent)}
        flags = self.run_in("pkg-config", "--cflags", "atoll_procedure", **path).split()
        self.run_in("g++", "-O2", "-shared", "-fPIC", *flags, source, "-o", f"{library}.new")
        os.replace(f"{library}.new", library)
        self.atoll("procedure", "reload")
        self.assertEqual(self.atoll("procedure", "call", "transfer", "1 2 0"), "-100 left\n")

    def test_procedures_place_and_cancel_orders(self):
        project = self.folder / "orders"
        shutil.copytree(find_file("orders.cpp").parent, project)
        library = self.build_by_cmake(project) / "orders.so"
        self.start_cluster(self.write_config("shop", f'[procedures]\nlibraries = ["{library}"]\n'))
        for words in (("branches", "--type", "array", "--payload-bytes", "8", "--records", "100"),
                      ("stock", "--type", "array", "--payload-bytes", "8", "--records", "1000"),
                      ("orders", "--type", "mastertree")):
            self.atoll("storage", "create", *words)
        self.atoll("kv", "add", "stock", "5", "20")
        self.assertEqual(self.atoll("procedure", "call", "order", "1 5:3"), "0\n")
        self.refusal(PROGRAM, "procedure", "call", "order", "1 5:3 6:1")
        self.assertEqual(self.atoll("procedure", "call", "cancel", "1 0"), "1\n")
        self.assertEqual(self.atoll("kv", "get", "stock", "5", "--value-format", "i64"), "20\n")

    def test_the_python_examples_print_what_they_say(self):
        self.start_cluster(self.write_config("bank"))
        self.atoll("storage", "create", "people", "--type", "mastertree")
        readme = PREFIX / "share/doc/python3-atoll/README.md"
        expected = re.findall(r"# prints (.*)$", readme.read_text(encoding="utf-8"), re.MULTILINE)
        self.assertGreater(len(expected), 5)
        printed = self.run_in("/usr/bin/python3", "-c", PYTHON_EXAMPLES, readme,
                              **self.python_variables())
        self.assertEqual(printed.splitlines(), expected)


class Network(Installation):
    """A cluster that serves sessions over TCP, with the keys of three clients."""

    def setUp(self):
        super().setUp()
        names = ("node", "alice", "reader", "admin", "stranger")
        self.keys = {name: self.make_key(name) for name in names}
        (self.folder / "clients").write_text(
            f"{self.keys['alice']} alice read,write,procedures\n"
            f"{self.keys['reader']} reader read\n"
            f"{self.keys['admin']} admin read,write,administration\n", encoding="utf-8")
        self.start_cluster(self.write_config("net", NETWORK))
        self.atoll("storage", "create", "people", "--type", "mastertree")
        self.atoll("kv", "put", "people", "alice", "100")
        status = json.loads(self.atoll("status", "--json"))
        node = next(each for each in status["processes"] if each["role"] == "node0")
        self.assertEqual(node["network"]["key"], self.keys["node"])
        self.pid = node["pid"]
        self.endpoint = node["network"]["endpoint"]

    def make_key(self, name):
        return self.atoll("keys", "generate", f"{name}.key").strip()

    def address(self, client, server_key=None):
        return (f"atoll+tcp://{self.endpoint}?server_key={server_key or self.keys['node']}"
                f"&key_file={self.folder}/{client}.key&connect_timeout_ms=5000")

    def resident_bytes(self):
        pages = pathlib.Path(f"/proc/{self.pid}/statm").read_text(encoding="utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def test_clients_with_keys_are_served_and_others_refused(self):
        path = self.build_c_client()
        python = ["/usr/bin/python3", "-c", PYTHON_CLIENT]
        for words, variables in (([self.folder / "client"], path),
                                 (python, self.python_variables())):
            for client in ("alice", "reader"):
                self.assertEqual(self.run_in(*words, self.address(client), **variables), "100\n")
            for address, reason in (
                    (self.address("stranger"), "refuses the key of"),
                    (self.address("alice", self.keys["stranger"]), "server_key"),
                    (self.address("none"), "none.key: No such file"),
                    (f"atoll+tcp://{self.endpoint}", "keys")):
                self.assertIn(reason, self.refusal(*words, address, **variables))
        network_attacks.wait_until(self.no_session_is_open, "sessions of ended clients end")

    def test_records_and_the_shell_are_used_from_another_machine(self):
        def remote(client, *words, **options):
            return self.finish(PROGRAM, *words, "--connect", self.address(client), **options)

        def expect(ran, code, part):
            self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
            self.assertIn(part, ran.stdout + ran.stderr)

        expect(remote("alice", "kv", "put", "people", "bob", "7"), 0, "ok")
        expect(remote("reader", "kv", "get", "people", "bob"), 0, "7\n")
        expect(remote("reader", "kv", "put", "people", "bob", "8"), 1, "lacks the right write")
        expect(remote("alice", "shell", "-e", "create t"), 1, "lacks the right administration")
        expect(remote("stranger", "kv", "get", "people", "bob"), 1, "refuses the key of")
        expect(remote("none", "kv", "get", "people", "bob"), 78, "none.key: No such file")
        # Exit codes and messages are those of commands on the machine of the cluster.
        for words in (("kv", "get", "people", "none"), ("kv", "insert", "people", "alice", "1"),
                      ("kv", "get", "none", "k"), ("kv", "get", "people", "k" * 1025),
                      ("shell", "-e", "create people"), ("shell", "-e", "drop none"),
                      ("shell", "-e", "create x --type array")):
            local = self.finish(PROGRAM, *words)
            self.assertNotEqual(local.returncode, 0)
            expect(remote("admin", *words), local.returncode, local.stderr)
        script = "create t\nbegin\nput t k v\ncommit\nget t k\nstorages\ndrop t\n"
        expect(remote("admin", "shell", given=script), 0, "\nv\n")
        self.assertNotIn("\nt ", self.atoll("storage", "ls"))

    def malformed_frames(self):
        """What the node counts."""
        path = self.folder / "atoll/net/endpoints.json"
        metrics = json.loads(path.read_text(encoding="utf-8"))["metrics"]["node0"]
        with urllib.request.urlopen(f"http://{metrics}/metrics") as answer:
            text = answer.read().decode()
        found = re.search(r"^atoll_network_malformed_frames_total\S* (\S+)$", text, re.MULTILINE)
        return int(float(found.group(1)))

    def no_session_is_open(self):
        return json.loads(self.atoll("session", "ls", "--json"))["sessions"] == []

    def test_attacks_leave_the_cluster_healthy_and_its_memory_flat(self):
        host, port = self.endpoint.rsplit(":", 1)
        target = network_attacks.Target(host, int(port), bytes.fromhex(self.keys["node"]),
                                        self.folder / "alice.key")
        seed = int.from_bytes(os.urandom(4), "little")
        print(f"seed {seed}")
        variables = self.python_variables()
        os.environ.update(variables)
        sys.path.insert(0, variables.get("PYTHONPATH", ""))
        self.addCleanup(sys.path.pop, 0)
        import atoll  # of the installation
        connect = functools.partial(atoll.connect, self.address("alice"))
        sent = network_attacks.send_malformed_frames(target, MALFORMED_FRAMES // 10, seed)
        network_attacks.drop_connections(target, DROPPED_CONNECTIONS // 10, connect)
        network_attacks.wait_until(self.no_session_is_open, "sessions of the first round end")
        before = self.resident_bytes()
        sent += network_attacks.send_malformed_frames(target, MALFORMED_FRAMES, seed + 1)
        network_attacks.drop_connections(target, DROPPED_CONNECTIONS, connect)
        network_attacks.wait_until(self.no_session_is_open, "sessions of killed clients end")
        grown = self.resident_bytes() - before
        print(f"resident memory of the node: {before >> 20} MiB, grown by {grown >> 10} KiB")
        self.assertLess(grown, MOST_GROWTH_BYTES)
        self.assertGreaterEqual(self.malformed_frames(), sent)
        self.assertIn("healthy", self.atoll("status").splitlines()[0])
        self.assertEqual(self.atoll("kv", "get", "people", "alice"), "100\n")
        self.assertEqual(self.run_in("/usr/bin/python3", "-c", PYTHON_CLIENT,
                                     self.address("alice"), **self.python_variables()), "100\n")
        self.assertIsNone(json.loads(self.atoll("status", "--json"))["restarts"])


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
        started = f"ExecStart={INSTALLED_PROGRAM} up --foreground -c "
        self.assertIn(started, unit.read_text())
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is missing: run ops/setup --test")
        copy = self.folder / "atoll@main.service"
        # The user exists only where the package is installed.
        text = unit.read_text().replace("User=atoll", "User=daemon")
        text = text.replace(started, started.replace(str(INSTALLED_PROGRAM), str(PROGRAM)))
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
