#!/usr/bin/python3
"""Layering, atomics, sizes and assertions of the sources; rules, references and words of comments
and Markdown; files and functions that both name.

Prints `file:line: rule` and ends with 1 on violations.

check_source.py ROOT checks the tree at ROOT; tests/checks plants violations to see it fail.
"""
import fnmatch
import pathlib
import posixpath
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
MAX_FUNCTION_LINES = 70  # not for tests/, where a function may be a long scenario
# Longer functions that stay as they are: (path, name).
LONG_FUNCTIONS = {
    ("engine/mastertree/descent.cpp", "descend"),
}
# Limits for figures of the tree that may only improve. Tighten them when the tree improves.
CHECKED_FOLDERS = ("engine", "shared")
MIN_CHECKS_PER_100_LINES = 2.8
# Headers of applications, which have no CHECK: that name is free for the application.
HEADERS_WITHOUT_CHECKS = "engine/api/atoll/"
CORE_FOLDERS = ("engine", "shared", "soc", "coordinator")
SMALL_FILE_LINES = 50
MAX_PERCENT_OF_SMALL_FILES = 15.5
CHECK_CALL = re.compile(r"(?<!define )\bD?CHECK\s*\(")
ATOMIC_CALL = re.compile(
    r"(?:\.|->)\s*(load|store|exchange|fetch_add|fetch_sub|fetch_and|fetch_or|fetch_xor|"
    r"compare_exchange_weak|compare_exchange_strong|test_and_set)\s*\("
)
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
# The table of rules (R1 ... R<LAST_RULE>): the code that keeps each rule, and the test that fails
# without it.
RULES = "engine/RULES.md"
# Their texts: a heading `### R<number> (name)` for each rule.
RULE_TEXTS = "engine/rules"
RULE_HEADING = re.compile(r"^### R(\d+) \((\S.*)\)$")
RULE_CITED = re.compile(r"\bR([1-9]\d*)\b")
LAST_RULE = 108
# Papers: a row `| TAG00 | ...` for each tag that is cited as [TAG00].
BIBLIOGRAPHY = "engine/BIBLIOGRAPHY.md"
TAG_ROW = re.compile(r"^\| ([A-Z]+\d\d) \|")
TAG_CITED = re.compile(r"\[([A-Z]{2,}\d\d)\]")
RULE_TEST = "rules_mutant_test.cpp"
RULE_TEST_ROW = re.compile(r'\{"(\w+)",\s*Mutant::')
TEST = re.compile(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)
# References to texts that are not in the repository.
ELSEWHERE = re.compile(
    r"\bdesign:|\bdesign \d|\bdesign/\d|\bcorrectness-rules\b|\bthe design's (?:correctness|rules)"
    r"|\b(?:foedus|silor|sofort|nvm-engines|failure-atomic-slotted-paging)\.txt\b"
)
# Words that make comments hard to read, and what to write instead.
BANNED_WORDS = {
    "whoever": "name the component",
    "somebody": "name the component",
    "nobody": "name the component",
    "anybody": "name the component",
    "anew": "again, or a new one",
    "in vain": "no progress, unproductive",
    "for want of": "because there is no",
    "lest": "so that ... not",
}
# A space in these words may be a line end and the mark of a comment.
GAP = r"[\s/*]+"
BANNED = re.compile(r"\b(" + "|".join(BANNED_WORDS).replace(" ", GAP) + r")\b", re.IGNORECASE)
MAX_CELL = 120
# A line that is one link, perhaps of a list or a definition.
BARE_LINK = re.compile(
    r"\s*(?:[*-] |\d+\. |\[[^\]]*\]: )?(?:<\S+>|\[[^\]]*\]\(\S+\)|https?://\S+)[.;,]?"
)
# Code in Markdown: `text` within one line.
SPAN = re.compile(r"`([^`\n]+)`")
# What looks like a file of the tree, or like files of any of these kinds: `run.h`, `log/merge.*`.
FILE_NAME = re.compile(r"[\w.*/-]*\w[\w*]*\.(?:h|cpp|inc|py|sh|md|\*)")
FOLDER_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)*/")
# The target of a link within the tree: [text](path#place).
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")
# The first cell of a row about files: it begins with the name of a file, or with a link to one.
FIRST_CELL = re.compile(r"\|\s*(?=`|\[`)[^|]*\|")
# Lists what was once: its names of files are not checked.
CHANGE_LOG = "ops/CHANGELOG.md"
# A name of code in Markdown of the core: Class::function, snake_case, CamelCase, kConstant.
CODE_NAME = re.compile(r"(?<![\w.:/<-])[A-Za-z_]\w*(?:::~?\w+)*")
SPECIFIC_NAME = re.compile(r"\w_\w|::|[a-z][A-Z]")
# Names of the build, not of code: a test in ctest (its path, with underscores), or a library.
BUILD_NAME = re.compile(r"[a-z]+_\w+_test|atoll_[a-z]+")
# Its body has the members that texts name Class::member.
SCOPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+class)?|namespace)\s+"
                   r"(?:alignas\s*\([^)]*\)\s*)?(\w+)[^;{}()]*\{")
