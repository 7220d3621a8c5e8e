// A C++ program linked to one of NVIDIA's libraries, whose constructors call the driver before any
// other code does:
//
//   linked_libraries limit GIB       takes GiB by GiB, up to half as much again; exit 1 if it gets
//                                    more than GIB
//   linked_libraries turns SECONDS   holds 6 GiB, computes again and again; exit 1 if a result or a
//                                    byte differs
//
// WITH_CUBLAS, WITH_CUFFT, WITH_CUSOLVER, WITH_CUDNN or WITH_NCCL chooses the library; without any
// of them, only the CUDA runtime is linked.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#if defined(WITH_CUBLAS)
#include <cublas_v2.h>
#elif defined(WITH_CUFFT)
#include <cufft.h>
#elif defined(WITH_CUSOLVER)
#include <cusolverDn.h>
#elif defined(WITH_CUDNN)
#include <cudnn.h>
#elif defined(WITH_NCCL)
#include <nccl.h>
#endif

#define NEEDS(call)                                                          \
  do {                                                                       \
    const auto got_ = (call);                                                \
    if (static_cast<int>(got_) != 0) {                                       \
      std::printf("line %d: %s is %d\n", __LINE__, #call, static_cast<int>(got_)); \
      std::exit(2);                                                          \
    }                                                                        \
  } while (false)

constexpr int kSide = 1024;
constexpr size_t kCount = size_t{kSide} * kSide;

__global__ void fill(std::uint32_t* p, size_t count, std::uint32_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    p[i] = static_cast<std::uint32_t>(i) * 2654435761u + seed;
  }
}

__global__ void count_wrong(const std::uint32_t* p, size_t count, std::uint32_t seed,
                            unsigned* wrong) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    if (p[i] != static_cast<std::uint32_t>(i) * 2654435761u + seed) atomicAdd(wrong, 1u);
  }
}

__global__ void make_input(float* p, size_t count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    p[i] = static_cast<float>(i % 977) / 977.0f - 0.5f;
  }
}

// Computes `out` from `in` by the library; both have kCount floats.
class Library {
 public:
#if defined(WITH_CUBLAS)
  const char* name = "cuBLAS";
  Library() { NEEDS(cublasCreate(&handle_)); }
  void compute(float* in, float* out) {
    const float one = 1, zero = 0;
    NEEDS(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_T, kSide, kSide, kSide, &one, in, kSide, in,
                      kSide, &zero, out, kSide));
  }

 private:
  cublasHandle_t handle_ = nullptr;
#elif defined(WITH_CUFFT)
  const char* name = "cuFFT";
  Library() { NEEDS(cufftPlan1d(&plan_, kSide / 2, CUFFT_C2C, kSide)); }
  void compute(float* in, float* out) {
    NEEDS(cufftExecC2C(plan_, reinterpret_cast<cufftComplex*>(in),
                       reinterpret_cast<cufftComplex*>(out), CUFFT_FORWARD));
  }

 private:
  cufftHandle plan_ = 0;
#elif defined(WITH_CUSOLVER)
  const char* name = "cuSOLVER";
  Library() {
    NEEDS(cusolverDnCreate(&handle_));
    NEEDS(cudaMalloc(&info_, sizeof(int)));
  }
  void compute(float* in, float* out) {  // LU without pivots
    NEEDS(cudaMemcpy(out, in, kCount * sizeof(float), cudaMemcpyDeviceToDevice));
    int size = 0;
    NEEDS(cusolverDnSgetrf_bufferSize(handle_, kSide, kSide, out, kSide, &size));
    float* work = nullptr;
    NEEDS(cudaMalloc(&work, size * sizeof(float)));
    NEEDS(cusolverDnSgetrf(handle_, kSide, kSide, out, kSide, work, nullptr, info_));
    NEEDS(cudaFree(work));
  }

 private:
  cusolverDnHandle_t handle_ = nullptr;
  int* info_ = nullptr;
