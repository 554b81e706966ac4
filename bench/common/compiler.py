"""Compiles C++ programs and libraries of the benchmarks when they run."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class CompileError(Exception):
    """What the compiler prints."""


def compile_sources(output, sources, *flags):
    """Compiles sources, given from the root of the tree. `flags` also has the libraries."""
    done = subprocess.run(["g++", "-std=c++23", "-O2", "-march=x86-64-v3", f"-I{ROOT}",
                           *[str(ROOT / source) for source in sources], "-o", str(output), *flags],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise CompileError(f"{', '.join(sources)}: g++ fails:\n{done.stderr}")


def has_header(name):
    """Returns whether g++ finds a header of the system."""
    try:
        done = subprocess.run(["g++", "-std=c++23", "-fsyntax-only", "-include", name,
                               "-x", "c++", "/dev/null"], capture_output=True)
    except FileNotFoundError:
        return False
    return done.returncode == 0
