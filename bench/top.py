#!/usr/bin/env python3
"""Measures what `gpurota top` costs: its first picture, its processor time, and what it sends to
the terminal.

    bench/top.py BUILD [SECONDS]     runs itself in the simulated machines `demo` and h100x8, each
                                     on terminals of two sizes, with a daemon of its own and a
                                     lease on each GPU; prints a row of a table for each run
"""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

SIZES = ((80, 24), (300, 100))
MACHINES = ("demo", "h100x8")


def cpu_seconds(pid):
    """CPU time of all threads of a process, from the scheduler, which counts nanoseconds; ticks are
    too coarse."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, thread), encoding="utf-8") as stat:
            total += int(stat.read().split()[0])
    return total / 1e9


def watch(program, width, height, seconds):
    """Returns the seconds until the first whole picture, the share of a core after that, and bytes
    a second."""
    begin = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        time.sleep(0.2)  # until the terminal has its size
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
        os.execv(program, [program, "top"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    shown, first, sent, from_cpu, from_time = b"", None, 0, 0.0, 0.0
    while time.monotonic() - begin < seconds:
        if select.select([terminal], [], [], 0.1)[0]:
            piece = os.read(terminal, 65536)
            shown, sent = shown + piece, sent + len(piece)
            # The picture is complete with its last line.
            if first is None and b"quit" in shown:
                first = time.monotonic() - begin - 0.2
                sent, from_cpu, from_time = 0, cpu_seconds(pid), time.monotonic()
    cpu, lasted = cpu_seconds(pid) - from_cpu, time.monotonic() - from_time
    os.write(terminal, b"q")
    while True:
        try:
            if not os.read(terminal, 65536):
                break
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(terminal)
    return first, cpu / lasted, sent / lasted


def inside(build, machine, seconds):
    program = os.path.join(build, "bin", "gpurota")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("run", "state"):
            os.mkdir(os.path.join(folder, name), 0o700)
        os.environ["GPUROTA_RUNTIME_DIR"] = os.path.join(folder, "run")
        daemon = subprocess.Popen([os.path.join(build, "bin", "gpurotad"), "--runtime-dir",
                                   os.path.join(folder, "run"), "--state-dir",
                                   os.path.join(folder, "state")], stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                if subprocess.run([program, "status"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, check=False).returncode == 0:
                    break
                time.sleep(0.1)
            subprocess.run([program, "reserve", "--gpu-ids", "all", "--for", "1h", "--short", "-q"],
                           stdout=subprocess.DEVNULL, check=True)
            for width, height in SIZES:
                before = cpu_seconds(daemon.pid)
                first, share, sent = watch(program, width, height, seconds)
                asked = (cpu_seconds(daemon.pid) - before) / seconds
                print("| %s | %dx%d | %.0f ms | %.2f %% | %.2f %% | %.0f |"
                      % (machine, width, height, first * 1000, share * 100, asked * 100, sent),
                      flush=True)
        finally:
            daemon.terminate()
            daemon.wait()


def main(arguments):
    if len(arguments) < 1:
        sys.exit(__doc__)
    build, seconds = (os.path.abspath(arguments[0]),
                      float(arguments[1]) if len(arguments) > 1 else 30.0)
    if len(arguments) > 2:
        return inside(build, arguments[2], seconds)
    print("| machine | terminal | first picture | top, of a core | daemon, of a core | bytes a "
          "second |\n|---|---|---|---|---|---|", flush=True)
    for machine in MACHINES:
        subprocess.run([os.path.join(build, "stage", "bin", "gpurota-sim"), machine, "--",
                        sys.executable, "-B", os.path.abspath(__file__), build,
                        str(seconds), machine], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
