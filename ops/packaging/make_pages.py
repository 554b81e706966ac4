#!/usr/bin/python3
"""Makes the manual pages: atoll.1, and atoll-COMMAND.1 for each command of the program.

A page of a command has what the program's help says (synopsis, arguments, options) and the sections
of the manual about it. So it cannot name an option that the program does not have. For `atoll kv
get` there is also atoll-kv-get.1, which shows atoll-kv.1. The page of atoll-ledger has only its
help.
"""
import argparse
import gzip
import pathlib
import re
import subprocess
import sys

HELP_SECTION = re.compile(r"^([A-Z][A-Za-z ]*):\n((?: .*\n)+)", re.MULTILINE)
MANUAL_SECTION = re.compile(r"^\.SS atoll (.*)\n((?:(?!\.S[SH] ).*\n)*)", re.MULTILINE)


def roff(text):
    """The text as roff prints it unchanged."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


class Command:
    """A command of the program, as its help describes it."""

    def __init__(self, program, words):
        ran = subprocess.run([program, *words, "--help"], capture_output=True, text=True,
                             check=True)
        self.words = words
        self.summary = ran.stdout.split("\n", 1)[0]
        # The help of a program begins with its path.
        usage = re.search(r"^Usage: (.*)$", ran.stdout, re.MULTILINE).group(1)
        self.usage = usage.replace(str(program), pathlib.Path(program).name)
        self.sections = dict(HELP_SECTION.findall(ran.stdout))
        below = self.sections.get("Subcommands", "")
        self.below = [Command(program, [*words, name])
                      for name in re.findall(r"^  ([a-z][a-z-]*) ", below, re.MULTILINE)]

    def all(self):
        """This command, and all below it."""
        return [self] + [found for command in self.below for found in command.all()]

    def is_group(self):
        """Whether it does nothing without a subcommand."""
        return bool(self.below) and "[SUBCOMMAND]" not in self.usage


def entries(section):
    """Pairs of name and description of a section of the help."""
    found = []
    for line in section.splitlines():
        if line.startswith("   "):  # a description under a long name, or its continuation
            found[-1][1] += " " + line.strip()
        else:
            name, _, description = line.strip().partition("  ")
            found.append([name, description.strip()])
    return found


def options_of(command):
    text = ""
    for title in ("Positionals", "Options"):
        for name, description in entries(command.sections.get(title, "")):
            text += f".TP\n.B {roff(name)}\n{roff(description.strip())}\n"
    return text


def sections_of(manual, verb):
    """Pairs of heading and text of the manual's sections about a command."""
    found = [(f"atoll {heading}", text) for heading, text in MANUAL_SECTION.findall(manual)
             if heading.split(" ")[0] == verb]
    if not found:
        sys.exit(f"make_pages.py: the manual has no section about `atoll {verb}`: "
                 "add one to ops/man/atoll.1")
    return found


def page(name, command, sections, version):
    runnable = [found for found in command.all() if not found.is_group()]
    summary = command.summary[0].lower() + command.summary[1:]
    text = "'\\\" t\n.\\\" Made by ops/packaging/make_pages.py from ops/man/atoll.1 and --help.\n"
    text += f'.TH {roff(name.upper())} 1 "" "Atoll {version}" "User Commands"\n'
    text += f".SH NAME\n{roff(name)} \\- {roff(summary)}\n.SH SYNOPSIS\n.nf\n"
    text += "".join(f".B {roff(found.usage)}\n" for found in runnable) + ".fi\n.SH DESCRIPTION\n"
    for heading, body in sections:
        text += (f".SS {heading}\n" if len(sections) > 1 else "") + body
    text += ".SH OPTIONS\n"
    for found in runnable:
        if len(runnable) > 1:
            text += f".SS {roff(found.usage.split(' [')[0])}\n"
        text += options_of(found)
    return text + (".SH EXIT STATUS\nSee\n.BR atoll (1).\n.SH SEE ALSO\n.BR atoll (1)\n")


def write(folder, name, text):
    # Without a time the same text gives the same file.
    (folder / f"{name}.1.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--ledger", required=True, help="the program atoll-ledger")
    parser.add_argument("--manual", required=True, type=pathlib.Path)
    parser.add_argument("--to", required=True, type=pathlib.Path)
    parser.add_argument("--version", required=True)
    options = parser.parse_args()
    manual = options.manual.read_text(encoding="utf-8")
    options.to.mkdir(parents=True, exist_ok=True)
    for old in options.to.glob("*.1.gz"):
        old.unlink()
    write(options.to, "atoll", manual)
    for command in Command(options.program, []).below:
        verb = command.words[0]
        name = f"atoll-{verb}"
        write(options.to, name, page(name, command, sections_of(manual, verb), options.version))
        for below in command.all()[1:]:
            write(options.to, "atoll-" + "-".join(below.words), f".so man1/atoll-{verb}.1\n")
    ledger = Command(options.ledger, [])
    text = [("", f"{roff(ledger.summary)}.\n")]
    write(options.to, "atoll-ledger", page("atoll-ledger", ledger, text, options.version))
    (options.to / "stamp").touch()


if __name__ == "__main__":
    main()