# In a comment: a header or source, and Class::function.
FILE_IN_COMMENT = re.compile(r"(?<![\w.*/<>-])[\w/]+\.(?:h|cpp|inc)\b")
MEMBER_IN_COMMENT = re.compile(r"(?<![\w:./])(?!std::)[A-Za-z_]\w*(?:::~?\w+)+")
# A raw string's text is not code: R"x( ... )x", then ordinary literals and comments.
NOT_CODE = re.compile(
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)


def code_only(text):
    """The text with comments and literals blanked out, line by line in the same place."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def comments_only(text):
    """The comments, with all else blanked out, line by line in the same place."""
    blank = re.compile(r"[^\n]")
    kept = []
    end = 0
    for match in NOT_CODE.finditer(text):
        kept.append(blank.sub(" ", text[end : match.start()]))
        is_comment = match.group().startswith(("//", "/*"))
        kept.append(match.group() if is_comment else blank.sub(" ", match.group()))
        end = match.end()
    kept.append(blank.sub(" ", text[end:]))
    return "".join(kept)


def without_comments(text):
    """Code and literals, with comments blanked out."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group())
                        if match.group().startswith(("//", "/*")) else match.group(), text)


class Names:
    """What comments and Markdown may cite: numbers of rules, tags of papers."""

    def __init__(self, rules=(), tags=()):
        self.rules = set(rules)
        self.tags = set(tags)

    @classmethod
    def of_tree(cls, root):
        names = cls()
        for file in rule_files(root):
            for line in file.read_text(encoding="utf-8").splitlines():
                names.rules.update(int(rule) for rule, _ in RULE_HEADING.findall(line))
        bibliography = root / BIBLIOGRAPHY
        if bibliography.is_file():
            lines = bibliography.read_text(encoding="utf-8").splitlines()
            names.tags.update(tag for line in lines for tag in TAG_ROW.findall(line))
        return names


def rule_files(root):
    files = [root / RULES, *sorted((root / RULE_TEXTS).glob("*.md"))]
    return [file for file in files if file.is_file()]


