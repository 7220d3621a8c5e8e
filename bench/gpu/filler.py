#!/usr/bin/env python3
"""filler.py DIST [ROUNDS [MIB]]: how soon a filler leaves, on the machine's GPU (or on the
simulated GPU, inside gpurota-sim).

DIST is the output of tests/gpu/pack.sh, or the prefix of an installation. The program starts its
own daemon and prints a Markdown table. First, a filler (`gpurota burn --hold`, 88 % of the first
GPU) runs; then, in turn,
  lease    `gpurota run` of a program that allocates 90 % at once: the time from the request to the
           allocation, beside the same without a filler. The request must never be refused.
  foreign  a process without a lease makes a context: the time from the context to the end of the
           filler's process, and until the driver does not list it and its memory is free.
Second, a filler that works without a pause, and records when each piece of its work has ended:
  foreign  the time from the foreign context to the end of the filler's last piece.
Third, a filler that works in the same way, but is evicted and restored (--on-yield evict). Its
memory is MIB, or 22 % of the host's memory, of which 256 MiB change:
  lease    as above, with a lease of 95 % of the memory (a whole GPU would end the filler);
  foreign  the time from the foreign context to the end of the last piece, and until the filler's
           memory is evicted (less than 1 GiB is left);
  back     the time from the decision that the filler continues to 90 % of its memory restored.
The exit status is the number of newcomers that were refused, of fillers that did not leave within
10 s (20 s if they work), and of fillers that did not come back. With KEEP=FOLDER, the folder keeps
the daemon's log and events, the debug output of the moved filler's library (GPUROTA_DEBUG), and the
wall-clock times at which foreign processes came.
"""
import ctypes
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

NEWCOMER = r'''
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def check(code, what):
    if code != 0:
        print("refused", what, code, flush=True)
        sys.exit(1)
begun = time.monotonic()
check(cuda.cuInit(0), "cuInit")
context, device, size, address = (
    ctypes.c_void_p(), ctypes.c_int(), ctypes.c_size_t(), ctypes.c_uint64())
check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
check(cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device), "cuDeviceTotalMem")
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
made = time.monotonic()
wanted = int(size.value * float(sys.argv[1]))
if wanted:
    check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(wanted)), "cuMemAlloc")
print("ok", begun, made, time.monotonic(), flush=True)
if len(sys.argv) > 2:
    sys.stdin.read()
'''


# The time at which each piece of work ended, for a process that maps the file.
WORKER = r'''
import ctypes, mmap, struct, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def check(code, what):
    if code != 0:
        sys.exit(f"{what}: {code}")
check(cuda.cuInit(0), "cuInit")
context, device, address, piece = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64(), 256 << 20
check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
left = (int(sys.argv[2]) << 20) - (512 << 20)
while left >= piece:
    check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(piece)), "cuMemAlloc")
    left -= piece
with open(sys.argv[1], "r+b") as file:
    ended = mmap.mmap(file.fileno(), 8)
while True:
    check(cuda.cuMemsetD32_v2(address, ctypes.c_uint(int(time.monotonic() * 1000)),
                              ctypes.c_size_t(piece // 4)), "cuMemsetD32")
    check(cuda.cuStreamSynchronize(None), "cuStreamSynchronize")
    ended[:] = struct.pack("d", time.monotonic())
'''


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("a", ctypes.c_uint),
                ("b", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
                ("used", ctypes.c_ulonglong)]


class Gpu:
    """The first GPU, as NVML shows it."""

    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if self.nvml.nvmlInit_v2() != 0:
            sys.exit("no driver")
        self.device = ctypes.c_void_p()
        self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))

    def pids(self):
        count, list_ = ctypes.c_uint(64), (Process * 64)()
        code = self.nvml.nvmlDeviceGetComputeRunningProcesses_v3(
            self.device, ctypes.byref(count), list_)
        return {list_[i].pid for i in range(count.value)} if code == 0 else None

    def used(self):
        memory = Memory()
        self.nvml.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory))
        return memory.used

    def name(self):
        text = ctypes.create_string_buffer(96)
        self.nvml.nvmlDeviceGetName(self.device, text, 96)
        return text.value.decode()


