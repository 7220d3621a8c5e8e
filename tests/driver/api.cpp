#include "tests/driver/api.h"

#include <cstdio>
#include <cstring>
#include <vector>

#include <kernels_ptx.h>  // generated from kernels.ptx
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Entry {
  const char* name;
  Check run;
  bool needs_simulator;
};

std::vector<Entry>& entries() {
  static std::vector<Entry> all;
  return all;
}

bool g_failed = false;
std::string g_note;

}  // namespace

CheckEntry::CheckEntry(const char* name, Check run, bool needs_simulator) {
  entries().push_back({name, run, needs_simulator});
}

void fail_check(const char* file, int line, const std::string& what) {
  const char* base = std::strrchr(file, '/');
  g_failed = true;
  g_note =
      std::string(base == nullptr ? file : base + 1) + ":" + std::to_string(line) + ": " + what;
}

void skip_check(const std::string& why) { g_note = why; }

std::string code_name(CUresult code) {
  const char* name = nullptr;
  if (cuGetErrorName(code, &name) == CUDA_SUCCESS && name != nullptr) return name;
  return std::to_string(code);
}

int in_child(int (*body)()) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

int run_checks() {
  if (!load_driver()) {
    std::printf("FAIL the driver cannot be checked\n");
    return 1;
  }
  int failures = 0;
  for (const Entry& entry : entries()) {
    g_failed = false;
    g_note.clear();
    if (entry.needs_simulator && !is_simulated()) {
      std::printf("skip %s: needs the simulator's switches\n", entry.name);
      continue;
    }
    entry.run();
    const char* verdict = g_failed ? "FAIL" : g_note.empty() ? "ok" : "skip";
    std::printf("%s %s%s%s\n", verdict, entry.name, g_note.empty() ? "" : ": ", g_note.c_str());
    std::fflush(stdout);
    failures += g_failed ? 1 : 0;
  }
  return failures == 0 ? 0 : 1;
}

WithContext::WithContext() {
  if (cuInit(0) == CUDA_SUCCESS) (void)cuCtxCreate_v2(&context_, 0, 0);
}

WithContext::~WithContext() {
  if (context_ != nullptr) (void)cuCtxDestroy_v2(context_);
}

CUfunction WithContext::kernel(const char* name) {
  if (module_ == nullptr && cuModuleLoadData(&module_, kKernelsPtx) != CUDA_SUCCESS) return nullptr;
  CUfunction function = nullptr;
  return cuModuleGetFunction(&function, module_, name) == CUDA_SUCCESS ? function : nullptr;
}

CUresult launch(CUfunction kernel, CUstream stream, void** arguments) {
  return cuLaunchKernel(kernel, 32, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr);
}

CUresult spin(CUfunction spin_us, CUstream stream, std::uint64_t microseconds) {
  void* arguments[] = {&microseconds};
  return cuLaunchKernel(spin_us, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

// Weak, so that a program with scenarios of its own can define its own main().
__attribute__((weak)) int main(int, char**) { return run_checks(); }
