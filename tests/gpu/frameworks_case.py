"""One framework at work on GPU 0: what it computes, and under a lease how much memory it can get.

frameworks_case.py CASE    prints one JSON object:
  result   numbers that must not depend on the limit    seconds   the time that computing took
  usable_mib   what could be held before the framework reported out of memory (only under a lease)
A framework that cannot be imported gives {"skip": why}. frameworks.py runs this twice and compares.
"""
import json
import os
import sys
import time

MIB = 1 << 20
# Sizes to try when memory is nearly full: large pieces first, then ever smaller ones.
PIECES = [256, 64, 32]
HOLD_SECONDS = 1.0  # long enough for a sampler of NVML


def fill(allocate, is_refusal, finish=lambda: None):
    """Holds as much as possible for a moment. Returns that amount in MiB."""
    held, mib, refusals = [], 0, 0
    for piece in PIECES:
        while mib < 200 * 1024:
            try:
                held.append(allocate(piece * MIB))
                mib += piece
            except Exception as error:  # each framework has its own
                if not is_refusal(error):
                    raise
                refusals += 1
                break
    finish()
    time.sleep(HOLD_SECONDS)
    if refusals != len(PIECES):
        raise SystemExit("nothing was refused")
    return mib


def torch_or_skip():
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch
    torch.manual_seed(7)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


def torch_fill(torch):
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return fill(lambda n: torch.empty(n, dtype=torch.uint8, device="cuda").fill_(1),
                lambda error: isinstance(error, torch.cuda.OutOfMemoryError),
                torch.cuda.synchronize)


def make_model(torch):
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda()
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


