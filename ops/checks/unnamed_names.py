#!/usr/bin/python3
"""Sources of one library or test program that are joined (a unity build) do not clash. Prints `file:line: rule` and ends with 1 on violations.

CMake joins up to thirty sources that follow each other in the order of their paths: a new file shifts
all that come after it. So no two sources of a library, or of the tests of a folder, may declare the
same name in an unnamed namespace, but functions with other parameters, and aliases that say the
same. A test must not declare a name of the headers of tests that another one includes.
unnamed_names.py ROOT checks the tree at ROOT; tests/checks plants violations to see it fail.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
from check_source import DIRECTIVE, code_only  # noqa: E402

# Sources that CMake may join: one library for each entry, and each folder of bench/.
LIBRARIES = [["shared"], ["engine", "ops/verify"], ["soc"], ["coordinator"], ["ops"]]
# The end of a test's path says with which engine it is compiled: one list for each folder and engine.
TEST = re.compile(r"_(stress_|mutant_|)test\.cpp$")
# A stress test includes the test of the same name.
INCLUDED_TEST = re.compile(r'^#include "(tests/[^"]*_test\.cpp)"', re.MULTILINE)
# As atoll_sources in CMakeLists.txt.
NO_PART = re.compile(r"_main\.cpp$|/(examples?|templates?)/")

# Headers of tests have their names in the namespace around the unnamed ones.
TEST_HEADER = re.compile(r'^#include "(tests/[^"]*\.h)"', re.MULTILINE)
NAMESPACE = re.compile(r"\bnamespace(?:\s+[\w:]+)?\s*\{")
UNNAMED = re.compile(r"\bnamespace\s*\{")
STATIC = re.compile(r"^static\s+(?!_?assert)", re.MULTILINE)
TYPE = re.compile(
    r"(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)"
)
ALIAS = re.compile(r"(?:using|namespace)\s+(\w+)\s*=\s*(.*)")
MACRO = re.compile(r"[A-Z][A-Z0-9_]*\s*\(")


def closing(text, at, pair):
    """The end of what the bracket at `at` opens."""
    depth = 0
    for end in range(at, len(text)):
        depth += {pair[0]: 1, pair[1]: -1}.get(text[end], 0)
        if depth == 0:
            return end
    return len(text)


def declarations(code, begin, end):
    """Yields (position, text) of what is declared directly in code[begin:end], without bodies."""
    start = begin
    parts = []
    at = begin
    while at < end:
        char = code[at]
        if char in "({":
            close = min(closing(code, at, "()" if char == "(" else "{}"), end)
            # What is in braces is a body or an initial value.
            parts.append(code[at : close + 1] if char == "(" else "{}")
            at = close + 1
            joined = "".join(parts).strip()
            following = code[at:end].lstrip()[:1]
            is_body = char == "{" and following not in (";", ",", "(", "{") and "(" in joined
            if is_body:
                yield start, joined
                start, parts = at, []
            continue
        if char == ";":
            yield start, "".join(parts).strip()
            start, parts = at + 1, []
        else:
            parts.append(char)
        at += 1


def without_angles(text):
    while True:
        after = re.sub(r"<[^<>()]*>", "", text)
        if after == text:
            return text
        text = after


def parameters(text):
    """The types of a parameter list, as text."""
    depth = 0
    current = []
    found = []
    for char in text + ",":
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            found.append("".join(current))
            current = []
        else:
            current.append(char)
    types = []
    for one in found:
        one = " ".join(one.split("=")[0].split())
        one = re.sub(r"(?<=[\s&*>])\w+$", "", one) if re.search(r"[\s&*>]\w+$", one) else one
        types.append(re.sub(r"\bconst\b(?=\s*$)|\s", "", one))
    return ",".join(types)


def meaning(text):
    """(name, what two declarations of the name must differ in to live together), or None."""
    text = " ".join(text.split())
    text = re.sub(r"\[\[[^\]]*\]\]\s*", "", text)
    if text.startswith("template"):
        at = text.find("<")
        text = text[closing(text, at, "<>") + 1 :].strip() if at >= 0 else text
    alias = ALIAS.match(text)
    if alias:
        return alias.group(1), f"alias {alias.group(2)}"
    kind = TYPE.match(text)
    if kind and not re.match(r"(?:struct|class)\s+\w+(?:::\w+)*[&*\s]+\w+\s*[({=]", text):
        return kind.group(1), None
    if not text or text.startswith(("using ", "static_assert", "extern ", "friend ")):
        return None
    if MACRO.match(text):
        return None
    flat = without_angles(text)
    match = re.search(r"(~?\w+|operator\s*\S+?)\s*(?=\(|=|\{|\[|$)", flat)
    if not match or match.group(1) in ("operator", "alignas", "decltype"):
        return None
    name = match.group(1)
    if "::" in flat[max(0, match.start() - 2) : match.start()]:
        return None  # a member that is defined here
    if flat[match.end() : match.end() + 1] == "(":
        opening = text.index("(", text.index(name))
        return name, f"function ({parameters(text[opening + 1 : closing(text, opening, '()')])})"
    return name, None


def names_of(text, spaces=UNNAMED):
    """Yields (line, name, meaning) of what a source keeps for itself, or of what is in `spaces`."""
    code = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), code_only(text))
    spans = []
    for match in spaces.finditer(code):
        spans.append((match.end(), closing(code, match.end() - 1, "{}")))
    for begin, end in spans:
        for position, declaration in declarations(code, begin, end):
            found = meaning(re.sub(r"^(?:(?:inline|constexpr)\s+)+", "", declaration))
            if found:
                skipped = len(code[position:end]) - len(code[position:end].lstrip())
                yield code.count("\n", 0, position + skipped) + 1, *found
    for match in STATIC.finditer(code):
        stop = re.search(r"[;{]", code[match.end():])
        found = meaning(code[match.end() : match.end() + stop.start()]) if stop else None
        if found:
            yield code.count("\n", 0, match.start()) + 1, *found


def check_sources(sources):
    """Yields (path, line, message). `sources`: pairs of path and text of one library; headers, whose
    names the sources must not have either, come first."""
    first = {}
    for path, text in sources:
        mine = set()
        is_header = str(path).endswith(".h")
        for line, name, kind in names_of(text, NAMESPACE if is_header else UNNAMED):
            for other_path, other_line, other_kind in first.get(name, []):
                if other_path == path or (is_header and str(other_path).endswith(".h")):
                    continue
                if kind is not None and other_kind is not None:
                    sort, other_sort = kind.split()[0], other_kind.split()[0]
                    if sort == other_sort and (sort == "alias") == (kind == other_kind):
                        continue
                if (name, other_path) in mine:
                    continue
                mine.add((name, other_path))
                where = "" if str(other_path).endswith(".h") else " in its unnamed namespace"
                yield path, line, f"{name}: {other_path}:{other_line} has one{where}, too"
            first.setdefault(name, []).append((path, line, kind))


def test_headers(root, sources):
    """The headers of tests that the sources include, also through other headers."""
    headers = set()
    unread = list(sources)
    while unread:
        path = unread.pop()
        text = (root / path).read_text(encoding="utf-8") if (root / path).is_file() else ""
        included = {pathlib.Path(name) for name in TEST_HEADER.findall(text)} - headers
        headers |= included
        unread += included
    return sorted(header for header in headers if (root / header).is_file())


def tests(root):
    """Lists of the paths of the tests that CMake may join, after the headers that they include."""
    programs = {}
    for file in sorted((root / "tests").rglob("*_test.cpp")):
        path = file.relative_to(root)
        program = programs.setdefault((path.parent, TEST.search(path.name).group(1)), [])
        program += [path, *(pathlib.Path(name) for name in
                            INCLUDED_TEST.findall(file.read_text(encoding="utf-8")))]
    return [test_headers(root, sources) + sources for sources in programs.values()]


def libraries(root):
    """Lists of the paths of each library, relative to the root."""
    folders = LIBRARIES + [[f"bench/{f.name}"] for f in sorted((root / "bench").glob("*"))
                           if f.is_dir()]
    for parts in folders:
        yield [file.relative_to(root) for part in parts
               for file in sorted((root / part).rglob("*.cpp"))
               if not NO_PART.search(file.as_posix())
               and (parts != ["ops"] or file.relative_to(root).parts[1] != "verify")]
    yield from tests(root)


def check_tree(root):
    count = 0
    violations = []
    for paths in libraries(root):
        count += sum(path.suffix == ".cpp" for path in paths)
        sources = [(path, (root / path).read_text(encoding="utf-8")) for path in paths]
        for path, line, message in check_sources(sources):
            violations.append(f"{path}:{line}: {message}")
    return count, violations


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: unnamed_names.py ROOT")
    count, violations = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(violations + [f"{count} files, {len(violations)} violations"]))
    sys.exit(1 if violations or count == 0 else 0)


if __name__ == "__main__":
    main()
