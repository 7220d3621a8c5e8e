#!/usr/bin/env python3
"""Runs the commands of docs/tutorial.md as its users would, and compares the output with the
document.

    tutorial.py FILE.md FOLDER     GPUROTA_REWRITE_TUTORIAL=1: writes what was printed into FILE.md

For a_day.bats, inside a simulated machine with a daemon. A block ```console holds commands after a
prompt, and their output; a line "> …" continues a command:

    alice$ gpurota run --memory 4G -- ./serve hold 3500 &
    holding 3500 MiB

`alice$` is the shell of that account, which stays until `exit`; `admin#` is root's. A shell begins
in FOLDER/home/NAME, and /home/ and /etc/gpurota/ of the text are folders below FOLDER. A command's
output is what its terminal has printed since the last command, so a message of a program in the
background appears at the user's next command.

A comment before a block, <!-- until REGEX -->, applies to the last command of the block. The output
of a command in the background (&) is complete when it matches REGEX. A prompt without a command
only waits until the terminal's output matches REGEX. Both kinds of command need such a comment. Any
other command is repeated until its output matches.

Text that varies (times, pids, load) is equal to the text in the document, and so is any number of
spaces in a row.
"""

import difflib
import os
import pwd
import re
import select
import subprocess
import sys
import threading
import time

PATIENCE = float(os.environ.get("E2E_PATIENCE", "30"))
PROMPT = re.compile(r"^(\w+)([$#])(?: (.*))?$")
UNTIL = re.compile(r"^<!-- until (.*) -->$")
ADMINISTRATOR = "admin"

# Patterns of text that varies, and the text that replaces it before a comparison. The patterns
# apply one after the other.
VARYING = [(re.compile(pattern), stand_in) for pattern, stand_in in (
    # Host memory is pinned while the program runs.
    (r"[\d.]+ [KMG]?i?B (of the [\d.]+ \w+ that may have to move are pinned)"
     r"(; last switch [\d.]+ GiB/s)?", r"SIZE \1"),
    # A time of another day is shown with its date, even when the test runs over midnight.
    (r"\b(\d{4}-\d\d-\d\d |[A-Z][a-z]{2} +\d{1,2} |[A-Z][a-z]{2} )?\d\d:\d\d(:\d\d)?\b", "TIME"),
    (r"\b\d+(\.\d+)? ?(d|h|min|ms|m|s)(( |(?<=[dhm]))\d+ ?(d|h|min|m|s))*\b", "SPAN"),
    (r"\bpid \d+", "pid PID"),
    (r"^( *\d+) +\d+ +(?=\w+ +(compute|graphics) )", r"\1 PID "),  # in a row of `gpurota ps`
    (r"\b\d+ ?%", "PERCENT"),
    (r"\b0\.\d\d\b", "HOURS"),
    (r"of [\d.]+ GiB of host memory", "of SIZE of host memory"),  # of the testing machine
    (r"^(added job \w+).*", r"\1"),  # the progress of the job
)]
# The programs of the tutorial print a line of this form each second.
ROUND = re.compile(r"^(round|done:) ")
# gpurota prints this line only if the lease that a request waits for is not gone yet.
PASSING = re.compile(r" is ending(; .*)?$")


class Failure(Exception):
    pass


def is_unattended(command):
    """Whether the output of the command may come at any later time."""
    return command == "" or command.endswith("&")


def comparable(text):
    lines = []
    for line in text.splitlines():
        for pattern, stand_in in VARYING:
            line = pattern.sub(stand_in, line)
        if PASSING.search(line):
            continue
        line = re.sub(r" +", " ", line).rstrip()
        if ROUND.match(line):
            line = re.sub(r"\d+ rounds?|round \d+", "ROUND", line)
            if lines and lines[-1] == line:
                continue
        lines.append(line)
    return "\n".join(lines)