#elif defined(WITH_CUDNN)
  const char* name = "cuDNN";
  Library() {
    NEEDS(cudnnCreate(&handle_));
    NEEDS(cudnnCreateTensorDescriptor(&shape_));
    NEEDS(cudnnSetTensor4dDescriptor(shape_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kSide, 1, 1,
                                     kSide));
  }
  void compute(float* in, float* out) {
    const float one = 1, zero = 0;
    NEEDS(cudnnSoftmaxForward(handle_, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                              shape_, in, &zero, shape_, out));
  }

 private:
  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t shape_ = nullptr;
#elif defined(WITH_NCCL)
  const char* name = "NCCL";
  Library() {
    const int device = 0;
    NEEDS(ncclCommInitAll(&comm_, 1, &device));
  }
  void compute(float* in, float* out) {
    NEEDS(ncclAllReduce(in, out, kCount, ncclFloat, ncclSum, comm_, nullptr));
  }

 private:
  ncclComm_t comm_ = nullptr;
#else
  const char* name = "the runtime";
  void compute(float* in, float* out) {
    NEEDS(cudaMemcpy(out, in, kCount * sizeof(float), cudaMemcpyDeviceToDevice));
  }
#endif
};

int limit(double gib) {
  Library library;
  const int most = static_cast<int>(gib * 1.5);
  int got = 0;
  void* p = nullptr;
  while (got < most && cudaMalloc(&p, size_t{1} << 30) == cudaSuccess) ++got;
  std::printf("%s: got %d GiB of %.0f, %s\n", library.name, got, gib,
              got > gib ? "ABOVE THE LIMIT" : "held");
  return got > gib || got < gib - 2 ? 1 : 0;
}

int turns(double seconds) {
  Library library;
  float *in = nullptr, *out = nullptr;
  unsigned* wrong = nullptr;
  std::vector<std::uint32_t*> held(24);
  constexpr size_t kWords = (size_t{256} << 20) / 4;
  NEEDS(cudaMalloc(&in, kCount * sizeof(float)));
  NEEDS(cudaMalloc(&out, kCount * sizeof(float)));
  NEEDS(cudaMalloc(&wrong, sizeof(unsigned)));
  NEEDS(cudaMemset(wrong, 0, sizeof(unsigned)));
  for (size_t i = 0; i < held.size(); ++i) {
    NEEDS(cudaMalloc(&held[i], kWords * 4));
    fill<<<512, 256>>>(held[i], kWords, static_cast<std::uint32_t>(i));
  }
  make_input<<<512, 256>>>(in, kCount);
  std::vector<float> first(kCount), now(kCount);
  long rounds = 0, differ = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (; std::chrono::steady_clock::now() < end; ++rounds) {
    NEEDS(cudaMemset(out, 0, kCount * sizeof(float)));
    library.compute(in, out);
    NEEDS(cudaMemcpy(rounds == 0 ? first.data() : now.data(), out, kCount * sizeof(float),
                     cudaMemcpyDeviceToHost));
    if (rounds != 0 && std::memcmp(first.data(), now.data(), kCount * sizeof(float)) != 0) ++differ;
    const size_t i = static_cast<size_t>(rounds) % held.size();
    count_wrong<<<512, 256>>>(held[i], kWords, static_cast<std::uint32_t>(i), wrong);
  }
  for (size_t i = 0; i < held.size(); ++i) {
    count_wrong<<<512, 256>>>(held[i], kWords, static_cast<std::uint32_t>(i), wrong);
  }
  unsigned bytes = 0;
  NEEDS(cudaMemcpy(&bytes, wrong, sizeof(bytes), cudaMemcpyDeviceToHost));
  std::printf("%s: %ld rounds, %ld results differ, %u wrong words\n", library.name, rounds, differ,
              bytes);
  return rounds < 10 || differ != 0 || bytes != 0 ? 1 : 0;
}

int main(int count, char** words) {
  if (count == 3 && std::strcmp(words[1], "limit") == 0) return limit(std::atof(words[2]));
  if (count == 3 && std::strcmp(words[1], "turns") == 0) return turns(std::atof(words[2]));
  std::fprintf(stderr, "usage: %s limit GIB | turns SECONDS\n", words[0]);
  return 2;
}
