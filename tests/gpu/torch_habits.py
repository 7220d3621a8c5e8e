#!/usr/bin/env python3
"""Checks that PyTorch programs compute the same bare, under a limit and in turns.

    torch_habits.py GPUROTA [--results DIR] [--only CASE,CASE] [--allocators
    native,expandable,async]

For each of PyTorch's three allocators, the cases below run bare, and then at the same time in a
slice and in two swap leases that do not fit together, so that each of these is evicted repeatedly.
Each case gives a text that must be the same in all runs. Prints a line of JSON for each allocator.
A daemon must be running; the caller must be allowed to set a GPU (an administrator).
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ALLOCATORS = {"native": "", "expandable": "expandable_segments:True",
              "async": "backend:cudaMallocAsync"}


def digest(*tensors):
    import torch
    parts = hashlib.sha256()
    for tensor in tensors:
        parts.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return parts.hexdigest()[:16]


def run_threads(count, work):
    errors = []

    def guarded(number):
        try:
            work(number)
        except Exception:  # pylint: disable=broad-except
            errors.append(traceback.format_exc())
    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise RuntimeError(errors[0])


def memory_is_asked_about_in_captures():
    """The capturing thread queries the memory by CUDA, NVML and PyTorch. Other threads do so all
    the time."""
    import torch
    import pynvml
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    over = threading.Event()

    def ask(_):
        while not over.is_set():
            torch.cuda.mem_get_info()
            pynvml.nvmlDeviceGetMemoryInfo(handle)

    found = []

    def capture(_):
        try:
            for mode in ("global", "thread_local", "relaxed") * 8:
                x = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
                graph = torch.cuda.CUDAGraph()
                torch.cuda.synchronize()
                with torch.cuda.graph(graph, capture_error_mode=mode):
                    y = x * 2
                    torch.cuda.mem_get_info()
                    torch.cuda.memory_stats()
                    y = y + 1
                graph.replay()
                found.append(digest(y))
        finally:
            over.set()

    run_threads(3, lambda number: (capture if number == 0 else ask)(number))
    return " ".join(sorted(set(found)))


def threads_of_cudnn():
    import torch
    weight = torch.ones((1, 1, 2, 2), device="cuda")
    results = {}

    def work(number):
        stream = torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for _ in range(400):
                results[number] = torch.nn.functional.conv2d(results[number], weight, padding=0)
                results[number].div_(4.0)
        torch.cuda.synchronize()

    for _ in range(2):
        for number in range(6):
            results[number] = torch.ones((1, 1, 1024, 1024), device="cuda")
        run_threads(6, work)
    return " ".join(str(results[number].sum().item()) for number in range(6))


def threads_of_cusparse():
    import torch
    size = 1024
    line = torch.arange(size, device="cuda")
    identity = torch.sparse_coo_tensor(torch.stack([line, line]), torch.ones(size, device="cuda"),
                                       (size, size))
    results = {}

    def work(number):
        stream = torch.cuda.Stream()
        torch.cuda.synchronize()
        # The stream still reads memory that the loop frees first. Without record_stream(),
        # cudaMallocAsync may give that memory to another thread meanwhile, even without gpurota.
        results[number].record_stream(stream)
        with torch.cuda.stream(stream):
            for _ in range(300):
                results[number] = identity.mm(results[number])
        torch.cuda.synchronize()

    for _ in range(2):
        for number in range(6):
            results[number] = torch.ones((size, size), device="cuda")
        run_threads(6, work)
    return " ".join(str(results[number].sum().item()) for number in range(6))


def threads_at_the_limit():
    """Each thread allocates as much as it can and frees it again. A refusal is no failure; a wrong
    byte is."""
    import torch
    refused = [0]

    def work(number):
        generator = torch.Generator().manual_seed(number)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(150):
                mib = int(torch.randint(1, 900, (1,), generator=generator))
                try:
                    x = torch.full((mib << 18,), number + 1, dtype=torch.int32, device="cuda")
                    y = x + 1
                    if int(y.min()) != number + 2 or int(y.max()) != number + 2:
                        raise RuntimeError("a wrong byte")
                except torch.OutOfMemoryError:
                    refused[0] += 1
                x = y = None
    run_threads(12, work)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return "all right" if free > total // 4 else f"only {free >> 20} MiB are free"


def graphs_of_compiled_code():
    """torch.compile(mode="reduce-overhead"): CUDA graphs with pools of their own."""
    import torch
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.GELU(),
                                torch.nn.Linear(2048, 1024)).cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    compiled = torch.compile(model, mode="reduce-overhead")
    x = torch.randn(256, 1024, device="cuda")
    for _ in range(60):
        torch.compiler.cudagraph_mark_step_begin()
        loss = (compiled(x) - x).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return digest(*[p for p in model.parameters()])


class Numbers:
    def __len__(self):
        return 512

    def __getitem__(self, index):
        import torch
        return torch.full((64, 1024), float(index))


def loaders_with_pinned_memory():
    import torch
    total = torch.zeros((), dtype=torch.float64, device="cuda")
    for _ in range(3):
        for batch in torch.utils.data.DataLoader(Numbers(), batch_size=16, num_workers=4,
                                                 pin_memory=True):
            total += batch.to("cuda", non_blocking=True).double().sum()
    return str(total.item())


def half(queue, answers):
    tensor = queue.get()
    answers.put(float(tensor.sum().item()))
    tensor.mul_(2)
    del tensor
    answers.put("done")


def processes_that_share():
    """Shares tensors by torch.multiprocessing, which uses CUDA's IPC handles."""
    import torch
    import torch.multiprocessing as mp
    context = mp.get_context("spawn")
    found = []
    for value in range(1, 4):
        queue, answers = context.Queue(), context.Queue()
        other = context.Process(target=half, args=(queue, answers))
        other.start()
        tensor = torch.full((1 << 22,), value, dtype=torch.float32, device="cuda")
        try:
            queue.put(tensor)
            found.append(answers.get(timeout=60))
            answers.get(timeout=60)
            torch.cuda.synchronize()
            found.append(float(tensor.sum().item()))
        except Exception as error:  # pylint: disable=broad-except
            other.kill()
            found.append(type(error).__name__)
        other.join()
    return " ".join(map(str, found))


