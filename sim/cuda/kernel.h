// The kernels that the simulator can run, by entry name. The PTX for real GPUs is in
// tests/driver/kernels.ptx, src/burn/kernels.ptx (`gpurota burn`) and src/interposer/swap/hash.ptx
// (libgpurota).
#pragma once

#include "sim/cuda/driver.h"
#include "sim/cuda/operation.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::sim {

struct KernelRun {
  Driver& driver;
  Context& context;
  const KernelOp& op;
  std::vector<std::uint64_t> arguments;  // widened to 64 bits; a float is stored as its bits
};

struct KernelSpec {
  const char* name;
  std::vector<std::size_t> argument_bytes;
  CUresult (*run)(const KernelRun& run);
};

struct Module;

// A kernel of a loaded module. `spec` is null for a kernel that the simulator cannot run.
struct Function {
  Module* module = nullptr;
  std::string name;
  const KernelSpec* spec = nullptr;
  int max_dynamic_shared = 0;
  int carveout = -1;
};

const std::vector<KernelSpec>& burn_kernels();
const std::vector<KernelSpec>& swap_kernels();
const KernelSpec* find_kernel(std::string_view name);
std::vector<std::string> kernel_names();
CUresult run_kernel(Driver& driver, Context& context, const KernelOp& op);

}  // namespace gpurota::sim
