#include "tests/stress/families/model.h"

#include <cstdio>

namespace gpurota::stress {

const char* const kKindNames[kKinds] = {"linear", "small",        "pitch", "managed", "vmm",
                                        "pool",   "default_pool", "graph", "array"};
Shared* shared = nullptr;
int threads_in_all = 0;

namespace {

void raise_to(std::atomic<std::int64_t>& peak, std::int64_t value) {
  std::int64_t now = peak.load();
  while (now < value && !peak.compare_exchange_weak(now, value)) {
  }
}

}  // namespace

void problem(const char* what, long long code, long long spare) {
  if (shared->problem_taken.exchange(true)) return;
  std::snprintf(shared->first_problem, sizeof shared->first_problem, "%s: %lld (%lld to spare)",
                what, code, spare);
}

bool must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return true;
  shared->failures.fetch_add(1);
  problem(what, result);
  return false;
}

void Account::begin(std::int64_t most) {
  shared->peak[self_].store(shared->held.load());
  const std::int64_t held = shared->held.fetch_add(most) + most;
  for (int i = 0; i < threads_in_all; ++i) raise_to(shared->peak[i], held);
}

bool Account::end(Kind kind, std::int64_t most, CUresult result) {
  const auto index = static_cast<std::size_t>(kind);
  if (result == CUDA_SUCCESS) {
    shared->made[index].fetch_add(1);
    return true;
  }
  const std::int64_t peak = shared->peak[self_].load();
  shared->held.fetch_sub(most);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) {
    shared->failures.fetch_add(1);
    problem(kKindNames[index], result);
    return false;
  }
  shared->refused[index].fetch_add(1);
  const std::int64_t fits = shared->fits.load();
  if (fits > 0 && peak <= fits) {
    shared->wrongly.fetch_add(1);
    problem(kKindNames[index], -static_cast<long long>(most), fits - peak);
  }
  return false;
}

std::int64_t Blocks::walk(CUdeviceptr ptr, std::uint64_t size, int by) {
  const std::lock_guard lock(mutex_);
  std::int64_t changed = 0;
  for (std::uint64_t block = ptr / kBlock; block <= (ptr + size - 1) / kBlock; ++block) {
    int& references = references_[block];
    references += by;
    if (references == (by > 0 ? 1 : 0)) changed += by * static_cast<std::int64_t>(kBlock);
    if (references == 0) references_.erase(block);
  }
  return changed;
}

}  // namespace gpurota::stress
