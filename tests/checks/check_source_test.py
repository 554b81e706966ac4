#!/usr/bin/python3
"""ops/checks/check_source.py finds every kind of violation, and nothing in clean code."""
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ops" / "checks"))
sys.dont_write_bytecode = True
import check_source  # noqa: E402


NAMES = check_source.Names(rules=(1, 43), tags=("FOEDUS15",))


def messages(path, text):
    return [m for _, m in check_source.check_text(pathlib.PurePosixPath(path), text, NAMES)]


def markdown_messages(path, text):
    text = text if text.startswith("#") else f"# Title\n{text}"
    return [m for _, m in check_source.check_markdown(pathlib.PurePosixPath(path), text, NAMES)]


class CheckSource(unittest.TestCase):
    def assert_bad(self, path, text, part):
        found = messages(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def assert_clean(self, path, text):
        self.assertEqual(messages(path, text), [])

    def test_includes_go_down_only(self):
        folders = list(check_source.BELOW)
        for includer in folders:
            for target in folders:
                text = f'#include "{target}/x.h"\n'
                if target in check_source.BELOW[includer]:
                    self.assert_clean(f"{includer}/a.cpp", text)
                else:
                    self.assert_bad(f"{includer}/a.cpp", text, "may not include")

    def test_the_layers_are_those_of_the_design(self):
        self.assert_bad("shared/a.cpp", '#include "engine/a.h"\n', "may not include engine/")
        self.assert_bad("soc/a.cpp", '#include "coordinator/a.h"\n', "may not include")
        self.assert_bad("coordinator/a.cpp", '#include "soc/a.h"\n', "may not include soc/")
        self.assert_bad("engine/a.cpp", '#include "soc/a.h"\n', "may not include soc/")
        self.assert_bad("bench/a.cpp", '#include "ops/a.h"\n', "may not include ops/")
        self.assert_bad("ops/a.cpp", '#include "tests/a.h"\n', "may not include tests/")

    def test_includes_begin_at_the_root(self):
        self.assert_bad("shared/a.cpp", '#include "a.h"\n', "root of the repository")
        self.assert_clean("shared/a.cpp", "#include <atomic>\n")

    def test_atomics_name_their_order(self):
        for call in ("load()", "store(1)", "exchange(2)", "fetch_add(f(1))",
                     "compare_exchange_strong(a, b)", "compare_exchange_weak(\n  a,\n  b)"):
            self.assert_bad("engine/a.cpp", f"x.{call};\n", "without a memory order")
            self.assert_bad("engine/a.cpp", f"x->{call};\n", "without a memory order")
        self.assert_clean("engine/a.cpp", "x.load(std::memory_order_relaxed);\n")
        self.assert_clean("engine/a.cpp", "x.store(f(1),\n  std::memory_order::release);\n")
        self.assert_clean("shared/a.h", "#pragma once\nreturn x.load(order);\n")
        # The order of another call on the line does not count.
        self.assert_bad("engine/a.cpp", "x.store(1); y.load(std::memory_order_relaxed);\n", "store")

    def test_fences_live_in_shared_sync(self):
        text = "std::atomic_thread_fence(std::memory_order_seq_cst);\n"
        self.assert_bad("engine/a.cpp", text, "fences")
        self.assert_bad("shared/memory/a.cpp", text, "fences")
        self.assert_clean("shared/sync/a.cpp", text)

    def test_volatile(self):
        self.assert_bad("soc/a.cpp", "volatile int x;\n", "volatile")
        self.assert_clean("soc/a.cpp", "int volatile_pool;  // not volatile\n")
        self.assert_clean("soc/a.cpp", 'auto s = "volatile";\nauto t = R"(volatile)";\n')
        self.assert_bad("soc/a.cpp", "auto n = 1'000; volatile int x = 2'000;\n", "volatile")

    def test_unfinished_work(self):
        for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
            self.assert_bad("ops/a.cpp", f"// {word}: later\n", "unfinished")

    def test_sizes(self):
        self.assert_clean("ops/a.cpp", "x;\n" * check_source.MAX_LINES)
        self.assert_bad("ops/a.cpp", "x;\n" * (check_source.MAX_LINES + 1), "lines")
        self.assert_clean("ops/a.cpp", "x" * check_source.MAX_COLUMNS + "\n")
        self.assert_bad("ops/a.cpp", "x" * (check_source.MAX_COLUMNS + 1) + "\n", "columns")

    def test_lengths_of_functions(self):
        def body(lines):
            return "{\n" + "  if (a) {\n  }\n" * ((lines - 2) // 2) + "}\n"

        longest = check_source.MAX_FUNCTION_LINES
        for head in ("void f(int a) ", "Result<int> A::f() const ", "A::f(int a) : a_{a}, b_(a) ",
                     "namespace a {\nstruct B {\n  int c = 1;\n};\nclass C final : public B {\n"
                     " public:\n  struct D {\n  };\n\n private:\n  int f() ",
                     "enum class E { one };\ntemplate <class T> int f() ",
                     "auto f = [](int a) ", "Map f({});\nstatic inline int f(void (*g)()) "):
            text = head + body(longest)
            self.assert_clean("soc/a.cpp", text)
            self.assert_clean("tests/a.cpp", head + body(longest + 2))
            found = messages("soc/a.cpp", head + body(longest + 2))
            self.assertEqual(len(found), 1, (head, found))
            self.assertIn(f"has {longest + 2} lines", found[0])
        # Neither scopes nor tables are functions. Braces in comments and literals do not count.
        lines = "  int x;\n" * longest
        for head in ("struct B ", "class alignas(64) B final : public C ", "union B ",
                     "struct A {\n public:\n  template <class T>\n  struct B "):
            self.assert_clean("soc/a.cpp", "namespace a {\n" + head + "{\n" + lines + "};\n")
        self.assert_clean("soc/a.cpp", "const int kTable[] = {\n" + "  1,\n" * longest + "};\n")
        self.assert_clean("soc/a.cpp", 'void f() {\n  g("{");  // {\n}\n' + "int x;\n" * longest)
        with mock.patch.object(check_source, "LONG_FUNCTIONS", {("soc/a.cpp", "f")}):
            self.assert_clean("soc/a.cpp", "int f() " + body(longest + 2))
            self.assert_bad("soc/b.cpp", "int f() " + body(longest + 2), "f() has")

    @staticmethod
    def ratchets(files):
        """What the ratchets say of a tree with these files."""
        with tempfile.TemporaryDirectory() as name:
            for path, text in files.items():
                file = pathlib.Path(name, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return list(check_source.check_ratchets(pathlib.Path(name)))

    def test_assertions_do_not_become_fewer(self):
        lines = "x;\n" * 1000
        needed = int(10 * check_source.MIN_CHECKS_PER_100_LINES) + 1

        def tree(count, more="", folder="engine"):
            text = "CHECK(a);\n" * (count // 2) + "  DCHECK(f(b));\n" * (count - count // 2)
            return {f"{folder}/a.cpp": text + more + lines[3 * count:]}

        self.assertEqual(self.ratchets(tree(needed)), [])
        for few in (tree(0), tree(0, "// CHECK(a)\n" * needed), tree(0, "MYCHECK(a);\n" * 90),
                    tree(0, '#define CHECK(a)\nauto a = "CHECK(a)";\n' * 90),
                    {**tree(needed, folder="soc"), **tree(0, folder="shared")}):
            found = self.ratchets(few)
            self.assertEqual(len(found), 1, found)
            self.assertIn("CHECK and DCHECK in", found[0])

    def test_small_files_do_not_become_more(self):
        large = "CHECK(a);\n" * check_source.SMALL_FILE_LINES
        small = large[len("CHECK(a);\n"):]

        def tree(count):
            return {f"{check_source.CORE_FOLDERS[i % 4]}/{i}.cpp": small if i < count else large
                    for i in range(100)}

        most = int(check_source.MAX_PERCENT_OF_SMALL_FILES)
        self.assertEqual(self.ratchets(tree(most)), [])
        found = self.ratchets(tree(most + 1))
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"{most + 1} of 100 files have fewer than", found[0])

    def test_the_program_fails_on_a_ratchet(self):
        with tempfile.TemporaryDirectory() as name:
            (pathlib.Path(name) / "engine").mkdir()
            file = pathlib.Path(name) / "engine" / "a.cpp"
            for line, code, part in (("x;\n", 1, "fewer than"), ("CHECK(a);\n", 0, "0 violations")):
                file.write_text(line * check_source.SMALL_FILE_LINES)
                ran = subprocess.run([sys.executable, check_source.__file__, name],
                                     capture_output=True, text=True, check=False)
                self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
                self.assertIn(part, ran.stdout)

    def test_headers_are_included_once(self):
        self.assert_bad("soc/a.h", "int x;\n", "#pragma once")

    def test_a_tree_is_walked_and_named(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            self.assertEqual(check_source.check_tree(root), (0, []))
            (root / "engine" / "deep").mkdir(parents=True)
            (root / "engine" / "deep" / "a.cpp").write_text('\n#include "soc/x.h"\n')
            self.assertEqual(check_source.check_tree(root),
                             (1, ["engine/deep/a.cpp:2: engine/ may not include soc/"]))

    def assert_bad_words(self, words, part):
        """In a comment of either kind and in Markdown, but neither in code nor in a literal."""
        self.assert_bad("engine/a.cpp", f"// {words}.\n", part)
        self.assert_bad("tests/a.cpp", f"int x; /* on\n {words} */ int y;\n", part)
        self.assert_clean("engine/a.cpp", f'auto s = "{words}";\n')
        found = markdown_messages("soc/README.md", f"# Title\n\n{words}\n")
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def assert_good_words(self, words):
        self.assert_clean("engine/a.cpp", f"// {words}.\n")
        self.assertEqual(markdown_messages("README.md", words), [])

    def test_rules_that_are_cited_exist(self):
        self.assert_bad_words("as R" + "44 says", "R44: no rule has this number")
        self.assert_bad_words("rules R1, R" + "2", "R2: no rule has this number")
        self.assert_good_words("R1, R43 (removed-version floor), R0, RFC 9562, R1x, xR" + "2")
        self.assert_clean("engine/a.cpp", "int R" + "44 = 0;\n")

    def test_papers_that_are_cited_exist(self):
        self.assert_bad_words("[ARIES" + "92] section 3", "has no such paper")
        self.assert_good_words("[FOEDUS15] section 7.3, [0], [a-z], [T]")
        self.assert_clean("engine/a.cpp", "x[ARIES" + "92] = 1;\n")

    def test_texts_that_are_cited_are_in_the_repository(self):
        for words in ("design" + ": durability", "design" + " 25", "see design" + "/25-rules.md",
                      "the correctness" + "-rules", "foedus" + ".txt section 5", "(silor" + ".txt)",
                      "nvm-engines" + ".txt", "the design" + "'s correctness rules"):
            self.assert_bad_words(words, "not in the repository")
        self.assert_good_words("a design by Kimura, notes.txt, designs: many, redesign: no")

    def test_banned_words(self):
        for word in ("who" + "ever", "Some" + "body", "no" + "body", "any" + "body", "a" + "new",
                     "in " + "vain", "for want" + " of", "le" + "st"):
            self.assert_bad_words(f"here {word} waits", word)
        # On two lines of one paragraph.
        self.assertEqual(len(markdown_messages("engine/a.md", "it waits in" + "\nvain\n")), 1)
        self.assert_bad("engine/a.cpp", "// it waits in" + "\n// vain\n", "in vain")
        self.assert_good_words("somebodys, latest, lesser, in a vain hope, body, renewed")

    def test_markdown_begins_with_a_title(self):
        self.assertEqual(markdown_messages("ops/README.md", "# Title\n"), [])
        for text in ("#Title\n", "## Title\n"):
            found = markdown_messages("ops/README.md", text)
            self.assertEqual(len(found), 1, found)
            self.assertIn("title", found[0])

    def test_widths_of_markdown(self):
        columns, cell = "x" * (check_source.MAX_COLUMNS + 1), "x" * (check_source.MAX_CELL + 1)
        link = "https://example.org/" + columns
        for text, part in ((columns, "columns"), (f"* {columns}", "columns"),
                           (f"see {link}", "columns"), (f"| a | {cell} |", "a cell")):
            found = markdown_messages("ops/README.md", f"# Title\n{text}\n")
            self.assertEqual(len(found), 1, found)
            self.assertIn(part, found[0])
        good = (columns[1:], f"| {cell[1:]} | {cell[1:]} |", f"| a \\| b | {cell[1:]} |",
                f"```\n{columns}\n```", link, f"<{link}>", f"[text]({link})", f"* [text]({link})",
                f"[1]: {link}")
        for text in good:
            self.assertEqual(markdown_messages("ops/README.md", text), [], text)
        # The fence has ended.
        self.assertEqual(len(markdown_messages("a.md", f"```\n```\n{columns}\n")), 1)

    def test_a_tree_of_names_is_read(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "engine" / "rules").mkdir(parents=True)
            (root / "engine" / "rules" / "a.md").write_text(
                "# Rules\n### R7 (a rule)\n### R8\n#### R9 (x)\n")
            (root / check_source.BIBLIOGRAPHY).write_text("# Papers\n| AB01 | x |\n|---|---|\nAB02 | y\n")
            names = check_source.Names.of_tree(root)
            self.assertEqual((names.rules, names.tags), ({7}, {"AB01"}))
            (root / "engine" / "README.md").write_text("# R7, R" + "8 [AB01] [AB" + "02]\n")
            self.assertEqual(check_source.check_tree(root)[1], [
                "engine/README.md:1: R8: no rule has this number: see engine/RULES.md",
                "engine/README.md:1: [AB02]: engine/BIBLIOGRAPHY.md has no such paper",
                "engine/rules/a.md:3: R8: no rule has this number: see engine/RULES.md",
                "engine/rules/a.md:4: R9: no rule has this number: see engine/RULES.md"])

    SMALL_TREE = check_source.Tree(
        ["engine/log/log_reader.cpp", "engine/log/log_reader.h", "engine/log/README.md",
         "shared/base/check.h", "README.md"],
        ["class LogReader final : public Reader {\n"
         "  void next_block() { f(kSize); }\n"
         "  PageKind kind;\n"
         "};\n"
         "struct Other {\n  int check_failed;\n};\n"
         "void check_it() { LogScan::read(LogReader()); }\n"])

    def references(self, path, text):
        """What check_references finds in SMALL_TREE."""
        return [m for _, m in check_source.check_references(pathlib.PurePosixPath(path), text,
                                                            self.SMALL_TREE)]

    def assert_one_reference(self, path, text, part):
        found = self.references(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_files_and_folders_in_markdown_exist(self):
        readme = "engine/log/README.md"
        for name in ("log_reader.cpp", "log_reader.*", "log_*.h", "check.h",
                     "engine/log/log_reader.cpp", "log/log_reader.h", "engine/log/", "../log/",
                     "../../README.md", "kv.*", "*_reader.cpp", "data/", "cluster.toml", "a.b"):
            self.assertEqual(self.references(readme, f"see `{name}`"), [], name)
        for name in ("log_writer.cpp", "reader.cpp", "log_writer*.h", "base/check.h",
                     "engine/log_reader.cpp", "log/log_writer.*", "engine/logs/", "../logs.md"):
            self.assert_one_reference(readme, f"a\nsee `{name}` and `log_reader.h`",
                                      f"{name}: there is no such file or folder")
        self.assertEqual(self.references(readme, "```\n`a.cpp`\n```\n`log_reader.h`"), [])
        self.assert_one_reference(readme, "```\n```\n`a.cpp`", "a.cpp")
        self.assertEqual(self.references(check_source.CHANGE_LOG, "was `old.h`"), [])

    def test_links_in_markdown_lead_to_files(self):
        for target in ("log_reader.h", "../log/README.md#top", "..", "https://a.org/b", "#top"):
            self.assertEqual(self.references("engine/log/README.md", f"[a]({target})"), [])
        for target in ("log_writer.h", "engine/log/README.md", "../README.md#top"):
            self.assert_one_reference("engine/log/README.md", f"[a]({target}), [b](README.md)",
                                      "the link leads to no file")

    def test_a_table_of_files_names_files_of_its_folder(self):
        readme = "engine/log/README.md"
        self.assertEqual(self.references(readme, "| `log_reader.*` | `check.h` |"), [])
        self.assertEqual(self.references("engine/README.md", "| `log/`, `log_reader.h` | x |"), [])
        self.assertEqual(self.references("README.md", "| `engine/` | `shared/` |"), [])
        for name in ("check.h", "log_writer.*", "kv.*", "more/"):
            self.assert_one_reference(readme, f"| `log_reader.h`, `{name}` | x |",
                                      f"{name}: there is no such file or folder below engine/log")

    def test_names_of_code_in_markdown_of_the_core_exist(self):
        for file in (check_source.RULES, check_source.RULE_TEXTS + "/a.md", "soc/README.md"):
            good = ("`next_block`", "`LogReader::next_block()`", "`LogReader::kSize`",
                    "`LogScan::read`",
                    "`kSize` `PageKind`", "next_chunk", "`a - b`", "`x = next_block(kSize)`",
                    "`some.x_y`", "`engine_log_log_reader_test`", "`atoll_engine`")
            self.assertEqual(self.references(file, " ".join(good)), [])
            for code, name in (("next_chunk", "next_chunk"), ("next_chunk(kSize)", "next_chunk"),
                               ("LogWriter::next_block", "LogWriter::next_block"),
                               ("LogReader::next_chunk", "LogReader::next_chunk"),
                               # Both exist, but one is a member of another class.
                               ("LogReader::check_failed", "LogReader::check_failed"),
                               ("LogScan::write", "LogScan::write"),
                               ("kLimit", "kLimit"), ("PageType", "PageType")):
                self.assert_one_reference(file, f"as `{code}` does", f"{name}: no source")
        self.assertEqual(self.references("ops/README.md", "`next_chunk`"), [])

    def test_files_and_members_in_comments_exist(self):
        def found(comment):
            return [m for _, m in check_source.check_comment_references(
                check_source.comments_only(f"int a;  // {comment}\n"), self.SMALL_TREE)]

        for good in ("see log_reader.h", "engine/log/log_reader.cpp.", "log/x", "<linux/fs.h>",
                     "Other::check_failed, std::vector::data", "LogWriter", "e.g. next_chunk",
                     "*_reader.h"):
            self.assertEqual(found(good), [], good)
        for bad in ("log_writer.h", "engine/log_reader.h", "LogReader::next_chunk",
                    "LogReader::check_failed"):
            messages_of = found(f"as ({bad}) does")
            self.assertEqual(len(messages_of), 1, messages_of)
            self.assertIn(f"{bad}: ", messages_of[0])
        self.assertEqual(len(found("one.h and two.h")), 2)

    def test_references_are_checked_in_a_tree(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "engine" / "rules").mkdir(parents=True)
            (root / "engine" / "a.cpp").write_text("int code_of;  // stale_name\n// See gone.h.\n")
            (root / "engine" / "b.inc").write_text("ROW(row_name)\n")
            (root / "engine" / "rules" / "a.md").write_text(
                "# `code_of` `row_name` `a.cpp`\n`stale_name` `c.cpp`\n")
            (root / "README.md").write_text("# `engine/a.cpp` `engine/c.cpp`\n")
            self.assertEqual(check_source.check_tree(root)[1], [
                "engine/a.cpp:2: gone.h: there is no such file in the tree",
                "README.md:1: engine/c.cpp: there is no such file or folder in the tree",
                "engine/rules/a.md:2: stale_name: no source has this name",
                "engine/rules/a.md:2: c.cpp: there is no such file or folder in the tree"])

    TEXTS = "\n".join(f"### R{i} (name)" for i in range(1, check_source.LAST_RULE + 1))

    def rules(self, table, texts=None):
        """What is wrong with the rules of a tree with one file, one test and one row."""
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / check_source.RULE_TEXTS).mkdir(parents=True)
            (root / "tests").mkdir()
            (root / check_source.RULE_TEXTS / "all.md").write_text(
                self.TEXTS if texts is None else texts)
            (root / "engine" / "a.cpp").write_text("")
            (root / "tests" / "some_test.cpp").write_text("TEST_F(Suite,\n       Name) {}\n")
            (root / "tests" / check_source.RULE_TEST).write_text(
                'const Rule kRules[] = {\n    {"Row", Mutant::none, [] { return ""; }},\n};\n')
            (root / check_source.RULES).write_text(table)
            return [m for _, m in check_source.check_rules(root)]

    def test_the_table_of_rules_names_what_exists(self):
        lines = [f"| R{i} | what | | |" for i in range(1, check_source.LAST_RULE + 1)]
        good = "\n".join(lines + ["| - | what | `engine/a.cpp` | `Row` `Suite.Name` |"])
        self.assertEqual(self.rules(good), [])
        for name in ("engine/b.cpp", "Column", "Suite.Other", "Name"):
            found = self.rules(good + f"\n| - | | | `{name}` |")
            self.assertEqual(len(found), 1, found)
            self.assertIn(f"{name}: there is no such", found[0])
        self.assertEqual(self.rules(good.replace("| R7 |", "| R8 |")), ["R7 has no line"])
        found = self.rules(good.replace("`Row`", ""))
        self.assertEqual(len(found), 1, found)
        self.assertIn("Row, a row of", found[0])

    def test_every_rule_has_one_text(self):
        table = "\n".join(f"| R{i} | | | `Row` |" for i in range(1, check_source.LAST_RULE + 1))
        self.assertEqual(self.rules(table), [])
        for texts, count in ((self.TEXTS.replace("R7 (", "R7: ("), 0),
                             (self.TEXTS.replace("R7 (name)", "R7 ()"), 0),
                             (self.TEXTS + "\n### R7 (again)", 2)):
            self.assertEqual(self.rules(table, texts),
                             [f"R7 has {count} headings `### R7 (name)`, not one"])
        one_more = check_source.LAST_RULE + 1
        found = self.rules(table, self.TEXTS + f"\n### R{one_more} (new)")
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"the last text is R{one_more}", found[0])


if __name__ == "__main__":
    unittest.main()