def torch_train(torch, steps=60):
    model, optimizer = make_model(torch)
    x = torch.randn(32, 128, 512, device="cuda")
    y = torch.randn(32, 128, 512, device="cuda")
    losses = []
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        # Shapes that change, so that the allocator has something to do.
        loss = torch.nn.functional.mse_loss(model(x[: 8 + step % 24]), y[: 8 + step % 24])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def torch_graphs(torch, steps=60):
    """A whole step, with the allocations inside it, captured once and replayed."""
    model, optimizer = make_model(torch)
    x = torch.randn(32, 128, 512, device="cuda")
    y = torch.randn(32, 128, 512, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    losses = []
    for _ in range(steps):
        graph.replay()
        losses.append(loss.item())
    return losses


def captured_allocations():
    """Calls cudaMallocAsync by the runtime's C interface while a stream captures, which makes
    allocation nodes."""
    import ctypes
    torch = torch_or_skip()
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    path = next((line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line), None)
    if path is None:
        return {"skip": "PyTorch brings no libcudart"}
    runtime = ctypes.CDLL(path)
    pointer, size = ctypes.c_void_p, ctypes.c_size_t

    def call(name, *arguments):
        code = getattr(runtime, name)(*arguments)
        if code == 2:
            raise MemoryError(name)
        if code != 0:
            raise SystemExit(f"{name}: error {code}")

    stream = pointer()
    call("cudaStreamCreateWithFlags", ctypes.byref(stream), 1)
    out = torch.zeros(256, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()

    def make(count, value):
        graph, ready, at = pointer(), pointer(), pointer()
        call("cudaStreamBeginCapture", stream, 0)
        call("cudaMallocAsync", ctypes.byref(at), size(count), stream)
        call("cudaMemsetAsync", at, ctypes.c_int(value), size(count), stream)
        call("cudaMemcpyAsync", pointer(out.data_ptr()), pointer(at.value + count - 256), size(256),
             ctypes.c_int(3), stream)
        call("cudaFreeAsync", at, stream)
        call("cudaStreamEndCapture", stream, ctypes.byref(graph))
        call("cudaGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        return ready

    def launch(ready):
        call("cudaGraphLaunch", ready, stream)
        call("cudaStreamSynchronize", stream)

    begun, results = time.time(), []
    for value in range(1, 9):
        ready = make((value * 32) << 20, value)
        for _ in range(5):
            launch(ready)
        results.append(int(out.sum()))
        call("cudaGraphExecDestroy", ready)
    call("cudaDeviceGraphMemTrim", ctypes.c_int(0))
    report = {"result": results, "seconds": time.time() - begun}
    if "GPUROTA_LEASE" in os.environ:
        # Makes ever larger graphs until one is refused; the largest that runs is the usable memory.
        usable, step = 0, 4096
        while step >= 32:
            ready = make((usable + step) << 20, 3)
            try:
                launch(ready)
                usable += step
                time.sleep(HOLD_SECONDS / 4)
            except MemoryError:
                runtime.cudaGetLastError()
                step //= 2
            call("cudaGraphExecDestroy", ready)
            call("cudaDeviceGraphMemTrim", ctypes.c_int(0))
        report["usable_mib"] = usable
        time.sleep(HOLD_SECONDS / 4)
    return report


def with_torch(work):
    torch = torch_or_skip()
    torch.zeros(1, device="cuda")
    begun = time.time()
    result = work(torch)
    torch.cuda.synchronize()
    report = {"result": result, "seconds": time.time() - begun}
    if "GPUROTA_LEASE" in os.environ:
        report["usable_mib"] = torch_fill(torch)
    return report


def cublas_cudnn(torch):
    numbers = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        a = torch.randn(2048, 2048, device="cuda").to(dtype)
        numbers.append(float((a @ a).float().abs().mean()))
    image = torch.randn(16, 64, 112, 112, device="cuda")
    net = torch.nn.Sequential(torch.nn.Conv2d(64, 128, 3, padding=1), torch.nn.BatchNorm2d(128),
                              torch.nn.ReLU(), torch.nn.Conv2d(128, 64, 3, stride=2)).cuda()
    for _ in range(10):
        loss = net(image).square().mean()
        loss.backward()
        numbers.append(float(loss))
    rnn = torch.nn.LSTM(256, 256, 2).cuda()
    numbers.append(float(rnn(torch.randn(64, 32, 256, device="cuda"))[0].abs().mean()))
    return numbers


def triton_kernel():
    try:
        import triton
        import triton.language as tl
    except ImportError as error:
        return {"skip": str(error)}

    # Triton compiles the kernel from this file's source, so the kernel must be defined at module
    # level and see `tl` as a global.
    globals()["tl"] = tl
    kernel = triton.jit(_softmax_rows)

    def work(torch):
        x = torch.randn(4096, 1024, device="cuda")
        y = torch.empty_like(x)
        for _ in range(50):
            kernel[(4096,)](x, y, 1024, BLOCK=1024)
        worst = float((y - torch.softmax(x, 1)).abs().max())
        if worst > 1e-5:
            raise SystemExit(f"softmax is off by {worst}")
        return [float(y.sum()), float(y.max())]

    return with_torch(work)


def _softmax_rows(x, y, columns, BLOCK: "tl.constexpr"):  # noqa: F821, N803
    row = tl.program_id(0)  # noqa: F821
    at = tl.arange(0, BLOCK)  # noqa: F821
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=-float("inf"))  # noqa: F821
    values = tl.exp(values - tl.max(values, axis=0))  # noqa: F821
    tl.store(y + row * columns + at, values / tl.sum(values, axis=0), mask=mask)  # noqa: F821


def jax_case():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "1.0"  # else JAX takes only three quarters
    try:
        import jax
        import jax.numpy as jnp
    except ImportError as error:
        return {"skip": str(error)}
    if not any(device.platform in ("gpu", "cuda") for device in jax.devices()):
        return {"skip": "this JAX has no GPU"}
    step = jax.jit(jax.value_and_grad(lambda w, x: jnp.tanh(x @ w).sum()))
    w, x = jnp.ones((1024, 1024)) * 0.01, jnp.arange(1024 * 1024.0).reshape(1024, 1024) / 1e6
    begun, result = time.time(), []
    for _ in range(20):
        value, slope = step(w, x)
        w = w - 1e-6 * slope
        result.append(float(value))
    report = {"result": result, "seconds": time.time() - begun}
    if "GPUROTA_LEASE" in os.environ:
        report["usable_mib"] = fill(lambda n: jnp.zeros(n, dtype=jnp.uint8).block_until_ready(),
                                    lambda error: "RESOURCE_EXHAUSTED" in str(error))
    return report


def cupy_case():
    try:
        import cupy
    except ImportError as error:
        return {"skip": str(error)}
    begun = time.time()
    a = cupy.random.RandomState(7).standard_normal((2048, 2048))
    result = [float((a @ a).sum()), float(cupy.fft.fft(a).real.sum()),
              float(cupy.sort(a.ravel())[1000])]
    report = {"result": result, "seconds": time.time() - begun}
    if "GPUROTA_LEASE" in os.environ:
        cupy.get_default_memory_pool().free_all_blocks()
        report["usable_mib"] = fill(lambda n: cupy.zeros(n, dtype=cupy.uint8),
                                    lambda error: isinstance(error,
                                                             cupy.cuda.memory.OutOfMemoryError))
    return report


def numba_case():
    try:
        import numpy
        if not hasattr(numpy, "row_stack"):
            # numpy 2.5 has no row_stack, which numba-cuda 0.30 needs.
            numpy.row_stack = numpy.vstack
        from numba import cuda
        if not cuda.is_available():
            return {"skip": "numba finds no GPU"}
    except ImportError as error:
        return {"skip": str(error)}

    @cuda.jit
    def double(values):
        i = cuda.grid(1)
        if i < values.size:
            values[i] *= 2

    begun = time.time()
    values = cuda.to_device(numpy.arange(1 << 20, dtype=numpy.float32))
    for _ in range(10):
        double[4096, 256](values)
    report = {"result": [float(values.copy_to_host().sum())], "seconds": time.time() - begun}
    if "GPUROTA_LEASE" in os.environ:
        report["usable_mib"] = fill(lambda n: cuda.device_array(n, dtype=numpy.uint8),
                                    lambda error: "OUT_OF_MEMORY" in str(error))
    return report


CASES = {
    "torch": lambda: with_torch(torch_train),
    "torch_expandable": lambda: with_torch(torch_train),
    "torch_async": lambda: with_torch(torch_train),
    "torch_graphs": lambda: with_torch(torch_graphs),
    "torch_graphs_expandable": lambda: with_torch(torch_graphs),
    "torch_graphs_async": lambda: with_torch(torch_graphs),
    "captured_allocations": captured_allocations,
    "cublas_cudnn": lambda: with_torch(cublas_cudnn),
    "triton": triton_kernel,
    "jax": jax_case,
    "cupy": cupy_case,
    "numba": numba_case,
}

if __name__ == "__main__":
    try:
        outcome = CASES[sys.argv[1]]()
    except ImportError as missing:
        outcome = {"skip": str(missing)}
    print(json.dumps(outcome))