class Shell:
    """The shell of an account, and the output of its terminal that has not been read yet."""

    # Commands and exit codes use descriptors of their own, which no program inherits. Programs have
    # an empty standard input.
    LOOP = r"""
while IFS= read -r -d '' -u {commands} command; do
  eval "(exit ${{code:-0}}); $command" {codes}>&- {commands}<&-
  code=$?
  printf '%s\n' "$code" >&{codes}
done"""

    def __init__(self, name, folder):
        account = pwd.getpwnam("root" if name == ADMINISTRATOR else name)
        home = os.path.join(folder, "home", name)
        commands, self._commands = os.pipe()
        self._codes, codes = os.pipe()
        shell = ["bash", "--noprofile", "--norc", "-c",
                 self.LOOP.format(commands=commands, codes=codes)]
        environment = dict(os.environ, HOME=home, USER=account.pw_name, LOGNAME=account.pw_name,
                           SHELL="/bin/bash", LC_ALL="C.UTF-8")
        self._process = subprocess.Popen(
            ["setpriv", "--reuid", str(account.pw_uid), "--regid", str(account.pw_gid),
             "--init-groups", *shell],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=home,
            env=environment, pass_fds=(commands, codes))
        os.close(commands)
        os.close(codes)
        self._printed = ""
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            piece = os.read(self._process.stdout.fileno(), 65536)
            if not piece:
                return
            with self._changed:
                self._printed += piece.decode(errors="replace")
                self._changed.notify()

    def _take(self):
        with self._changed:
            printed, self._printed = self._printed, ""
            return printed

    def _wait_for(self, pattern):
        with self._changed:
            if not self._changed.wait_for(lambda: re.search(pattern, self._printed, re.MULTILINE),
                                          PATIENCE):
                raise Failure("waited too long for '%s' in:\n%s" % (pattern, self._printed))

    def _execute(self, command):
        os.write(self._commands, command.encode() + b"\0")
        if not select.select([self._codes], [], [], PATIENCE)[0]:
            raise Failure("'%s' does not end; it has printed:\n%s" % (command, self._take()))
        # A small write arrives as a whole. An ended shell writes nothing.
        code = os.read(self._codes, 64)
        return int(code) if code else None

    def run(self, command, until=None):
        """Runs a command. Returns its exit code (None if the shell has ended) and its output."""
        deadline = time.monotonic() + PATIENCE
        while True:
            code = self._execute(command)
            if until is not None and is_unattended(command):
                self._wait_for(until)
            if code is not None:
                self._settle()
            printed = self._take()
            if until is None or re.search(until, printed, re.MULTILINE):
                return code, printed
            if time.monotonic() > deadline:
                raise Failure("waited too long for '%s'; the last output was:\n%s"
                              % (until, printed))
            time.sleep(0.05)

    MARK = "\x1eend\x1e"

    def _settle(self):
        """Returns when all output of the last command has been read. A mark that is printed after
        the output shows its end."""
        self._execute("keep=$?; printf '%s'; (exit $keep)" % self.MARK)
        self._wait_for(self.MARK)
        with self._changed:
            self._printed = self._printed.replace(self.MARK, "")

    def end(self):
        os.close(self._commands)
        self._process.terminate()
        self._process.wait()


class Day:
    def __init__(self, folder):
        self._folder = folder
        self._shells = {}

    def run(self, user, command, until=None):
        if user not in self._shells:
            self._shells[user] = Shell(user, self._folder)
        code, printed = self._shells[user].run(self._there(command), until)
        if code is None:
            del self._shells[user]
        return self._here(printed)

    def end(self):
        for shell in self._shells.values():
            shell.end()

    def _there(self, command):
        return re.sub(r"(?<![\w/])/(home|etc/gpurota)(?=/)",
                      lambda m: os.path.join(self._folder, m.group(1)), command)

    def _here(self, text):
        return text.replace(self._folder + "/", "/")


def split_block(lines):
    """[(prompt line and its continuations, user, command, output)]"""
    steps = []
    for line in lines:
        prompt = PROMPT.match(line)
        if prompt and (prompt.group(2) == "#") == (prompt.group(1) == ADMINISTRATOR):
            steps.append([[line], prompt.group(1), prompt.group(3) or "", []])
        elif not steps:
            raise Failure("a block begins with output: " + line)
        elif line.startswith("> ") and not steps[-1][3]:
            steps[-1][0].append(line)
            steps[-1][2] += "\n" + line[2:]
        else:
            steps[-1][3].append(line)
    return steps


def run_block(day, lines, until):
    """Runs a block. Returns the lines that the block should have, and whether it has them
    already."""
    shown = []
    equal = True
    steps = split_block(lines)
    for number, (prompt, user, command, expected) in enumerate(steps):
        pattern = until if number == len(steps) - 1 else None
        if pattern is None and is_unattended(command):
            raise Failure("end the block after '%s', and write <!-- until REGEX --> before it"
                          % "\n".join(prompt))
        printed = day.run(user, command, pattern)
        now = [line.rstrip() for line in printed.splitlines()]
        if comparable("\n".join(now)) == comparable("\n".join(expected)):
            now = expected
        else:
            equal = False
        shown += prompt + now
    return shown, equal


def run_document(day, text):
    """Runs a document. Returns the text as it should be, how many blocks differ, and the Failure
    that ended the run, if any; text after a Failure is unchanged."""
    lines = text.splitlines()
    result = []
    differing = 0
    until = None
    failure = None
    at = 0
    while at < len(lines) and failure is None:
        line = lines[at]
        at += 1
        result.append(line)
        comment = UNTIL.match(line)
        try:
            if comment:
                until = comment.group(1)
            elif line == "```console":
                end = lines.index("```", at)
                shown, equal = run_block(day, lines[at:end], until)
                at = end
                differing += not equal
                result += shown
                until = None
        except Failure as error:
            failure = "line %d: %s" % (at, error)
    return "\n".join(result + lines[at:]) + "\n", differing, failure


def main(path, folder):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    day = Day(folder)
    try:
        result, differing, failure = run_document(day, text)
    finally:
        day.end()
    rewrite = bool(os.environ.get("GPUROTA_REWRITE_TUTORIAL"))
    if rewrite:
        with open(path, "w", encoding="utf-8") as file:
            file.write(result)
        print("%s: %d blocks written anew" % (path, differing))
    elif differing:
        sys.stdout.writelines(difflib.unified_diff(
            text.splitlines(keepends=True), result.splitlines(keepends=True), path,
            "what was printed"))
        print("%s: %d blocks show something else than was printed. If the new output is right, "
              "GPUROTA_REWRITE_TUTORIAL=1 writes it." % (path, differing))
    if failure:
        print("%s: %s" % (path, failure))
    return 1 if failure or (differing and not rewrite) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