def figures_of_pools():
    """Checks that PyTorch's figures of its memory are plausible. They are not compared exactly,
    because the figures of an allocator include memory that it keeps."""
    import torch
    kept = [torch.ones(64 << 18, device="cuda") for _ in range(4)]
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    now, reserved = stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"]
    peak = torch.cuda.max_memory_allocated()
    del kept
    return ("all right" if 256 << 20 <= now <= reserved and peak >= now
            else f"{now} {reserved} {peak}")


def tokens_of_a_language_model():
    """Greedy decoding with deterministic kernels. If two runs alone agree, runs in turns must agree
    with them."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(11)
    torch.use_deterministic_algorithms(True)
    config = LlamaConfig(hidden_size=1536, intermediate_size=4096, num_hidden_layers=12,
                         num_attention_heads=12, num_key_value_heads=12, vocab_size=8192,
                         max_position_embeddings=1024)
    model = LlamaForCausalLM(config).to(device="cuda", dtype=torch.bfloat16).eval()
    prompt = torch.randint(0, 8192, (4, 32), generator=torch.Generator().manual_seed(5)).cuda()
    with torch.no_grad():
        tokens = model.generate(prompt, max_new_tokens=160, do_sample=False, pad_token_id=0)
    torch.use_deterministic_algorithms(False)
    return digest(tokens)


CASES = (memory_is_asked_about_in_captures, threads_of_cudnn, threads_of_cusparse, figures_of_pools,
         loaders_with_pinned_memory, processes_that_share, graphs_of_compiled_code,
         tokens_of_a_language_model,
         threads_at_the_limit)


# Cases that fail without gpurota, too. With cudaMallocAsync, PyTorch aborts in a destructor when
# the driver refuses to free memory of a capture. Memory of cudaMallocAsync cannot be shared between
# processes either, and a case that shares such memory fails only after three minutes.
NOT_BARE = {"async": ("memory_is_asked_about_in_captures", "graphs_of_compiled_code",
                      "processes_that_share")}


def meet():
    """Waits for the other runs that were given the same folder, so that all reach their limits at
    the same time."""
    folder, count = os.environ.get("HABITS_MEET"), 3
    if not folder:
        return
    pathlib.Path(folder, str(os.getpid())).touch()
    deadline = time.monotonic() + 300
    while len(os.listdir(folder)) < count and time.monotonic() < deadline:
        time.sleep(0.01)


def run_cases(only):
    """Prints a line for each case. Memory that is held beside the cases must be unchanged before
    and after each."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    import torch
    held = [torch.full((256 << 18,), i, dtype=torch.int32, device="cuda") for i in range(24)]
    for case in CASES:
        if only and case.__name__ not in only:
            continue
        if case is CASES[-1]:
            meet()
        try:
            said = case()
        except Exception as error:  # pylint: disable=broad-except
            said = f"{type(error).__name__}: {error}"[:400]
        kept = all(int(t.min()) == i and int(t.max()) == i for i, t in enumerate(held))
        print(json.dumps([case.__name__, said if kept else "what was held has changed"]),
              flush=True)
    os._exit(0)