def check_words(path, text, names):
    """Yields (line, message): words, references and citations in comments or Markdown `text`."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in RULE_CITED.finditer(line):
            if int(match.group(1)) not in names.rules:
                yield number, f"{match.group()}: no rule has this number: see {RULES}"
        for match in TAG_CITED.finditer(line):
            if match.group(1) not in names.tags:
                yield number, f"{match.group()}: {BIBLIOGRAPHY} has no such paper"
        for match in ELSEWHERE.finditer(line):
            yield number, (f'"{match.group()}": the text is not in the repository: cite a rule '
                           f"(R31), a paper ([FOEDUS15]), or say the reason")
    # The words may be on two lines of a paragraph.
    for match in BANNED.finditer(text):
        word = re.sub(GAP, " ", match.group(1))
        yield text.count("\n", 0, match.start()) + 1, f'"{word}": {BANNED_WORDS[word.lower()]}'


def check_markdown(path, text, names):
    """Yields (line, message) for each violation in the Markdown file at `path`."""
    if not text.startswith("# "):
        yield 1, 'the file does not begin with "# " and a title'
    is_fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_fenced = not is_fenced
        elif line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())]
            if any(len(cell) > MAX_CELL for cell in cells):
                yield number, f"a cell of the table has more than {MAX_CELL} characters"
        elif len(line) > MAX_COLUMNS and not is_fenced and not BARE_LINK.fullmatch(line):
            yield number, f"the line has more than {MAX_COLUMNS} columns"
    yield from check_words(path, text, names)


class Tree:
    """What Markdown may name: files, folders, and identifiers of the sources."""

    def __init__(self, paths, sources=()):
        """`paths`: of all files, relative to the root. `sources`: texts without comments."""
        self.paths = set(paths)
        for path in list(self.paths):
            self.paths.update(parent.as_posix() for parent in pathlib.PurePosixPath(path).parents)
        self.words = set()
        self.members = {}
        for code in sources:
            self.words.update(re.findall(r"\w+", code))
            for name, words in members_of(code):
                self.members.setdefault(name, set()).update(words)

    @classmethod
    def at(cls, root):
        files = [file for file in root.glob("*") if file.is_file()]
        for folder in [*BELOW, "configs", ".github", ".ci"]:
            files += [file for file in (root / folder).rglob("*") if file.is_file()]
        sources = (without_comments(file.read_text(encoding="utf-8")) for file in files
                   if file.suffix in (".h", ".cpp", ".inc"))
        return cls((file.relative_to(root).as_posix() for file in files), sources)

    def has(self, folder, name, in_folder):
        """Whether `name` is a path from the root, the document's `folder` or its uppermost folder;
        or the last part of a path: below `folder` if `in_folder`, else anywhere."""
        name = name.rstrip("/")
        bases = {folder} if in_folder else {folder, "", folder.split("/")[0]}
        patterns = {posixpath.normpath(posixpath.join(base, name)) for base in bases}
        if "/" not in name:
            patterns.add(posixpath.join(folder if in_folder else "", f"*/{name}"))
        return not patterns.isdisjoint(self.paths) or any(
            fnmatch.filter(self.paths, pattern) for pattern in patterns if "*" in pattern)

    def has_link(self, folder, target):
        return posixpath.normpath(posixpath.join(folder, target)) in self.paths

    def has_code(self, name):
        """Whether some source has `name`: as it is, or as a member in the body of its class."""
        if "::" not in name:
            return name in self.words
        scope, member = name.split("::")[-2:]
        return member.lstrip("~") in self.members.get(scope, ()) or name in self.members.get("", ())


def members_of(code):
    """Yields (name, words in the body) of each class, enumeration and namespace in `code`; and
    ("", all names A::b)."""
    yield "", set(re.findall(r"(?<![\w:])\w+(?:::~?\w+)+", code))
    ends = {}
    opened = []
    for match in re.finditer(r"[{}]", code):
        if match.group() == "{":
            opened.append(match.start())
        elif opened:
            ends[opened.pop()] = match.start()
    for match in SCOPE.finditer(code):
        begin = match.end() - 1
        yield match.group(1), set(re.findall(r"\w+", code[begin : ends.get(begin, len(code))]))


def check_references(path, text, tree):
    """Yields (line, message) for each link, for each file in backticks, and in the core's folders
    for each name of code in backticks, in the Markdown file at `path`, that the tree does not have.
    """
    folder = "" if path.parent.as_posix() == "." else path.parent.as_posix()
    is_core = path.parts[0] in CORE_FOLDERS
    is_fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        is_fenced ^= line.lstrip().startswith("```")
        if is_fenced or path.as_posix() == CHANGE_LOG:
            continue
        for target in LINK.findall(line):
            if not tree.has_link(folder, target):
                yield number, f"{target}: the link leads to no file or folder of the tree"
        first = FIRST_CELL.match(line) if path.name == "README.md" else None
        for span in SPAN.finditer(line):
            name = span.group(1)
            is_folder = FOLDER_NAME.fullmatch(name) and (first or name.split("/")[0] in BELOW)
            in_folder = first is not None and span.end() < first.end()
            # A control operation, `kv.*`, looks like files without a folder.
            is_file = FILE_NAME.fullmatch(name) and (
                in_folder or "/" in name or not name.endswith(".*"))
            if is_file or is_folder:
                if not tree.has(folder, name, in_folder):
                    where = f"below {folder or 'the root'}" if in_folder else "in the tree"
                    yield number, f"{name}: there is no such file or folder {where}"
            elif is_core and not FILE_NAME.fullmatch(name) and not BUILD_NAME.fullmatch(name):
                for code in CODE_NAME.findall(name):
                    if SPECIFIC_NAME.search(code) and not tree.has_code(code):
                        yield number, f"{code}: no source has this name"


def check_comment_references(comments, tree):
    """Yields (line, message) for each file and each Class::function in `comments` that the tree
    does not have."""
    for number, line in enumerate(comments.splitlines(), 1):
        for name in FILE_IN_COMMENT.findall(line):
            if not tree.has("", name, False):
                yield number, f"{name}: there is no such file in the tree"
        for name in MEMBER_IN_COMMENT.findall(line):
            if not tree.has_code(name):
                yield number, f"{name}: no source has this name"


def arguments(code, opening):
    """What stands between the parenthesis at `opening` and its partner."""
    depth = 0
    for end in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        if depth == 0:
            return code[opening + 1 : end]
    return code[opening + 1 :]


ACCESS = r"\s*(?:(?:public|protected|private)\s*:\s*)*"
BEFORE_FUNCTION = re.compile(ACCESS)
HEAD_OF_SCOPE = re.compile(
    ACCESS + r"(?:template\s*<.*>\s*)?(?:inline\s+)?"
    r"(?:namespace|extern|struct|class|union|enum)\b[^(]*",
    re.DOTALL,
)
ALIGNMENT = re.compile(r"\balignas\s*\([^)]*\)")
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)


def functions(code):
    """Yields (name, first line, last line) of each function body, without those within functions.
    `code` has no comments and literals."""
    code = DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), code)
    head = 0  # begin of the current declaration
    depth = 0  # of braces within the current function or initial value
    opened = None  # position of its first brace
    parentheses = 0
    for at, char in enumerate(code):
        if opened is not None:
            depth += {"{": 1, "}": -1}.get(char, 0)
            if depth == 0:
                text = code[head:opened]
                begin = head + BEFORE_FUNCTION.match(text).end()
                called = re.search(r"(~?\w+)\s*(?:=\s*\[[^\]]*\]\s*)?\(", text)
                if called:
                    yield (called.group(1), code.count("\n", 0, begin) + 1,
                           code.count("\n", 0, at) + 1)
                opened = None
                head = at + 1
        elif char in "()":
            parentheses += 1 if char == "(" else -1
        elif char == "{":
            if parentheses == 0 and HEAD_OF_SCOPE.fullmatch(
                ALIGNMENT.sub("", code[head:at])
            ):
                head = at + 1
            else:
                opened, depth = at, 1
        elif char in ";}" and parentheses == 0:
            head = at + 1


def check_text(path, text, names):
    """Yields (line, message) for each violation in the source at `path`, relative to the root."""
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
    for name, begin, end in functions(code) if folder != "tests" else ():
        count = end - begin + 1
        if count > MAX_FUNCTION_LINES and (path.as_posix(), name) not in LONG_FUNCTIONS:
            yield begin, f"{name}() has {count} lines, more than {MAX_FUNCTION_LINES}"
    yield from check_words(path, comments_only(text), names)


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
    """Yields (line, message): engine/RULES.md has every rule, and names what exists and every row;
    every rule has one text."""
    tests, rows = names_of_tests(root)
    text = (root / RULES).read_text(encoding="utf-8")
    missing = rows.copy()
    rules = set()
    texts = []
    for file in rule_files(root):
        lines = file.read_text(encoding="utf-8").splitlines()
        texts += [int(rule) for line in lines for rule, _ in RULE_HEADING.findall(line)]
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        rules.update(int(rule) for rule in re.findall(r"^\| R(\d+) \|", line))
        for name in re.findall(r"`([^`]+)`", line):
            missing.discard(name)
            known = (root / name).is_file() if "/" in name else name in tests or name in rows
            if not known:
                yield number, f"{name}: there is no such file, test or row of {RULE_TEST}"
    if texts and max(texts) != LAST_RULE:
        yield 1, f"the last text is R{max(texts)}, LAST_RULE of check_source.py is {LAST_RULE}"
    for rule in range(1, LAST_RULE + 1):
        if rule not in rules:
            yield 1, f"R{rule} has no line"
        if texts.count(rule) != 1:
            yield 1, f"R{rule} has {texts.count(rule)} headings `### R{rule} (name)`, not one"
    for row in sorted(missing):
        yield 1, f"{row}, a row of {RULE_TEST}, is in no line"


def check_tree(root):
    count = 0
    violations = []
    names = Names.of_tree(root)
    tree = Tree.at(root)
    markdown = sorted(file for file in root.glob("*.md"))
    for folder in [*BELOW, "configs", ".github"]:
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root)
            if file.suffix == ".md":
                markdown.append(file)
            if file.suffix not in (".h", ".cpp"):
                continue
            count += 1
            text = file.read_text(encoding="utf-8")
            for line, message in [*check_text(path, text, names),
                                  *check_comment_references(comments_only(text), tree)]:
                violations.append(f"{path}:{line}: {message}")
    for file in markdown:
        path = file.relative_to(root)
        text = file.read_text(encoding="utf-8")
        for line, message in [*check_markdown(path, text, names),
                              *check_references(path, text, tree)]:
            violations.append(f"{path}:{line}: {message}")
    if (root / RULES).is_file():
        violations += [f"{RULES}:{line}: {message}" for line, message in check_rules(root)]
    return count, violations


def sources_below(root, folders):
    return [file for folder in folders for file in sorted((root / folder).rglob("*"))
            if file.suffix in (".h", ".cpp")]


def check_ratchets(root):
    """Yields a message for each figure of the tree that has become worse."""
    texts = [file.read_text(encoding="utf-8") for file in sources_below(root, CHECKED_FOLDERS)
             if HEADERS_WITHOUT_CHECKS not in file.as_posix()]
    lines = sum(text.count("\n") for text in texts)
    checks = sum(len(CHECK_CALL.findall(code_only(text))) for text in texts)
    if lines and 100 * checks / lines < MIN_CHECKS_PER_100_LINES:
        yield (f"{' and '.join(CHECKED_FOLDERS)}: {checks} CHECK and DCHECK in {lines} lines are "
               f"{100 * checks / lines:.3f} per 100, fewer than {MIN_CHECKS_PER_100_LINES}: assert "
               "the invariants of the new code")
    files = sources_below(root, CORE_FOLDERS)
    small = sum(file.read_text(encoding="utf-8").count("\n") < SMALL_FILE_LINES for file in files)
    if files and 100 * small / len(files) > MAX_PERCENT_OF_SMALL_FILES:
        yield (f"{', '.join(CORE_FOLDERS)}: {small} of {len(files)} files have fewer than "
               f"{SMALL_FILE_LINES} lines, {100 * small / len(files):.2f} %, more than "
               f"{MAX_PERCENT_OF_SMALL_FILES} %: put small files into those that use them")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_source.py ROOT")
    root = pathlib.Path(sys.argv[1])
    count, violations = check_tree(root)
    violations += check_ratchets(root)
    print("\n".join(violations + [f"{count} files, {len(violations)} violations"]))
    sys.exit(1 if violations or count == 0 else 0)


if __name__ == "__main__":
    main()