def until(what, seconds=60.0, pace=0.001):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(pace)
    return True


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def host_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


class Bench:
    def __init__(self, dist, most_moved):
        self.most_moved, self.gpu, self.failed, self.name = most_moved, Gpu(), 0, "hold"
        self.work, self.keep = tempfile.mkdtemp(), os.environ.get("KEEP")
        os.environ["GPUROTA_RUNTIME_DIR"] = self.work + "/run"
        self.cli = dist + "/bin/gpurota"
        self.program = next(p for p in (dist + "/bin/gpurotad", dist + "/sbin/gpurotad")
                            if os.path.exists(p))
        self.burn = next(p for p in (dist + "/bin/gpurota-burn",
                                     dist + "/libexec/gpurota/gpurota-burn", self.cli)
                         if os.path.exists(p))
        self.beats = None
        self.log = open((self.keep or self.work) + "/log", "a")
        self.start_daemon()
        self.foreign_environment = {k: v for k, v in os.environ.items()
                                    if not k.startswith("GPUROTA_RUNTIME")}
        self.foreign_environment["CUDA_VISIBLE_DEVICES"] = "0"

    def call(self, *words, environment={}):
        return subprocess.run([self.cli, *words], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **environment})

    def start_daemon(self):
        self.daemon = subprocess.Popen([self.program, "--runtime-dir", self.work + "/run",
                                        "--state-dir", self.work + "/state",
                                        "--config", "/dev/null"], stdout=self.log, stderr=self.log)
        if not until(lambda: self.call("status").returncode == 0, 20, 0.05):
            sys.exit("the daemon does not start: " + open(self.log.name).read()[-500:])

    def filler_pid(self):
        answer = self.call("ps", "--json")
        if answer.returncode != 0:
            return None
        return next((p["pid"] for p in json.loads(answer.stdout)["processes"]
                     if p["gpu"] == 0 and p.get("lease_id") and p["used_bytes"] > self.target),
                    None)

    def add_filler(self, name, on_yield="stop", works=False):
        self.name = name
        total = json.loads(self.call("status", "--json").stdout)["gpus"][0]["memory_bytes"]
        size = int(total * 0.88)
        if on_yield == "evict":  # host memory that may be pinned for turns, with a margin
            size = int(min(size, self.most_moved or
                           os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 0.22))
        self.target, memory = (size - (512 << 20)) * 0.9, f"{size >> 20}M"
        env = [w for variable in ("LD_LIBRARY_PATH", "GPUROTA_SIM_DIR") if variable in os.environ
               for w in ("--env", variable)]
        command = [self.burn] + (["burn"] if self.burn == self.cli
                                 else []) + ["--hold", "--memory", memory]
        if works:
            self.beats = self.work + "/beats"
            with open(self.beats, "wb") as file:
                file.write(bytes(8))
            os.chmod(self.beats, 0o666)
            command = [sys.executable, "-c", WORKER, self.beats, str(size >> 20)]
            env += ["--env", "GPUROTA_DEBUG"] if self.keep else []
        added = self.call("filler", "add", name, "--gpu-ids", "0", "--idle-after", "1s",
                          "--on-yield", on_yield, *env, "--", *command,
                          environment={"GPUROTA_DEBUG": f"{self.keep}/{name}.debug"})
        if added.returncode != 0:
            sys.exit("no filler: " + added.stderr)

    def last_beat(self):
        with open(self.beats, "rb") as file:
            return struct.unpack("d", file.read())[0]

    # A new daemon does not know how many times the filler had to leave, so the filler does not
    # pause for minutes.
    def filler_on(self):
        self.daemon.terminate()
        self.daemon.wait()
        self.start_daemon()
        begun = time.monotonic()
        if not until(lambda: self.filler_pid() and (not self.beats or self.last_beat() > begun), 60,
                     0.05):
            sys.exit("the filler does not start: " + self.call("filler", "list").stdout
                     + self.call("filler", "logs", self.name).stdout)
        return begun

    # Waits until the filler that is moved has prepared host memory, and until the first seconds are
    # over, in which a daemon waits for programs that have not connected yet.
    def mover_on(self):
        begun, pid = self.filler_on(), self.filler_pid()
        ready = until(lambda: host_bytes(pid) > self.target, 60, 0.1)
        print(f"host memory is ready after {time.monotonic() - begun:.1f} s: {ready}",
              file=sys.stderr)
        time.sleep(max(0, begun + 4 - time.monotonic()))

    def state(self):
        answer = self.call("filler", "list", self.name, "--json")
        return (json.loads(answer.stdout)["fillers"][0]["places"][0]["state"]
                if answer.returncode == 0 else "")

    def remove_filler(self):
        self.call("filler", "remove", self.name)
        if not until(lambda: not json.loads(self.call("status", "--json").stdout)["leases"], 30,
                     0.05):
            sys.exit("the filler does not go")

    def newcomer(self, fraction, *share):
        begun = time.monotonic()
        run = subprocess.run([self.cli, "run", "--gpu-ids", "0", *share, "--", sys.executable, "-c",
                              NEWCOMER, fraction],
                             capture_output=True, text=True, timeout=120)
        words = run.stdout.split()
        if not words or words[0] != "ok":
            self.failed += 1
            print("REFUSED:", run.stdout, run.stderr, file=sys.stderr)
            return None
        started, made, allocated = map(float, words[1:4])
        return {"granted": started - begun, "allocated": allocated - begun}

    # Calls `measure` with the filler's pid and the time at which a foreign process has its context,
    # and returns the result. None is a failure.
    def beside_stranger(self, measure, complaint):
        pid = self.filler_pid()
        process = subprocess.Popen([sys.executable, "-c", NEWCOMER, "0", "stay"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=self.foreign_environment)
        words = process.stdout.readline().split()
        result = measure(pid, float(words[2])) if words and words[0] == "ok" else None
        if result is None:
            self.failed += 1
            print(f"the filler {complaint}, or the stranger has no context:", words,
                  file=sys.stderr)
        process.communicate("")
        if self.keep and result:
            with open(self.keep + "/strangers", "a") as file:
                print(self.name, time.time() - time.monotonic() + float(words[2]), result,
                      file=file)
        return result

    def foreign(self):
        def measure(pid, begun):
            gone = until(lambda: not runs(pid), 10)
            ended = time.monotonic()
            free = until(lambda: pid not in (self.gpu.pids() or ())
                         and self.gpu.used() < self.bare + (2 << 30), 10)
            return ({"ended": ended - begun, "free": time.monotonic() - begun} if gone and free
                    else None)
        return self.beside_stranger(measure, "did not leave")

    def used_by(self, pid):
        count, list_ = ctypes.c_uint(64), (Process * 64)()
        if self.gpu.nvml.nvmlDeviceGetComputeRunningProcesses_v3(
            self.gpu.device, ctypes.byref(count), list_) != 0:
            return 0
        return next((list_[i].used for i in range(count.value) if list_[i].pid == pid), 0)

    # A piece of work takes milliseconds: if none has ended for half a second, none is running.
    def foreign_stops_work(self, moves):
        def measure(pid, begun):
            out = until(lambda: self.used_by(pid) < (1 << 30), 20)
            ended = time.monotonic()
            time.sleep(0.5)
            if not out or runs(pid) != moves or self.last_beat() > ended:
                return None
            return {"worked": self.last_beat() - begun, "out": ended - begun}
        return self.beside_stranger(measure, "was not moved out" if moves else "did not leave")

    def comes_back(self):
        if (not until(lambda: self.state() == "evicted", 20, 0.02)
            or not until(lambda: self.state() == "on", 60, 0.005)):
            self.failed += 1
            print("the filler does not come back:", self.call("filler", "list").stdout,
                  file=sys.stderr)
            return None
        begun = time.monotonic()
        return time.monotonic() - begun if until(lambda: self.filler_pid(), 30, 0.005) else None

    def finish(self):
        if self.keep:
            with open(self.keep + "/events.json", "w") as file:
                file.write(self.call("events", "--json").stdout)
        self.call("filler", "remove", self.name)
        until(lambda: '"leases": []' in self.call("status", "--json").stdout or
              not json.loads(self.call("status", "--json").stdout or "{}").get("leases"), 20, 0.05)
        self.daemon.terminate()
        self.daemon.wait()
        shutil.rmtree(self.work, ignore_errors=True)


def row(title, values):
    values = sorted(1000 * v for v in values)
    if values:
        print(f"| {title} | {statistics.median(values):.0f} | {values[0]:.0f} | {values[-1]:.0f} | "
              f"{len(values)} |")


def main():
    dist, rounds = os.path.realpath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    bench = Bench(dist, int(sys.argv[3]) << 20 if len(sys.argv) > 3 else None)
    try:
        time.sleep(0.5)
        bench.bare = bench.gpu.used()
        without = [bench.newcomer("0.9") for _ in range(rounds)]
        bench.add_filler("hold")
        with_filler, foreign = [], []
        for _ in range(rounds):
            bench.filler_on()
            with_filler.append(bench.newcomer("0.9"))
        for _ in range(rounds):
            bench.filler_on()
            foreign.append(bench.foreign())
        bench.remove_filler()
        bench.add_filler("work", works=True)
        ended = []
        for _ in range(rounds):
            bench.filler_on()
            ended.append(bench.foreign_stops_work(False))
        bench.remove_filler()
        bench.add_filler("move", "evict", works=True)
        beside, moved, back = [], [], []
        bench.filler_on()
        cold = bench.newcomer("0.9", "--memory", "95%")
        for _ in range(rounds + 2):
            bench.mover_on()
            beside.append(bench.newcomer("0.9", "--memory", "95%"))
            back.append(bench.comes_back())
        for _ in range(rounds):
            bench.mover_on()
            moved.append(bench.foreign_stops_work(True))
        print(f"{bench.gpu.name()}, fillers of 88 %; of the one that is moved "
              f"{bench.target / 0.9 / (1 << 30):.1f} GiB are\n")
        print("| ms | median | least | most | rounds |\n|---|---|---|---|---|")
        row("no filler: request to the program's start", [r["granted"] for r in without if r])
        row("no filler: request to its allocation of 90 %", [r["allocated"] for r in without if r])
        row("filler: request to the program's start", [r["granted"] for r in with_filler if r])
        row("filler: request to its allocation of 90 %", [r["allocated"] for r in with_filler if r])
        row("a foreign process's context to the end of the filler's process",
            [r["ended"] for r in foreign if r])
        row("a foreign process's context to the filler's memory being back",
            [r["free"] for r in foreign if r])
        row("a foreign process's context to the end of the last work of a filler that is ended",
            [r["worked"] for r in ended if r])
        row("filler that is moved: request to the program's start (95 %)",
            [r["granted"] for r in beside if r])
        row("filler that is moved: request to its allocation",
            [r["allocated"] for r in beside if r])
        row("a foreign process's context to the end of the last work of a filler that is moved",
            [r["worked"] for r in moved if r])
        row("a foreign process's context to all of it being out", [r["out"] for r in moved if r])
        row("the decision that it goes on to its memory being back", [r for r in back if r])
        print("\nmoved filler, request to allocation, the first before host memory was ready:",
              ", ".join(f"{1000 * r['allocated']:.0f}" for r in [cold, *beside] if r))
    finally:
        bench.finish()
    sys.exit(bench.failed)


main()
