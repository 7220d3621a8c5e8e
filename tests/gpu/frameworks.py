#!/usr/bin/env python3
"""Tests frameworks under a limit against the same frameworks without one, while NVML is sampled.

frameworks.py GPUROTA [--limit MIB] [--only CASE,CASE] [--out FOLDER]

Each case of frameworks_case.py runs bare and under `gpurota run --memory LIMIT`. A case passes if
both runs compute the same, NVML's figure for its processes reached 95 % of the limit and never
passed the limit, and the framework raised its own out-of-memory error when memory ran out. Prints
one line per case, and writes the rows of a table for bench/RESULTS.md to FOLDER/frameworks.md.
Exits with the number of cases that failed. Needs a running gpurotad and a GPU that nobody else
uses.
"""
import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import threading
import time

MIB = 1 << 20
HERE = os.path.dirname(os.path.abspath(__file__))
# case: (what it is, PYTORCH_CUDA_ALLOC_CONF)
CASES = {
    "torch": ("PyTorch training", ""),
    "torch_expandable": ("PyTorch training, `expandable_segments:True`",
                         "expandable_segments:True"),
    "torch_async": ("PyTorch training, `backend:cudaMallocAsync`", "backend:cudaMallocAsync"),
    "torch_graphs": ("PyTorch, a training step as a CUDA graph", ""),
    "torch_graphs_expandable": ("the same, `expandable_segments:True`", "expandable_segments:True"),
    "torch_graphs_async": ("the same, `backend:cudaMallocAsync`", "backend:cudaMallocAsync"),
    "captured_allocations": ("`cudaMallocAsync` in captures (allocation nodes)", ""),
    "cublas_cudnn": ("cuBLAS and cuDNN", ""),
    "triton": ("Triton", ""),
    "jax": ("JAX", ""),
    "cupy": ("CuPy", ""),
    "numba": ("numba", ""),
}
# Memory that the driver takes by itself is charged when a sample sees it (docs/design/memory.md).
# So a library that loads code only when it is needed may be above the limit by this much for one
# watch period.
LATE_MIB = 128
USABLE = 0.95


class ProcessInfo(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong),
                ("instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
                ("used", ctypes.c_ulonglong)]


class Watcher(threading.Thread):
    """Samples NVML for the most memory that the processes below `root` held on GPU 0."""

    def __init__(self, nvml, root):
        super().__init__(daemon=True)
        self.nvml, self.root = nvml, root
        self.device = ctypes.c_void_p()
        nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))
        self.before = self.whole_gpu()
        self.peak = self.peak_of_gpu = self.samples = 0
        self.known, self.over = {}, threading.Event()

    def whole_gpu(self):
        memory = Memory()
        self.nvml.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory))
        return memory.used

    def is_ours(self, pid):
        if pid not in self.known:
            at, steps = pid, 0
            while at > 1 and at != self.root and steps < 64:
                try:
                    with open(f"/proc/{at}/stat", encoding="ascii", errors="replace") as stat:
                        at = int(stat.read().rsplit(")", 1)[1].split()[1])
                except (OSError, IndexError):
                    return False
                steps += 1
            self.known[pid] = at == self.root
        return self.known[pid]

    def run(self):
        infos = (ProcessInfo * 64)()
        while not self.over.is_set():
            count = ctypes.c_uint(64)
            if self.nvml.nvmlDeviceGetComputeRunningProcesses_v3(
                self.device, ctypes.byref(count), infos) == 0:
                used = sum(info.used for info in infos[: count.value] if self.is_ours(info.pid))
                self.peak = max(self.peak, used)
                self.samples += 1
            self.peak_of_gpu = max(self.peak_of_gpu, self.whole_gpu() - self.before)
            time.sleep(0.0005)


