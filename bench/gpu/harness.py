"""The common part of the measurements of turns: a private daemon, programs in swap leases, and
switches as `gpurota turns` reports them. One GPU (`Bench.gpu`); `Bench.capacity` GiB of its memory
are managed.
"""
import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

here = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """A part that found wrong bytes, or did not end."""


def say(*words):
    print(*words, flush=True)


def percentile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


class Bench:
    """A private daemon, and the programs that were started under it."""

    def __init__(self, description, parts, extra=()):
        options = argparse.ArgumentParser(description=description,
                                          formatter_class=argparse.RawDescriptionHelpFormatter)
        options.add_argument("dist")
        options.add_argument("--out")
        options.add_argument("--capacity", type=float, default=24.0)
        options.add_argument("--gpu", type=int, default=0)
        for words, settings in extra:
            options.add_argument(*words, **settings)
        options.add_argument("parts", nargs="*")
        self.args = options.parse_intermixed_args()
        self.parts = parts
        self.gpu, self.capacity = self.args.gpu, self.args.capacity
        self.dist = os.path.abspath(self.args.dist)
        self.gpurota = f"{self.dist}/bin/gpurota"
        self.work = tempfile.mkdtemp()
        # Host memory for all memory of two programs, all of it pinned.
        self.turns_settings = f'host_budget = "{int(self.capacity * 2)}G"\npinned = "100%"\n'
        self.out = os.path.abspath(self.args.out or self.work)
        self.running = []
        os.makedirs(self.out, exist_ok=True)
        os.environ["GPUROTA_RUNTIME_DIR"] = f"{self.work}/run"

    def start_daemon(self):
        log = open(f"{self.out}/gpurotad.log", "a")
        with open(f"{self.work}/gpurotad.toml", "w") as config:
            config.write(f"[turns]\n{self.turns_settings}[limits]\npriority = 10\n")
        daemon = subprocess.Popen([f"{self.dist}/bin/gpurotad", "--runtime-dir", f"{self.work}/run",
                                   "--state-dir",
                                   f"{self.work}/state", "--config", f"{self.work}/gpurotad.toml",
                                   "--preload",
                                   f"{self.dist}/lib/libgpurota.so"], stderr=log, stdout=log)
        for _ in range(200):
            if subprocess.run([self.gpurota, "status"], capture_output=True).returncode == 0:
                return daemon
            time.sleep(0.05)
        sys.exit("the daemon did not start")

    def set_gpu(self, ids=None, **settings):
        words = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
        subprocess.run([self.gpurota, "set", "--gpu-ids", str(self.gpu if ids is None else ids),
                        *words], check=True)

    def turns(self):
        text = subprocess.run([self.gpurota, "turns", "--json"], capture_output=True, text=True,
                              check=True).stdout
        return json.loads(text)["gpus"][self.gpu]

    def switches(self, seconds):
        """All switches during this time."""
        with Watched(self) as watched:
            time.sleep(seconds)
        return watched.switches()

    def end_all(self):
        for program in self.running:
            if program.process.poll() is None:
                program.process.terminate()
                program.process.wait()
        self.running.clear()

    def run(self, functions):
        """Runs each part by name; returns how many failed."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before it was done"))
        daemon, failures = self.start_daemon(), 0
        try:
            say(subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version",
                                "--format=csv,noheader"],
                               capture_output=True, text=True).stdout.strip())
            for part in self.args.parts or self.parts:
                begun = time.monotonic()
                try:
                    functions[part]()
                    say(f"{part}: ok, {time.monotonic() - begun:.0f} s")
                except (Failed, subprocess.CalledProcessError) as failure:
                    failures += 1
                    say(f"{part}: FAILED: {failure}")
                self.end_all()
        finally:
            self.end_all()
            daemon.terminate()
            daemon.wait()
        return failures


class Mps:
    """NVIDIA's MPS for the programs that get `self.environment`; self.trouble says why it does not
    run, or is None."""

    def __init__(self, bench):
        folder = tempfile.mkdtemp(dir=bench.work)
        self.environment = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe",
                            "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log"}
        self.trouble = None
        for path in self.environment.values():
            os.mkdir(path)
        try:
            self.control("-d")
        except (OSError, subprocess.SubprocessError) as failure:
            self.trouble = str(failure)
            return
        check = subprocess.run([sys.executable, "-c", "import torch; torch.ones(1).cuda()"],
                               env={**os.environ, **self.environment}, capture_output=True,
                               text=True)
        if check.returncode != 0 or not self.control(words="get_server_list").strip():
            self.trouble = (check.stderr.strip().splitlines() or ["no server"])[-1]

    def control(self, *options, words=""):
        return subprocess.run(["nvidia-cuda-mps-control", *options], input=words, text=True,
                              env={**os.environ, **self.environment}, capture_output=True,
                              check=True, timeout=30).stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            self.control(words="quit")


def key_of(switch):
    """Identifies a switch."""
    return switch["time"], switch["to"]


class Watched:
    """The switches that happen while a `with` block runs, each once."""

    def __init__(self, bench):
        self.bench, self.seen, self.over = bench, {}, threading.Event()
        self.thread = threading.Thread(target=self.sample)

    def sample(self):
        while not self.over.wait(0.3):
            for switch in self.bench.turns()["switches"]:
                self.seen[key_of(switch)] = switch

    def __enter__(self):
        self.old = {key_of(switch) for switch in self.bench.turns()["switches"]}
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def switches(self):
        return [switch for key, switch in self.seen.items() if key not in self.old]

    def __str__(self):
        seconds = [switch["microseconds"] / 1e6 for switch in self.switches()]
        moved = sum(switch["in_bytes"] + switch["out_bytes"]
                    for switch in self.switches()) / (1 << 30)
        return f"{len(seconds)} switches, {sum(seconds):.1f} s, {moved:.0f} GiB"


class Program:
    """A program that prints "ready", begins on request, and ends with JSON. It is in a swap lease;
    with swap=False in a lease of these options; without options, too, bare."""

    def __init__(self, bench, name, command, swap=True, options=(), gpus=None, **environment):
        bench.running.append(self)
        self.name, self.errors = name, open(f"{bench.out}/{name}.err", "a")
        where = ["--gpu-ids", str(bench.gpu)] if gpus is None else ["--gpu-ids", gpus]
        under = ["--swap"] if swap else []
        if swap or options:
            under = [bench.gpurota, "run", *under, *where, *options, "--"]
        else:
            environment["CUDA_VISIBLE_DEVICES"] = str(bench.gpu)
        self.process = subprocess.Popen([*under, *command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env={**os.environ, **environment})

    def wait_ready(self):
        if self.process.stdout.readline().strip() != "ready":
            raise Failed(f"{self.name} did not begin; see {self.name}.err")
        return self

    def begin(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self, timeout=280):
        try:
            text = self.process.communicate(timeout=timeout)[0].strip().splitlines()
        except subprocess.TimeoutExpired:
            self.process.terminate()
            raise Failed(f"{self.name} did not end in {timeout} s") from None
        if self.process.returncode != 0 or not text:
            raise Failed(f"{self.name} ended with {self.process.returncode}; see {self.name}.err")
        return json.loads(text[-1])


def run_together(programs, meanwhile=contextlib.nullcontext()):
    """Returns the seconds until all are done, and their outputs. Each checks its memory."""
    for program in programs:
        program.wait_ready()
    with meanwhile:
        begun = time.monotonic()
        for program in programs:
            program.begin()
        results = [program.end() for program in programs]
        seconds = time.monotonic() - begun
    wrong = sum(result.get("wrong", 0) for result in results)
    if wrong:
        raise Failed(f"{wrong} wrong parts")
    return seconds, results
