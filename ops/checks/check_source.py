#!/usr/bin/env python3
"""Layering, atomics and sizes of the sources, and the table of rules. Prints `file:line: rule` and ends with 1 on violations.

check_source.py ROOT checks the tree at ROOT; tests/checks plants violations to see it fail.
"""
import pathlib
import re
import sys

# Which folders a folder's files may include. soc/ and coordinator/ meet only in shared/.
BELOW = {
    "shared": {"shared"},
    "engine": {"shared", "engine"},
    "soc": {"shared", "engine", "soc"},
    "coordinator": {"shared", "engine", "coordinator"},
    "bench": {"shared", "engine", "soc", "bench"},
    "ops": {"shared", "engine", "soc", "coordinator", "bench", "ops"},
    "tests": {"shared", "engine", "soc", "coordinator", "bench", "ops", "tests"},
}
MAX_LINES = 700
MAX_COLUMNS = 100
ATOMIC_CALL = re.compile(
    r"(?:\.|->)\s*(load|store|exchange|fetch_add|fetch_sub|fetch_and|fetch_or|fetch_xor|"
    r"compare_exchange_weak|compare_exchange_strong|test_and_set)\s*\("
)
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
# Where each rule is kept and what fails without it (R1 ... R<LAST_RULE>).
RULES = "engine/RULES.md"
LAST_RULE = 64
RULE_TEST = "rules_mutant_test.cpp"
RULE_TEST_ROW = re.compile(r'\{"(\w+)",\s*Mutant::')
TEST = re.compile(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)
# A raw string's text is not code: R"x( ... )x", then ordinary literals and comments.
NOT_CODE = re.compile(
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)


def code_only(text):
    """The text with comments and literals blanked out, line by line in the same place."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def arguments(code, opening):
    """What stands between the parenthesis at `opening` and its partner."""
    depth = 0
    for end in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        if depth == 0:
            return code[opening + 1 : end]
    return code[opening + 1 :]


def check_text(path, text):
    """Yields (line, message) for each violation in the file at `path`, relative to the root."""
    folder = path.parts[0]
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        yield len(lines), f"the file has more than {MAX_LINES} lines"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"the line has more than {MAX_COLUMNS} columns"
        if UNFINISHED.search(line):
            yield number, "unfinished work is no comment but an issue"
        include = INCLUDE.match(line)
        if include:
            target = include.group(1).split("/")[0]
            if target not in BELOW:
                yield number, f"{include.group(1)}: includes begin at the root of the repository"
            elif target not in BELOW[folder]:
                yield number, f"{folder}/ may not include {target}/"
    if path.suffix == ".h" and "#pragma once" not in text:
        yield 1, "the header has no #pragma once"

    code = code_only(text)

    def line_of(position):
        return code.count("\n", 0, position) + 1

    for match in re.finditer(r"\bvolatile\b", code):
        yield line_of(match.start()), "volatile: use std::atomic"
    if path.parts[:2] != ("shared", "sync"):
        for match in re.finditer(r"\batomic_(thread|signal)_fence\b", code):
            yield line_of(match.start()), "fences live in shared/sync only"
    for match in ATOMIC_CALL.finditer(code):
        # The wrappers of shared/ may take an order from their caller, named `order`.
        if not re.search(r"\bmemory_order|\border\b", arguments(code, match.end() - 1)):
            yield line_of(match.start()), f"{match.group(1)}() without a memory order"


def names_of_tests(root):
    """Suite.Test of every test, and the rows of kRules."""
    tests = set()
    rows = set()
    for file in (root / "tests").rglob("*_test.cpp"):
        text = file.read_text(encoding="utf-8")
        tests.update(".".join(names) for names in TEST.findall(text))
        if file.name == RULE_TEST:
            rows.update(RULE_TEST_ROW.findall(text))
    return tests, rows


def check_rules(root):
    """Yields (line, message): engine/RULES.md has every rule, and names what exists and every row."""
    tests, rows = names_of_tests(root)
    text = (root / RULES).read_text(encoding="utf-8")
    missing = rows.copy()
    rules = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        rules.update(int(rule) for rule in re.findall(r"^\| R(\d+) \|", line))
        for name in re.findall(r"`([^`]+)`", line):
            missing.discard(name)
            known = (root / name).is_file() if "/" in name else name in tests or name in rows
            if not known:
                yield number, f"{name}: there is no such file, test or row of {RULE_TEST}"
    for rule in range(1, LAST_RULE + 1):
        if rule not in rules:
            yield 1, f"R{rule} has no line"
    for row in sorted(missing):
        yield 1, f"{row}, a row of {RULE_TEST}, is in no line"


def check_tree(root):
    count = 0
    violations = []
    for folder in BELOW:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".cpp"):
                continue
            count += 1
            path = file.relative_to(root)
            for line, message in check_text(path, file.read_text(encoding="utf-8")):
                violations.append(f"{path}:{line}: {message}")
    if (root / RULES).is_file():
        violations += [f"{RULES}:{line}: {message}" for line, message in check_rules(root)]
    return count, violations


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_source.py ROOT")
    count, violations = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(violations + [f"{count} files, {len(violations)} violations"]))
    sys.exit(1 if violations or count == 0 else 0)


if __name__ == "__main__":
    main()
