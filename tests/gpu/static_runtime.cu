// A CUDA program with the static runtime (nvcc's default), which an LD_PRELOAD of the runtime would
// miss. Allocates by all of the runtime's ways until it is refused, and prints how much it got.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

__global__ void fill(unsigned* data, size_t count, unsigned value) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    data[i] = value;
  }
}

static size_t take(const char* how, size_t piece) {
  std::vector<void*> held;
  cudaError_t error = cudaSuccess;
  while (error == cudaSuccess && held.size() < 4096) {
    void* p = nullptr;
    size_t pitch = 0;
    if (!strcmp(how, "malloc")) error = cudaMalloc(&p, piece);
    if (!strcmp(how, "async")) error = cudaMallocAsync(&p, piece, 0);
    if (!strcmp(how, "pitch")) error = cudaMallocPitch(&p, &pitch, 1 << 20, piece >> 20);
    if (error == cudaSuccess) held.push_back(p);
  }
  if (error != cudaErrorMemoryAllocation) {
    std::printf("\"%s_error\": \"%s\", ", how, cudaGetErrorString(error));
  }
  cudaGetLastError();
  if (!held.empty()) {
    fill<<<256, 256>>>(static_cast<unsigned*>(held.back()), piece / 4, 7);
    unsigned back = 0;
    if (cudaMemcpy(&back, held.back(), 4, cudaMemcpyDeviceToHost) != cudaSuccess || back != 7) {
      std::printf("\"%s_wrong\": true, ", how);
    }
  }
  for (void* p : held) !strcmp(how, "async") ? cudaFreeAsync(p, 0) : cudaFree(p);
  cudaDeviceSynchronize();
  cudaMemPool_t pool;
  if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess) cudaMemPoolTrimTo(pool, 0);
  return held.size() * (piece >> 20);
}

int main() {
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  std::printf("{");
  const size_t malloc_mib = take("malloc", 64 << 20);
  const size_t async_mib = take("async", 64 << 20);
  const size_t pitch_mib = take("pitch", 64 << 20);
  std::printf("\"total_mib\": %zu, \"free_mib\": %zu, \"malloc_mib\": %zu, \"async_mib\": %zu, "
              "\"pitch_mib\": %zu}\n",
              total >> 20, free >> 20, malloc_mib, async_mib, pitch_mib);
}
