// The program's own virtual memory in swap_probe: used like PyTorch's expandable segments and
// vLLM's sleep mode, and in unusual ways.
#include "tests/driver/device_memory.h"
#include "tests/interposer/swap_probe.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

namespace {

constexpr CUmemAccessDesc kReadOnly = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                       CU_MEM_ACCESS_FLAGS_PROT_READ};
constexpr std::size_t kSegment = 20 * kMiB;
constexpr std::size_t kSegments = 12;

struct Segment {
  CUmemGenericAllocationHandle handle = 0;
  unsigned value = 0;
};

// A range that grows and shrinks: its content stays, and a part that was removed returns with new
// content.
class Expandable {
 public:
  explicit Expandable(CUstream stream) : stream_(stream) {
    OK(cuMemAddressReserve(&base_, kSegment * kSegments, 0, 0, 0));
  }
  ~Expandable() {
    shrink(0);
    OK(cuMemAddressFree(base_, kSegment * kSegments));
  }
  Expandable(const Expandable&) = delete;
  Expandable& operator=(const Expandable&) = delete;

  bool grow(std::size_t to, Random& random) {
    const std::size_t from = segments_.size();
    const auto prop = device_memory(random() % 2 == 0 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                                      : CU_MEM_HANDLE_TYPE_NONE);
    while (segments_.size() < to) {
      Segment s;
      if (!GOT(cuMemCreate(&s.handle, kSegment, &prop, 0))) break;
      if (!OK(cuMemMap(at(segments_.size()), kSegment, 0, s.handle, 0))) return false;
      segments_.push_back(s);
    }
    const std::size_t grown = segments_.size() - from;
    if (grown == 0) return !g_wrong;
    if (!OK(cuMemSetAccess(at(from), grown * kSegment, &kReadWrite, 1))) return false;
    for (std::size_t i = from; i < segments_.size(); ++i) fill(i, random);
    return !g_wrong;
  }
  void shrink(std::size_t to) {
    if (segments_.size() > to) OK(cuStreamSynchronize(stream_));
    while (segments_.size() > to) {
      OK(cuMemUnmap(at(segments_.size() - 1), kSegment));
      OK(cuMemRelease(segments_.back().handle));
      segments_.pop_back();
    }
  }
  void fill(std::size_t i, Random& random) {
    segments_[i].value = random();
    OK(cuMemsetD32Async(at(i), segments_[i].value, kSegment / 4, stream_));
  }
  bool read_back(Random& random) {
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      if (!check({at(i), kSegment, segments_[i].value}, stream_, random)) return false;
    }
    return true;
  }
  // Copies across the border of two segments in a single call.
  void copy_within() {
    if (segments_.size() < 4) return;
    OK(cuMemcpyDtoDAsync_v2(at(2), at(0), 2 * kSegment, stream_));
    segments_[2].value = segments_[0].value;
    segments_[3].value = segments_[1].value;
  }
  std::size_t size() const { return segments_.size(); }

 private:
  CUdeviceptr at(std::size_t i) const { return base_ + i * kSegment; }

  CUstream stream_;
  CUdeviceptr base_ = 0;
  std::vector<Segment> segments_;
};

// Maps the memory a second time, partly and read-only. A real driver may accept only a mapping of
// all of it, or a writable one.
bool map_again(CUdeviceptr address, std::size_t size, std::size_t* part,
               CUmemGenericAllocationHandle handle) {
  CUresult result = cuMemMap(address, *part, 0, handle, 0);
  if (result != CUDA_SUCCESS && *part != size && !is_simulated()) {
    *part = size;
    result = cuMemMap(address, size, 0, handle, 0);
  }
  if (!OK(result)) return false;
  result = cuMemSetAccess(address, *part, &kReadOnly, 1);
  if (result != CUDA_SUCCESS && !is_simulated()) {
    result = cuMemSetAccess(address, *part, &kReadWrite, 1);
  }
  return OK(result);
}

