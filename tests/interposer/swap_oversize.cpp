// A CUDA program with more memory than its lease has on the GPU: one allocation that fits neither
// the GPU nor host memory as a whole, many later ones, and some memory that the program maps
// itself. The program knows every byte, and checks all of them at the end.
#include "tests/driver/device_memory.h"
#include "tests/interposer/swap_probe.h"

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

namespace {

class Program {
 public:
  struct Buffer {
    CUdeviceptr at = 0;
    std::vector<unsigned char> bytes;  // expected bytes
  };

  // Allocates until there is no room: most memory in one piece, one piece partly on the GPU and
  // partly in host memory, and some memory of other kinds.
  bool fill() {
    std::size_t free = 0, total = 0;
    if (!OK(cuMemGetInfo_v2(&free, &total))) return false;
    std::printf("total %zu MiB, free %zu MiB\n", total / kMiB, free / kMiB);
    if (!add(free / 2 + 3 * kMiB) || !add(9 * kMiB) || !add(free / 6)) return false;
    if (!map_some(8 * kMiB)) return false;
    while (add(9 * kMiB, true)) {
    }
    for (int i = 0; i < 5; ++i) add(std::size_t{100} * 1024, true);
    std::size_t has = 0;
    for (const Buffer& buffer : buffers_) has += buffer.bytes.size();
    std::printf("has %zu MiB\n", has / kMiB);
    return !g_wrong;
  }

  // Changes memory on the host, copies and fills some on the GPU, and reads some.
  bool work() {
    Buffer& to = any();
    const Buffer& from = any();
    const std::size_t size = random_() % (std::min(to.bytes.size(), from.bytes.size()) / 2) + 1;
    const std::size_t offset = random_() % (to.bytes.size() - size);
    const std::size_t source = random_() % (from.bytes.size() - size);
    if (&to != &from) {
      if (!OK(cuMemcpyDtoD_v2(to.at + offset, from.at + source, size))) return false;
      std::memcpy(&to.bytes[offset], &from.bytes[source], size);
    }
    Buffer& filled = any();
    const std::size_t word = random_() % (filled.bytes.size() / 4 - 1) * 4;
    const auto value = static_cast<unsigned>(random_());
    if (!OK(cuMemsetD32_v2(filled.at + word, value, 1))) return false;
    std::memcpy(&filled.bytes[word], &value, 4);
    const Buffer& read = any();
    const std::size_t some = std::min<std::size_t>(read.bytes.size(), 1 * kMiB);
    return check(read, random_() % (read.bytes.size() - some + 1), some);
  }

  bool check_all() {
    for (const Buffer& buffer : buffers_) {
      if (!check(buffer, 0, buffer.bytes.size())) return false;
    }
    return true;
  }

  // Frees every second buffer, and allocates others instead.
  bool replace() {
    for (std::size_t i = 0; i < buffers_.size(); i += 2) {
      const std::size_t size = buffers_[i].bytes.size();
      if (buffers_[i].at == mapped_) continue;
      if (!OK(cuMemFree_v2(buffers_[i].at)) || !make(size, false, &buffers_[i])) return false;
    }
    return true;
  }

  bool free_all() {
    for (const Buffer& buffer : buffers_) {
      if (buffer.at != mapped_ && !OK(cuMemFree_v2(buffer.at))) return false;
    }
    return OK(cuMemUnmap(mapped_, 8 * kMiB)) && OK(cuMemAddressFree(mapped_, 8 * kMiB));
  }

 private:
  Buffer& any() { return buffers_[random_() % buffers_.size()]; }

  bool make(std::size_t size, bool may_fail, Buffer* out) {
    CUdeviceptr at = 0;
    const CUresult result = cuMemAlloc_v2(&at, size);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && may_fail) return false;
    if (!OK(result)) return false;
    out->at = at;
    return write(*out, size);
  }
  bool write(Buffer& buffer, std::size_t size) {
    buffer.bytes.resize(size);
    for (std::size_t i = 0; i + 8 <= size; i += 8) {
      const std::uint64_t word = random_();
      std::memcpy(&buffer.bytes[i], &word, 8);
    }
    return OK(cuMemcpyHtoD_v2(buffer.at, buffer.bytes.data(), size));
  }
  bool add(std::size_t size, bool may_fail = false) {
    Buffer buffer;
    if (!make(size, may_fail, &buffer)) return false;
    buffers_.push_back(std::move(buffer));
    return true;
  }
  bool map_some(std::size_t size) {
    const CUmemAllocationProp prop = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUmemGenericAllocationHandle handle = 0;
    int fd = -1;
    if (!OK(cuMemCreate(&handle, size, &prop, 0)) ||
        !OK(cuMemAddressReserve(&mapped_, size, 0, 0, 0)) ||
        !OK(cuMemMap(mapped_, size, 0, handle, 0)) ||
        !OK(cuMemSetAccess(mapped_, size, &kReadWrite, 1))) {
      return false;
    }
    const CUresult given =
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    std::printf("export: %s\n", code_name(given).c_str());
    if (!OK(cuMemRelease(handle))) return false;
    Buffer buffer;
    buffer.at = mapped_;
    if (!write(buffer, size)) return false;
    buffers_.push_back(std::move(buffer));
    return true;
  }
  bool check(const Buffer& buffer, std::size_t offset, std::size_t size) {
    std::vector<unsigned char> read(size);
    if (!OK(cuMemcpyDtoH_v2(read.data(), buffer.at + offset, size))) return false;
    if (std::memcmp(read.data(), buffer.bytes.data() + offset, size) == 0) return true;
    std::printf("line %d: wrong bytes\n", __LINE__);
    g_wrong = true;
    return false;
  }

  std::mt19937_64 random_{11};
  std::vector<Buffer> buffers_;
  CUdeviceptr mapped_ = 0;
};

}  // namespace

// Fills its memory, reports that, and works until it is told to continue. Then replaces half,
// checks all, reports that, and frees everything when it is told to.
int main() {
  if (!load_driver() || !OK(cuInit(0))) return 2;
  const WithContext with;
  Program program;
  if (with.context() == nullptr || !program.fill()) return 1;
  say("filled");
  while (!told_to_go_on() && !g_wrong) program.work();
  char line[16];
  if (g_wrong || std::fgets(line, sizeof(line), stdin) == nullptr) return 1;
  if (!program.check_all() || !program.replace() || !program.check_all()) return 1;
  say("checked");
  if (std::fgets(line, sizeof(line), stdin) == nullptr || !program.free_all()) return 1;
  say("done");
  return 0;
}