def lines_of(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines()
             if line.startswith('["')]
    return dict(json.loads(line) for line in lines)


def compare(options, results, allocator):
    gpurota = [options.gpurota, "run", "--gpu-ids", "0"]
    runs = {"slice": [*gpurota, "--memory", "12G", "--"],
            "swap0": [*gpurota, "--swap", "--memory", "12G", "--"],
            "swap1": [*gpurota, "--swap", "--memory", "12G", "--"]}
    environment = dict(os.environ, PYTORCH_ALLOC_CONF=ALLOCATORS[allocator],
                       PYTORCH_CUDA_ALLOC_CONF=ALLOCATORS[allocator])
    cases = [case.__name__ for case in CASES if case.__name__ not in NOT_BARE.get(allocator, ())]
    if options.only:
        cases = [case for case in cases if case in options.only.split(",")]

    place = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with

    def start(name, words):
        base = results / f"habits_{allocator}_{name}"
        with open(f"{base}.out", "w",
                  encoding="utf-8") as out, open(f"{base}.err", "w", encoding="utf-8") as err:
            return subprocess.Popen(
                [*words, sys.executable, __file__, "cases", ",".join(cases)], stdout=out,
                stderr=err, env=dict(environment, HABITS_MEET=place.name if words else "",
                                     GPUROTA_DEBUG=f"{base}.log" if words else "",
                         TORCHINDUCTOR_CACHE_DIR=f"{base}.cache"))
    bare = start("bare", [])  # alone, because its memory would reduce the capacity
    codes = {"bare": bare.wait()}
    running = {name: start(name, words) for name, words in runs.items()}
    codes.update({name: process.wait() for name, process in running.items()})
    said = {name: lines_of(results / f"habits_{allocator}_{name}.out") for name in codes}
    differences = {case: {name: said[name].get(case, "nothing") for name in codes} for case in cases
                   if len({said[name].get(case, name) for name in codes}) != 1}
    evictions = [len(re.findall(r"evicted [1-9]\d* of",
                                (results / f"habits_{allocator}_{name}.log").read_text()))
                 for name in ("swap0", "swap1")]
    print(json.dumps({"allocator": allocator, "cases": len(cases), "codes": codes,
                      "evictions": evictions,
                      "differences": differences}), flush=True)
    return len(differences) + sum(code != 0 for code in codes.values()) + (min(evictions) < 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpurota")
    parser.add_argument("--only", default="")
    parser.add_argument("--allocators", default="native,expandable,async")
    # The default has room for the slice, and for one and a half of the leases that take turns.
    parser.add_argument("--capacity", default="31G")
    parser.add_argument("--quantum", default="200ms")
    parser.add_argument("--results")
    options = parser.parse_args()
    results = pathlib.Path(options.results or tempfile.mkdtemp())
    subprocess.run([options.gpurota, "set", "--gpu-ids", "0", "--capacity", options.capacity,
                    "--quantum",
                    options.quantum], check=True)
    bad = sum(compare(options, results, allocator) for allocator in options.allocators.split(","))
    subprocess.run([options.gpurota, "set", "--gpu-ids", "0", "--reset"], check=False)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["cases"]:
        run_cases([name for name in sys.argv[2].split(",") if name])
    else:
        main()