// Maps one allocation at several addresses, with different access; retains, releases and remaps it.
bool use_aliases(CUstream stream, Random& random) {
  const std::size_t size = (1 + random() % 40) * (2 * kMiB);
  std::size_t half = size / 2 / (2 * kMiB) * 2 * kMiB + (size < 4 * kMiB ? size : 0);
  const auto prop = device_memory();
  CUmemGenericAllocationHandle handle = 0, again = 0;
  CUdeviceptr range = 0;
  const unsigned value = random();
  if (!GOT(cuMemCreate(&handle, size, &prop, 0))) return !g_wrong;
  if (!OK(cuMemAddressReserve(&range, 3 * size, 0, 0, 0)) ||
      !OK(cuMemMap(range, size, 0, handle, 0)) || !map_again(range + size, size, &half, handle) ||
      !OK(cuMemSetAccess(range, size, &kReadWrite, 1)) ||
      !OK(cuMemsetD32Async(range, value, size / 4, stream)) ||
      !check({range + size, half, value}, stream, random) ||
      !OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + 100))) ||
      !OK(cuMemRelease(handle)) || !OK(cuMemUnmap(range, size)) ||
      !OK(cuMemUnmap(range + size, half)) || !OK(cuMemMap(range + 2 * size, size, 0, again, 0)) ||
      !OK(cuMemRelease(again)) || !OK(cuMemSetAccess(range + 2 * size, size, &kReadWrite, 1)) ||
      !check({range + 2 * size, size, value}, stream, random)) {
    return false;
  }
  return OK(cuMemUnmap(range + 2 * size, size)) && OK(cuMemAddressFree(range, 3 * size));
}

// Exported memory is never evicted again; an importer sees the same bytes.
bool use_exported(CUstream stream, Random& random) {
  constexpr std::size_t kSize = 6 * kMiB;
  const auto prop = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  CUdeviceptr range = 0;
  const unsigned value = random();
  int fd = -1;
  if (!GOT(cuMemCreate(&handle, kSize, &prop, 0))) return !g_wrong;
  if (!OK(cuMemAddressReserve(&range, 2 * kSize, 0, 0, 0)) ||
      !OK(cuMemMap(range, kSize, 0, handle, 0)) ||
      !OK(cuMemSetAccess(range, kSize, &kReadWrite, 1)) ||
      !OK(cuMemsetD32Async(range, value, kSize / 4, stream)) || !OK(cuStreamSynchronize(stream))) {
    return false;
  }
  if (GOT(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))) {
    void* shared = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
    if (!OK(cuMemImportFromShareableHandle(&imported, shared,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) ||
        !OK(cuMemMap(range + kSize, kSize, 0, imported, 0)) ||
        !OK(cuMemSetAccess(range, 2 * kSize, &kReadWrite, 1)) ||
        !check({range + kSize, kSize, value}, stream, random) ||
        !OK(cuMemUnmap(range, 2 * kSize)) || !OK(cuMemRelease(imported))) {
      return false;
    }
    ::close(fd);
  } else if (g_wrong || !OK(cuMemUnmap(range, kSize))) {
    return false;
  }
  return OK(cuMemRelease(handle)) && OK(cuMemAddressFree(range, 2 * kSize));
}

void expect(bool holds, int line) {
  if (holds) return;
  std::printf("line %d: not so\n", line);
  g_wrong = true;
}
#define EXPECT(condition) expect(condition, __LINE__)

CUmemGenericAllocationHandle g_multicast = 0;

void bind_to_multicast(CUmemGenericAllocationHandle memory) {
  void* library = driver_library();
  const auto create =
      reinterpret_cast<CUresult (*)(CUmemGenericAllocationHandle*, const CUmulticastObjectProp*)>(
          ::dlsym(library, "cuMulticastCreate"));
  const auto add = reinterpret_cast<CUresult (*)(CUmemGenericAllocationHandle, CUdevice)>(
      ::dlsym(library, "cuMulticastAddDevice"));
  const auto bind = reinterpret_cast<CUresult (*)(
      CUmemGenericAllocationHandle, std::size_t, CUmemGenericAllocationHandle, std::size_t,
      std::size_t, unsigned long long)>(::dlsym(library, "cuMulticastBindMem"));
  const CUmulticastObjectProp team = {1, 4 * kMiB, 0, 0};
  OK(create(&g_multicast, &team));
  OK(add(g_multicast, 0));
  OK(bind(g_multicast, 0, memory, 0, 4 * kMiB, 0));
}

}  // namespace

void use_vmm(CUcontext context, unsigned seed) {
  Random random(seed);
  CUstream stream = nullptr;
  if (!OK(cuCtxSetCurrent(context)) || !OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) return;
  {
    Expandable range(stream);
    while (goes_on()) {
      const bool grows = random() % 2 == 0;
      const std::size_t more = std::min(range.size() + random() % 3, kSegments);
      if (grows && !range.grow(more, random)) return;
      if (!grows) range.shrink(range.size() - random() % (range.size() + 1));
      if (!range.read_back(random)) return;
      if (random() % 3 == 0) range.copy_within();
      if (range.size() > 0 && random() % 2 == 0) range.fill(random() % range.size(), random);
      if (random() % 4 == 0 && !use_aliases(stream, random)) return;
      if (random() % 8 == 0 && !use_exported(stream, random)) return;
    }
  }
  OK(cuStreamDestroy_v2(stream));
}

