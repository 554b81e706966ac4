#!/usr/bin/env python3
"""Installs a build into a temporary prefix, and uses it without the source tree.

Arguments: the build directory.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

COMPONENTS = ("server", "client", "client_dev", "python3")


def main():
    build = pathlib.Path(sys.argv[1])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-install-"))
    try:
        for component in COMPONENTS:
            subprocess.run(["cmake", "--install", build, "--component", component, "--strip",
                            "--prefix", folder / "prefix"], check=True, stdout=subprocess.DEVNULL)
        # A copy, so that Python imports nothing of the source tree.
        script = shutil.copy(pathlib.Path(__file__).with_name("use_installation.py"), folder)
        return subprocess.run([sys.executable, "-B", script, folder / "prefix"], cwd="/",
                              check=False).returncode
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
