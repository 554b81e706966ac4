#!/usr/bin/python3
"""Builds the Debian packages, and uses them in a clean root without the source tree.

Argument: the source tree. Runs only with ATOLL_LONG. With mmdebstrap and root rights the root is a
new Debian system in which apt installs the packages; with systemd-nspawn it is also booted, to use
the service. Otherwise the packages are unpacked into an empty folder, and the libraries of this
machine serve.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
PACKAGES = ("atoll-server", "libatoll-client0", "libatoll-client-dev", "atoll-dev", "python3-atoll")
WITH_SYMBOLS = ("atoll-server", "libatoll-client0")
# What the test needs beside the packages.
TOOLS = "g++,libc6-dev,cmake,make,pkg-config,groff-base,zsh,fish,procps,systemd-sysv,dbus"
BOOT_TIMEOUT_S = 300
SCRIPT = """#!/bin/sh
/root/use_service.sh >/root/log 2>&1
echo $? >/root/code
systemctl poweroff
"""
UNIT = """[Unit]
After=multi-user.target
[Service]
ExecStart=/root/run.sh
"""


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, **options)


def output(*words):
    return run(*words, capture_output=True, text=True).stdout


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def package_files(folder):
    """The package files by their names, and those with symbols by `NAME-dbgsym`."""
    files = {path.name.split("_")[0]: path for path in folder.glob("*.*deb")}
    expected = {*PACKAGES, *(name + "-dbgsym" for name in WITH_SYMBOLS)}
    check(expected <= set(files), f"expected the packages {expected}, found {sorted(files)}")
    return files


def check_packages(files):
    """Dependencies, config files, and symbols that fit the stripped programs."""
    depends = output("dpkg-deb", "--field", files["atoll-server"], "Depends")
    for library in ("libzmq5", "libc6", "libsystemd0", "adduser"):
        check(library in depends, f"atoll-server: no dependency on {library}: {depends}")
    depends = output("dpkg-deb", "--field", files["libatoll-client0"], "Depends")
    check("libc6" in depends and "libzmq" not in depends, f"libatoll-client0: {depends}")
    contents = output("dpkg-deb", "--contents", files["libatoll-client-dev"])
    for name in ("atoll_client.h", "PROTOCOL.md", "wire.fbs"):
        check(f"/{name}\n" in contents, f"libatoll-client-dev: no {name}: {contents}")
    control = output("dpkg-deb", "--info", files["atoll-server"], "conffiles")
    check(control.split() == ["/etc/atoll/main.toml"], control)


def check_symbols(root, programs):
    """Each program has no symbols of its own, and a file with symbols has its build id."""
    for program in programs:
        sections = output("readelf", "-SW", program)
        is_stripped = ".debug_info" not in sections and ".symtab" not in sections
        check(is_stripped, f"{program}: has symbols")
        build_id = re.search(r"Build ID: ([0-9a-f]+)", output("readelf", "-n", program)).group(1)
        symbols = root / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        check(".debug_info" in output("readelf", "-SW", symbols), f"{symbols}: has no symbols")


def make_debian(root, files):
    """A minimal Debian, in which apt has installed the packages with their dependencies."""
    copied = " ".join(str(files[name]) for name in PACKAGES)
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={TOOLS}",
        f"--customize-hook=copy-in {copied} /tmp",
        '--customize-hook=chroot "$1" sh -c "apt-get install --yes --quiet '
        '--no-install-recommends /tmp/*.deb"',
        "bookworm", root)
    for name in WITH_SYMBOLS:
        run("dpkg-deb", "-x", files[name + "-dbgsym"], root)


def use(root, prefix, chrooted):
    script = pathlib.Path(__file__).with_name("use_installation.py")
    for each in (script, script.with_name("network_attacks.py")):
        shutil.copy(each, root / "tmp")
    if not chrooted:
        return subprocess.run([sys.executable, "-B", root / "tmp" / script.name, prefix], cwd="/",
                              check=False).returncode
    # The processes and mounts of the test end with it.
    command = (f"mount -t proc proc {root}/proc && mount --rbind /sys {root}/sys && "
               f"mount --rbind /dev {root}/dev && "
               f"exec chroot {root} /usr/bin/python3 -B /tmp/{script.name} /usr")
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child",
                           "sh", "-c", command], check=False).returncode


def use_service(root):
    """Boots the root, and uses the service in it. Returns the exit code of use_service.sh."""
    if shutil.which("systemd-nspawn") is None:
        print("systemd-nspawn is missing (package systemd-container): the service is not tested")
        return 0
    shutil.copy(pathlib.Path(__file__).with_name("use_service.sh"), root / "root")
    script = root / "root/run.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    script.chmod(0o755)
    unit = root / "etc/systemd/system/use-service.service"
    unit.write_text(UNIT, encoding="utf-8")
    wants = unit.with_name("graphical.target.wants")
    wants.mkdir(exist_ok=True)
    (wants / unit.name).symlink_to(f"../{unit.name}")
    how_it_ended = "it has ended by itself"
    try:
        booted = subprocess.run(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", "-D", root],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=BOOT_TIMEOUT_S, check=False)
        how_it_ended += f" with code {booted.returncode}: {booted.stderr}"
    except subprocess.TimeoutExpired:
        how_it_ended = f"it did not end within {BOOT_TIMEOUT_S} s"
    code_file, log = root / "root/code", root / "root/log"
    code = int(code_file.read_text()) if code_file.exists() else 1
    if code != 0:
        print(f"the boot of the root: {how_it_ended}")
        print(log.read_text() if log.exists() else "use_service.sh did not run")
    return code


def main():
    if "ATOLL_LONG" not in os.environ:
        print("set ATOLL_LONG=1, or run ops/test --long: this test builds packages")
        return SKIPPED
    source = pathlib.Path(sys.argv[1])
    run(source / "ops/package")
    files = package_files(source / "build/packages")
    check_packages(files)
    root = pathlib.Path(tempfile.mkdtemp(prefix="atoll-root-"))
    root.chmod(0o755)
    chrooted = os.geteuid() == 0 and shutil.which("mmdebstrap") is not None
    try:
        if chrooted:
            make_debian(root, files)
        else:
            print("without mmdebstrap and root rights, the packages are only unpacked")
            for path in files.values():
                run("dpkg-deb", "-x", path, root)
            (root / "tmp").mkdir()
        programs = [*(root / "usr/bin").glob("atoll*"),
                    *(root / "usr/libexec/atoll").glob("*-[cn]o*"),
                    *(root / "usr/lib").rglob("libatoll_client.so.0")]
        check(len(programs) == 5, f"programs: {programs}")
        check_symbols(root, programs)
        code = use(root, root / "usr", chrooted)
        return use_service(root) if code == 0 and chrooted else code
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    sys.exit(main())
