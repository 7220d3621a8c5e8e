#include "sim/cuda/kernel.h"

#include "sim/cuda/kernel_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>

namespace gpurota::sim {
namespace {

constexpr std::uint64_t kSpinStepNs = 2'000'000;  // how often spin_us updates the utilisation

// fill_u32(u32* data, u32 value, u64 count)
CUresult fill_u32(const KernelRun& run) {
  const CUdeviceptr data = run.arguments[0];
  const auto value = static_cast<std::uint32_t>(run.arguments[1]);
  return in_steps(run.driver, run.arguments[2] * 4,
                  [&](const Space::Use& use, std::size_t offset, std::size_t bytes) {
                    const CUresult result = touch(use, data + offset, bytes);
                    if (result != CUDA_SUCCESS) return result;
                    auto* words = reinterpret_cast<std::uint32_t*>(host_view(data + offset));
                    std::fill_n(words, bytes / 4, value);
                    return CUDA_SUCCESS;
                  });
}

// add_u32(u32* data, u32 value, u64 count): data[i] += value
CUresult add_u32(const KernelRun& run) {
  const CUdeviceptr data = run.arguments[0];
  const auto value = static_cast<std::uint32_t>(run.arguments[1]);
  return in_steps(run.driver, run.arguments[2] * 4,
                  [&](const Space::Use& use, std::size_t offset, std::size_t bytes) {
                    const CUresult result = touch(use, data + offset, bytes);
                    if (result != CUDA_SUCCESS) return result;
                    auto* words = reinterpret_cast<std::uint32_t*>(host_view(data + offset));
                    for (std::size_t i = 0; i < bytes / 4; ++i) words[i] += value;
                    return CUDA_SUCCESS;
                  });
}

// add_f32(const f32* a, const f32* b, f32* sum, u64 count)
CUresult add_f32(const KernelRun& run) {
  const CUdeviceptr a = run.arguments[0], b = run.arguments[1], sum = run.arguments[2];
  return in_steps(run.driver, run.arguments[3] * 4,
                  [&](const Space::Use& use, std::size_t offset, std::size_t bytes) {
                    for (const CUdeviceptr address : {a, b, sum}) {
                      const CUresult result = touch(use, address + offset, bytes);
                      if (result != CUDA_SUCCESS) return result;
                    }
                    const auto* x = reinterpret_cast<const float*>(host_view(a + offset));
                    const auto* y = reinterpret_cast<const float*>(host_view(b + offset));
                    auto* out = reinterpret_cast<float*>(host_view(sum + offset));
                    for (std::size_t i = 0; i < bytes / 4; ++i) out[i] = x[i] + y[i];
                    return CUDA_SUCCESS;
                  });
}

// checksum_u64(const u64* data, u64 words, u64* sum): *sum += Σ (data[i] + i) * odd(i)
CUresult checksum_u64(const KernelRun& run) {
  const CUdeviceptr data = run.arguments[0], out = run.arguments[2];
  std::uint64_t sum = 0;
  const CUresult result = in_steps(
      run.driver, run.arguments[1] * 8,
      [&](const Space::Use& use, std::size_t offset, std::size_t bytes) {
        const CUresult touched = touch(use, data + offset, bytes);
        if (touched != CUDA_SUCCESS) return touched;
        const auto* words = reinterpret_cast<const std::uint64_t*>(host_view(data + offset));
        for (std::size_t i = 0; i < bytes / 8; ++i) {
          const std::uint64_t index = offset / 8 + i;
          sum += (words[i] + index) * (2 * index + 1);
        }
        return CUDA_SUCCESS;
      });
  if (result != CUDA_SUCCESS) return result;
  const Space::Use use(run.driver.space);
  const CUresult touched = touch(use, out, 8);
  if (touched != CUDA_SUCCESS) return touched;
  __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(host_view(out)), sum, __ATOMIC_SEQ_CST);
  return CUDA_SUCCESS;
}

// spin_us(u64 microseconds): keeps the GPU busy for `microseconds`
CUresult spin_us(const KernelRun& run) {
  const std::uint64_t end = now_ns() + run.arguments[0] * 1000;
  for (std::uint64_t now = now_ns(); now < end;) {
    const std::uint64_t wait = std::min(kSpinStepNs, end - now);
    const timespec pause = {0, static_cast<long>(wait)};
    ::nanosleep(&pause, nullptr);
    const std::uint64_t after = now_ns();
    run.driver.machine->add_activity(run.context.device, now, after);
    now = after;
    if (run.driver.machine->faults(run.context.device).lost.load() != 0) return CUDA_ERROR_UNKNOWN;
  }
  return CUDA_SUCCESS;
}

const std::vector<KernelSpec>& kernels() {
  static const auto* all = new std::vector<KernelSpec>{
      {"fill_u32", {8, 4, 8}, fill_u32},  {"add_u32", {8, 4, 8}, add_u32},
      {"add_f32", {8, 8, 8, 8}, add_f32}, {"checksum_u64", {8, 8, 8}, checksum_u64},
      {"spin_us", {8}, spin_us},
  };
  return *all;
}

std::vector<std::uint64_t> read_arguments(const KernelOp& op) {
  std::vector<std::uint64_t> values;
  std::size_t offset = 0;
  for (const std::size_t bytes : op.function->spec->argument_bytes) {
    offset = (offset + bytes - 1) / bytes * bytes;
    std::uint64_t value = 0;
    std::memcpy(&value, op.arguments.data() + offset, bytes);
    values.push_back(value);
    offset += bytes;
  }
  return values;
}

}  // namespace

const KernelSpec* find_kernel(std::string_view name) {
  for (const auto* list : {&kernels(), &burn_kernels(), &swap_kernels()}) {
    for (const KernelSpec& spec : *list) {
      if (name == spec.name) return &spec;
    }
  }
  return nullptr;
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const KernelSpec& spec : kernels()) names.emplace_back(spec.name);
  for (const KernelSpec& spec : burn_kernels()) names.emplace_back(spec.name);
  for (const KernelSpec& spec : swap_kernels()) names.emplace_back(spec.name);
  return names;
}

CUresult run_kernel(Driver& driver, Context& context, const KernelOp& op) {
  const std::uint64_t began = now_ns();
  const KernelRun run{driver, context, op, read_arguments(op)};
  const CUresult result = op.function->spec->run(run);
  if (op.function->spec->run != spin_us) {
    driver.machine->add_activity(context.device, began, now_ns());
  }
  return result;
}

}  // namespace gpurota::sim
