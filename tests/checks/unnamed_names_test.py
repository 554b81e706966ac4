#!/usr/bin/python3
"""ops/checks/unnamed_names.py finds names that clash in joined sources, and nothing else."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ops" / "checks"))
sys.dont_write_bytecode = True
import unnamed_names  # noqa: E402


def unnamed(text):
    return "namespace atolldb {\nnamespace {\n" + text + "\n}  // namespace\n}\n"


def clashes(one, other):
    sources = [("a.cpp", one), ("b.cpp", other)]
    return [message.split(":")[0] for _, _, message in unnamed_names.check_sources(sources)]


class UnnamedNames(unittest.TestCase):
    def assert_clash(self, one, other, name):
        self.assertEqual(clashes(unnamed(one), unnamed(other)), [name])

    def assert_clean(self, one, other):
        self.assertEqual(clashes(unnamed(one), unnamed(other)), [])

    def test_values_and_types(self):
        self.assert_clash("constexpr uint32_t kWait = 1;", "constexpr uint32_t kWait = 2;", "kWait")
        self.assert_clash("const std::map<int, int> kMap{{1, 2}};", "constexpr int kMap[] = {1};",
                          "kMap")
        self.assert_clash("struct Kept {\n  int a;\n};", "class Kept : public Base {\n};", "Kept")
        self.assert_clash("enum class Kind { one };", "using Kind = int;", "Kind")
        self.assert_clash("int f() { return 1; }", "constexpr int f = 1;", "f")
        self.assert_clean("constexpr int kOne = 1;", "constexpr int kOther = 1;")

    def test_functions_with_the_same_parameters(self):
        self.assert_clash("int f(int a, const std::map<int, X>& b) {\n  return 1;\n}\nint g() {}",
                          "bool f(int x, const std::map<int, X>& y = {}) { return true; }", "f")
        self.assert_clash("template <typename T>\nT* f(A a) {}", "int f(A b);", "f")
        self.assert_clean("int f(int a) { return 1; }", "int f(const std::string& a) { return 1; }")

    def test_aliases_that_say_the_same(self):
        self.assert_clean("using Json = nlohmann::json;", "using Json = nlohmann::json;")
        self.assert_clean("namespace fs = std::filesystem;", "namespace fs = std::filesystem;")
        self.assert_clash("using Clock = A;", "using Clock = B;", "Clock")

    def test_static_is_the_same(self):
        self.assertEqual(clashes("static int f(int a) { return a; }\n", unnamed("int f(int b) {}")),
                         ["f"])

    def test_what_is_named_or_local_or_no_code_does_not_count(self):
        one = "constexpr int kA = 1;\nint outer() {\n  int kB = 1;\n  struct S { int kC; };\n}"
        other = "struct kB { int kA; };\n// constexpr int kA = 2;\nconst char* t = \"int kA;\";"
        self.assert_clean(one, other)
        named = "namespace atolldb {\nint f() { return 1; }\n}\n"
        self.assertEqual(clashes(named, unnamed("int f();")), [])

    def test_names_in_one_source_are_its_own_business(self):
        self.assertEqual(list(unnamed_names.check_sources(
            [("a.cpp", unnamed("int f();\nint f() { return 1; }"))])), [])

    def test_a_tree_is_walked_and_named(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            self.assertEqual(unnamed_names.check_tree(root), (0, []))
            text = unnamed("constexpr int kA = 1;")
            for file in ("engine/a/x.cpp", "engine/b/y.cpp", "ops/cli/x.cpp", "soc/b_main.cpp",
                         "soc/x.cpp", "bench/one/x.cpp", "bench/two/x.cpp"):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(text)
            count, violations = unnamed_names.check_tree(root)
            self.assertEqual(count, 6)
            self.assertEqual(violations, ["engine/b/y.cpp:3: kA: engine/a/x.cpp:3 has one in its "
                                          "unnamed namespace, too"])
            (root / "ops" / "verify").mkdir()
            (root / "ops" / "verify" / "z.cpp").write_text(text)
            self.assertEqual(len(unnamed_names.check_tree(root)[1]), 3)  # beside both of engine/

    def test_tests_of_a_folder_and_an_engine_are_joined(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "tests" / "engine" / "log").mkdir(parents=True)

            def write(file, text):
                (root / "tests" / file).write_text(text)
                return [violation.split(":")[0]
                        for violation in unnamed_names.check_tree(root)[1]]

            text = unnamed("constexpr int kA = 1;")
            self.assertEqual(write("engine/log/a_test.cpp", text), [])
            self.assertEqual(write("engine/a_test.cpp", text), [])
            self.assertEqual(write("engine/log/a_mutant_test.cpp", text), [])
            self.assertEqual(write("engine/log/b_stress_test.cpp", text), [])
            self.assertEqual(write("engine/log/a_stress_test.cpp",
                                   '#include "tests/engine/log/a_test.cpp"\n'),
                             ["tests/engine/log/b_stress_test.cpp"])
            (root / "tests" / "engine" / "log" / "b_stress_test.cpp").unlink()
            self.assertEqual(write("engine/log/b_test.cpp", text),
                             ["tests/engine/log/b_test.cpp"])
            # Names of a header that one of the sources includes.
            self.assertEqual(write("engine/log/c.h", "namespace atolldb {\nstruct C;\n}\n"),
                             ["tests/engine/log/b_test.cpp"])
            self.assertEqual(write("engine/log/b_test.cpp", unnamed("struct C {};")), [])
            self.assertEqual(write("engine/log/c_test.cpp", '#include "tests/engine/log/c.h"\n'),
                             ["tests/engine/log/b_test.cpp"])


if __name__ == "__main__":
    unittest.main()
