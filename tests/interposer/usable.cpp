// usable LIMIT_MIB SHARE: how much of its limit a program can allocate, by each family, in pieces
// of several sizes. Exit code 1: more than the limit, or less than SHARE percent (minus one piece)
// of what the context leaves.
#include "tests/interposer/swap_probe.h"

#include <cstdlib>
#include <functional>
#include <vector>

namespace {

struct Taken {
  CUdeviceptr memory = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUarray array = nullptr;
};

struct Family {
  const char* name;
  double piece_mib;
  std::function<CUresult(Taken*)> take;
  std::function<CUresult(const Taken&)> give_back;
};

CUresult free_linear(const Taken& t) { return cuMemFree_v2(t.memory); }

Family linear(const char* name, std::size_t size) {
  return {name, static_cast<double>(size) / kMiB,
          [size](Taken* t) { return cuMemAlloc_v2(&t->memory, size); }, free_linear};
}

std::vector<Family> families() {
  return {
      linear("cuMemAlloc 100 kB", 100000),
      linear("cuMemAlloc 2 MiB", 2 * kMiB),
      linear("cuMemAlloc 20 MiB", 20 * kMiB),
      linear("cuMemAlloc 256 MiB and a bit", 256 * kMiB + 4096 * 3),
      {"cuMemAllocPitch 16 MiB", 16,
       [](Taken* t) {
         std::size_t pitch = 0;
         return cuMemAllocPitch_v2(&t->memory, &pitch, 4000, 4096, 16);
       },
       free_linear},
      {"cuMemAllocManaged 16 MiB", 16,
       [](Taken* t) { return cuMemAllocManaged(&t->memory, 16 * kMiB, 1); }, free_linear},
      {"cuMemAllocAsync 32 MiB", 32,
       [](Taken* t) { return cuMemAllocAsync(&t->memory, 32 * kMiB, nullptr); },
       [](const Taken& t) { return cuMemFreeAsync(t.memory, nullptr); }},
      {"cuMemCreate 2 MiB", 2,
       [](Taken* t) {
         CUmemAllocationProp prop = {};
         prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
         prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
         return cuMemCreate(&t->handle, 2 * kMiB, &prop, 0);
       },
       [](const Taken& t) { return cuMemRelease(t.handle); }},
      {"cuArray3DCreate 16 MiB", 16,
       [](Taken* t) {
         CUDA_ARRAY3D_DESCRIPTOR shape = {};
         shape.Width = 2048;
         shape.Height = 2048;
         shape.Format = CU_AD_FORMAT_FLOAT;
         shape.NumChannels = 1;
         return cuArray3DCreate_v2(&t->array, &shape);
       },
       [](const Taken& t) { return cuArrayDestroy(t.array); }},
  };
}

// The memory that could be allocated, in MiB; negative: a call failed.
double fill(const Family& family) {
  std::vector<Taken> taken;
  Taken next;
  CUresult result = CUDA_SUCCESS;
  while (taken.size() < 500000 && (result = family.take(&next)) == CUDA_SUCCESS) {
    taken.push_back(next);
  }
  bool good = result == CUDA_ERROR_OUT_OF_MEMORY || ok(result, family.name, __LINE__);
  for (const Taken& each : taken) good = OK(family.give_back(each)) && good;
  CUmemoryPool pool = nullptr;
  good = OK(cuStreamSynchronize(nullptr)) && OK(cuDeviceGetDefaultMemPool(&pool, 0)) &&
         OK(cuMemPoolTrimTo(pool, 0)) && good;
  return good ? static_cast<double>(taken.size()) * family.piece_mib : -1;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3 || !load_driver() || !OK(cuInit(0))) return 2;
  const double limit = std::atof(words[1]);
  const double share = std::atof(words[2]);
  const WithContext with;
  std::size_t free = 0, total = 0;
  if (!OK(cuMemGetInfo_v2(&free, &total))) return 2;
  const double left = static_cast<double>(free) / kMiB;
  if (left > limit) g_wrong = true;
  for (const Family& family : families()) {
    const double had = fill(family);
    const bool good =
        had >= left * share / 100 - family.piece_mib && had <= limit && had <= left + 0.5;
    std::printf("%-30s %9.1f of %9.1f MiB, %5.1f %%%s\n", family.name, had, left, 100 * had / left,
                good ? "" : "  WRONG");
    g_wrong = g_wrong || !good;
  }
  return g_wrong ? 1 : 0;
}