void ask_of_vmm(void (*wait)()) {
  constexpr std::size_t kSize = 66 * kMiB;  // two blocks
  const auto prop = device_memory();
  CUmemGenericAllocationHandle handle = 0, again = 0;
  CUdeviceptr range = 0;
  OK(cuMemCreate(&handle, kSize, &prop, 0));
  OK(cuMemAddressReserve(&range, 2 * kSize, 0, 0, 0));
  OK(cuMemMap(range, kSize, 0, handle, 0));
  OK(cuMemSetAccess(range, kSize, &kReadWrite, 1));
  wait();
  CUdeviceptr base = 0;
  std::size_t size = 0;
  OK(cuMemGetAddressRange_v2(&base, &size, range + 65 * kMiB));
  EXPECT(base == range && size == kSize);
  int device = -1;
  unsigned type = 0;
  OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, range + 100));
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range + kSize - 1));
  EXPECT(device == 0 && type == CU_MEMORYTYPE_DEVICE);
  unsigned long long access = 0;
  OK(cuMemGetAccess(&access, &kReadWrite.location, range));
  EXPECT(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUmemAllocationProp told = {};
  OK(cuMemGetAllocationPropertiesFromHandle(&told, handle));
  EXPECT(told.type == prop.type && told.location.id == 0 && told.requestedHandleTypes == 0);
  OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + kSize - 1)));
  EXPECT(cuMemAddressFree(range, 2 * kSize) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemUnmap(range, kSize - 2 * kMiB) == CUDA_ERROR_INVALID_VALUE);
  // The memory is freed while it is evicted, or resident.
  OK(cuMemUnmap(range, kSize));
  OK(cuMemRelease(handle));
  OK(cuMemRelease(again));
  EXPECT(cuMemRelease(handle) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAddressFree(range, 2 * kSize));
}

bool Orphan::make() {
  const auto prop = device_memory();
  return OK(cuMemCreate(&handle_, kSegment, &prop, 0)) &&
         OK(cuMemAddressReserve(&range_, kSegment, 0, 0, 0)) &&
         OK(cuMemMap(range_, kSegment, 0, handle_, 0)) &&
         OK(cuMemSetAccess(range_, kSegment, &kReadWrite, 1)) &&
         OK(cuMemsetD32_v2(range_, 0x600df00d, kSegment / 4));
}

bool Orphan::read_back() {
  Random random(1);
  return check({range_, kSegment, 0x600df00d}, nullptr, random);
}

bool Orphan::free() {
  return OK(cuMemUnmap(range_, kSegment)) && OK(cuMemRelease(handle_)) &&
         OK(cuMemAddressFree(range_, kSegment));
}

int give_away() {
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  const auto plain = device_memory();
  const auto shareable = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle one = 0, two = 0, big = 0;
  int fd = -1;
  OK(cuMemCreate(&one, 4 * kMiB, &plain, 0));
  OK(cuMemCreate(&two, 4 * kMiB, &shareable, 0));
  // A handle with more than one block of memory is not evictable.
  OK(cuMemCreate(&big, 128 * kMiB, &shareable, 0));
  EXPECT(cuMemExportToShareableHandle(&fd, one, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
         CUDA_ERROR_INVALID_VALUE);
  std::printf("made\n");
  std::fflush(stdout);
  char line = 0;
  while (::read(0, &line, 1) == 1 && line != '\n') {
  }
  OK(cuMemExportToShareableHandle(&fd, two, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ::close(fd);
  OK(cuMemExportToShareableHandle(&fd, two, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ::close(fd);
  std::printf("exported\n");
  std::fflush(stdout);
  while (::read(0, &line, 1) == 1 && line != '\n') {
  }
  bind_to_multicast(one);
  std::printf("bound\n");
  std::fflush(stdout);
  while (::read(0, &line, 1) == 1 && line != '\n') {
  }
  OK(cuMemRelease(g_multicast));
  OK(cuMemRelease(one));
  OK(cuMemRelease(two));
  OK(cuMemRelease(big));
  CUmemAllocationProp told = {};
  CUdeviceptr range = 0;
  EXPECT(cuMemRelease(two) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemGetAllocationPropertiesFromHandle(&told, one) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAddressReserve(&range, 4 * kMiB, 0, 0, 0));
  EXPECT(cuMemMap(range, 4 * kMiB, 0, one, 0) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAddressFree(range, 4 * kMiB));
  std::printf("end\n");
  std::fflush(stdout);
  while (::read(0, &line, 1) == 1 && line != '\n') {
  }
  return g_wrong ? 1 : 0;
}