def run(command, environment, nvml):
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True) as process:
        watcher = Watcher(nvml, process.pid)
        watcher.start()
        try:
            out, err = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += "\nit did not end within 240 s"
        watcher.over.set()
        watcher.join()
    try:
        report = json.loads(out.strip().splitlines()[-1])
    except (IndexError, ValueError):
        tail = " / ".join((out + err).strip().splitlines()[-4:])
        report = {"error": f"exit code {process.returncode}: {tail}"}
    # Where NVML's process ids are not ours (in a container), only the growth of the GPU's total is
    # known.
    report["peak_mib"] = (watcher.peak or watcher.peak_of_gpu) / MIB
    report["by_process"] = watcher.peak > 0
    report["looks"] = watcher.samples
    return report


def difference(bare, limited):
    """The largest relative difference of two lists of numbers."""
    if len(bare) != len(limited):
        return math.inf
    worst = 0.0
    for a, b in zip(bare, limited):
        if a != b:
            worst = max(worst, abs(a - b) / max(abs(a), abs(b), 1e-9))
    return worst


def judge(limit, bare, limited):
    problems = []
    for name, report in (("bare", bare), ("limited", limited)):
        if "error" in report:
            problems.append(f"{name}: {report['error']}")
    if problems:
        return problems
    if difference(bare["result"], limited["result"]) > 1e-3:
        problems.append("it computes something else under the limit")
    if limited["peak_mib"] < USABLE * limit:
        problems.append(f"only {limited['peak_mib']:.0f} of {limit} MiB could be had")
    if limited["peak_mib"] > limit + LATE_MIB:
        problems.append(f"{limited['peak_mib']:.0f} MiB are above the limit")
    return problems


def row(name, limit, bare, limited):
    same = difference(bare["result"], limited["result"])
    results = "identical" if same == 0 else f"within {same:.0e}"
    peak = limited["peak_mib"]
    return (f"| {CASES[name][0]} | {results} | {limited['usable_mib']} | {peak:.0f} "
            f"({100 * peak / limit:.1f} %) | {max(0.0, peak - limit):.0f} | {limited['looks']} "
            f"| {bare['seconds']:.2f} | {limited['seconds']:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpurota")
    parser.add_argument("--limit", type=int, default=8192)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default=".")
    arguments = parser.parse_args()
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    rows = ["| under `--memory {} MiB` | results | usable MiB | NVML peak | above MiB | looks | "
            "bare s | limited s |"
            .format(arguments.limit), "|---|---|---|---|---|---|---|---|"]
    failed = 0
    chosen = arguments.only.split(",") if arguments.only else list(CASES)
    for name in chosen:
        environment = dict(os.environ)
        environment["PYTORCH_CUDA_ALLOC_CONF"] = environment["PYTORCH_ALLOC_CONF"] = CASES[name][1]
        if not CASES[name][1]:
            del environment["PYTORCH_CUDA_ALLOC_CONF"], environment["PYTORCH_ALLOC_CONF"]
        command = [sys.executable, os.path.join(HERE, "frameworks_case.py"), name]
        bare = run(command, environment, nvml)
        if "skip" in bare:
            print(f"skip   {name:<28} {bare['skip']}", flush=True)
            rows.append(f"| {CASES[name][0]} | skipped: {bare['skip']} | | | | | | |")
            continue
        limited = run([arguments.gpurota, "run", "--memory", f"{arguments.limit}M", "--", *command],
                      environment, nvml)
        problems = judge(arguments.limit, bare, limited)
        failed += bool(problems)
        if problems:
            print(f"FAIL   {name:<28} {'; '.join(problems)}", flush=True)
            if "error" not in bare and "error" not in limited:
                rows.append(row(name, arguments.limit, bare, limited) + " FAILED")
            continue
        rows.append(row(name, arguments.limit, bare, limited))
        print(f"ok     {name:<28} {rows[-1]}", flush=True)
    with open(os.path.join(arguments.out, "frameworks.md"), "w", encoding="utf-8") as table:
        table.write("\n".join(rows) + "\n")
    print(f"{failed} of {len(chosen)} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
