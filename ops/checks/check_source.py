#!/usr/bin/env python3
"""Layering, atomics and sizes of the sources. Prints `file:line: rule` and ends with 1 on violations.

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
    return count, violations


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_source.py ROOT")
    count, violations = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(violations + [f"{count} files, {len(violations)} violations"]))
    sys.exit(1 if violations or count == 0 else 0)


if __name__ == "__main__":
    main()
