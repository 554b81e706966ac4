#!/usr/bin/python3
"""Installs a build into a temporary prefix, and uses it without the source tree.

Arguments: the build directory.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

COMPONENTS = ("server", "client", "client_dev", "dev", "python3")


def main():
    build = pathlib.Path(sys.argv[1])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-install-"))
    try:
        for component in COMPONENTS:
            subprocess.run(["cmake", "--install", build, "--component", component, "--strip",
                            "--prefix", folder / "prefix"], check=True, stdout=subprocess.DEVNULL)
        # Copies, so that Python imports nothing of the source tree.
        tests = pathlib.Path(__file__).parent
        shutil.copy(tests / "network_attacks.py", folder)
        script = shutil.copy(tests / "use_installation.py", folder)
        return subprocess.run([sys.executable, "-B", script, folder / "prefix"], cwd="/",
                              check=False).returncode
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
