// The small framework of the conformance checks: programs for the driver API that check the
// simulated driver here and run unchanged on a real one. Everything runs on one thread, except for
// threads that a check starts.
#pragma once

#include "abi/nvml_abi.h"
#include "tests/driver/functions.h"

#include <cstdint>
#include <string>

// A check is a function whose name is a sentence. `run_checks` runs all checks of the program,
// prints "ok NAME", "FAIL NAME: what" or "skip NAME: why" for each, and returns the exit code.
using Check = void (*)();
struct CheckEntry {
  CheckEntry(const char* name, Check run, bool needs_simulator);
};
int run_checks();

void fail_check(const char* file, int line, const std::string& what);
void skip_check(const std::string& why);
std::string code_name(CUresult code);
// Runs `body` in a child process, and returns what `body` returned there. Must be called before the
// driver is initialised in this process. Only for checks of programs that do not call cuInit
// themselves.
int in_child(int (*body)());

#define DRIVER_CHECK_(name, simulator_only)                          \
  static void name();                                                \
  static const CheckEntry name##_entry(#name, name, simulator_only); \
  static void name()
#define DRIVER_CHECK(name) DRIVER_CHECK_(name, false)
// A check that needs the simulator's switches; skipped on a real GPU.
#define SIMULATOR_CHECK(name) DRIVER_CHECK_(name, true)

#define EXPECT_CODE(call, code)                                                        \
  do {                                                                                 \
    const CUresult got_ = (call);                                                      \
    if (got_ != (code)) {                                                              \
      fail_check(__FILE__, __LINE__, #call " is " + code_name(got_) + ", not " #code); \
      return;                                                                          \
    }                                                                                  \
  } while (false)
#define EXPECT_OK(call) EXPECT_CODE(call, CUDA_SUCCESS)
#define EXPECT_TRUE(condition)                               \
  do {                                                       \
    if (!(condition)) {                                      \
      fail_check(__FILE__, __LINE__, "not so: " #condition); \
      return;                                                \
    }                                                        \
  } while (false)
#define EXPECT_SAME(a, b)                                                               \
  do {                                                                                  \
    const auto a_ = (a);                                                                \
    const auto b_ = (b);                                                                \
    if (!(a_ == b_)) {                                                                  \
      fail_check(__FILE__, __LINE__,                                                    \
                 #a " is " + std::to_string(a_) + ", " #b " is " + std::to_string(b_)); \
      return;                                                                           \
    }                                                                                   \
  } while (false)

// A context of device 0, current while this object lives, with the kernels of kernels.ptx.
class WithContext {
 public:
  WithContext();
  ~WithContext();
  WithContext(const WithContext&) = delete;
  WithContext& operator=(const WithContext&) = delete;
  CUcontext context() const { return context_; }
  CUfunction kernel(const char* name);

 private:
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

CUresult launch(CUfunction kernel, CUstream stream, void** arguments);
CUresult spin(CUfunction spin_us, CUstream stream, std::uint64_t microseconds);
