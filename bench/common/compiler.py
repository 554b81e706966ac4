"""Compiles C++ programs and libraries of the benchmarks when they run."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class CompileError(Exception):
    """The compiler is missing or has failed."""


def run_compiler(*arguments):
    try:
        return subprocess.run(["g++", "-std=c++23", *arguments], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise CompileError("g++ is not installed: install the package g++") from error


def compile_sources(output, sources, *flags):
    """Compiles sources, given from the root of the tree. `flags` also has the libraries."""
    done = run_compiler("-O2", "-march=x86-64-v3", f"-I{ROOT}",
                        *[str(ROOT / source) for source in sources], "-o", str(output), *flags)
    if done.returncode != 0:
        raise CompileError(f"{', '.join(sources)}: g++ fails:\n{done.stderr}")


def has_header(name):
    """Returns whether g++ finds a header of the system."""
    done = run_compiler("-fsyntax-only", "-include", name, "-x", "c++", "/dev/null")
    return done.returncode == 0
