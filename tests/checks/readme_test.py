#!/usr/bin/python3
"""The code and the commands in README.md and in the READMEs of clients and procedures work.

readme_test.py BUILD_DIR takes the options of the compiler from BUILD_DIR/compile_commands.json, and
the commands' help from BUILD_DIR/bin/atoll.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else ROOT / "build" / "release"
README = ROOT / "README.md"
CLIENT_README = ROOT / "shared" / "client" / "README.md"
PROCEDURE_README = ROOT / "bench" / "example_procedure" / "README.md"
# What a README that shows only some lines of a client leaves out.
CLIENT_HEADERS = ('#include <string>\n#include "shared/client/kv_transaction.h"\n'
                  '#include "shared/client/network_client.h"\n'
                  '#include "shared/client/session_client.h"\n'
                  '#include "shared/kv/kv_request.h"\n')


def blocks(file, language):
    """The texts of the fenced blocks of a language."""
    text = file.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(file):
    """The commands of the blocks of a shell, without their comments."""
    text = "".join(blocks(file, "sh")).replace("\\\n", " ")
    lines = (re.sub(r"\s#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def the_command(file, start):
    found = [command for command in commands(file) if command.startswith(start)]
    assert len(found) == 1, f"{file}: {len(found)} commands begin with {start}"
    return found[0]


def options_of_compiler():
    """The options with which the build compiles a source of shared/."""
    entries = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    command = next(entry["command"] for entry in entries if "atoll_shared.dir" in entry["command"])
    words = shlex.split(command)
    kept = []
    skips = False
    for word in words[next(i for i, word in enumerate(words) if word.startswith("-")):]:
        if not skips and word not in ("-o", "-c", "-include") and word.startswith("-"):
            kept.append(word)
        elif not skips and kept and kept[-1] in ("-isystem", "-I", "-D"):
            kept.append(word)
        skips = word in ("-o", "-c", "-include")
    return kept


class Readme(unittest.TestCase):
    def run_shell(self, command, **options):
        ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False,
                             **options)
        self.assertEqual(ran.returncode, 0, f"{command}\n{ran.stdout}{ran.stderr}")

    def compile(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
            file.write(text)
            file.flush()
            ran = subprocess.run(["g++", *options_of_compiler(), "-fsyntax-only", file.name],
                                 cwd=ROOT, capture_output=True, text=True, check=False)
        return ran

    def assert_compiles(self, text):
        ran = self.compile(text)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_the_first_client_is_a_program(self):
        programs = blocks(README, "cpp")
        self.assertEqual(len(programs), 1)
        self.assertIn("int main() {", programs[0])
        # The headers for clients leave the names CHECK and DCHECK, which test frameworks use, free.
        self.assert_compiles(programs[0] + "#if defined(CHECK) || defined(DCHECK)\n#error\n#endif\n")
        broken = self.compile(programs[0].replace("request.put(", "request.place("))
        self.assertNotEqual(broken.returncode, 0)

    def test_the_lines_of_a_client_compile(self):
        lines = blocks(CLIENT_README, "cpp")
        self.assertEqual(len(lines), 4)
        body = "".join(lines)
        self.assert_compiles(CLIENT_HEADERS + "using namespace atolldb;\n"
                             "void use(const std::string& run_dir, const std::string& key_of_the_node) {\n"
                             + body +
                             "static_cast<void>(reply);\n}\n")

    def test_the_first_procedure_builds_and_its_config_is_valid(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "bench").symlink_to(ROOT / "bench")
            (pathlib.Path(folder) / "build").mkdir()
            (pathlib.Path(folder) / "build" / "release").symlink_to(BUILD.resolve())
            for start in ("cmake --install", "cmake -S", "cmake --build", "printf"):
                self.run_shell(the_command(README, start), cwd=folder)
            self.assertTrue((pathlib.Path(folder) / "build" / "bank" / "transfer.so").exists())
            program = BUILD / "bin" / "atoll"
            if not program.exists():
                self.skipTest(f"{program} is not built")
            self.run_shell(f"{program} config check bank.toml", cwd=folder)

    def test_the_procedure_builds_outside_of_the_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = f"{folder}/prefix"
            self.run_shell(f"cmake --install {BUILD} --component dev --prefix {prefix} && "
                           f"cp -r {PROCEDURE_README.parent} {folder}/copy")
            for start in ("cmake -B", "cmake --build"):
                self.run_shell(the_command(PROCEDURE_README, start), cwd=f"{folder}/copy",
                               env={**os.environ, "PREFIX": prefix})

    def test_the_commands_and_their_options_exist(self):
        program = BUILD / "bin" / "atoll"
        if not program.exists():
            self.skipTest(f"{program} is not built")
        count = 0
        for file in (README, PROCEDURE_README):
            for command in commands(file):
                words = shlex.split(command)
                if pathlib.Path(words[0]).name != "atoll":
                    continue
                count += 1
                names = [word for word in words[1:3] if re.fullmatch(r"[a-z]+", word)]
                ran = subprocess.run([program, *names, "--help"], capture_output=True, text=True,
                                     check=False)
                self.assertEqual(ran.returncode, 0, f"{file}: {command}\n{ran.stderr}")
                for option in (word for word in words[1:] if word.startswith("-")):
                    self.assertRegex(ran.stdout, rf"(?m)[ ,]{option}[ ,]", f"{file}: {command}")
        self.assertGreaterEqual(count, 8)


if __name__ == "__main__":
    unittest.main()
