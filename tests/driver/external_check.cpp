// External memory: another exporter has made the memory, and is charged for it. Here the driver's
// own memory (cuMemCreate) is exported, because no other API is available. The checks are skipped
// with a driver that accepts only another API's memory.
#include "abi/cuda_external.h"
#include "tests/driver/api.h"
#include "tests/driver/device_memory.h"
#include "tests/driver/pass_descriptor.h"

#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kSize = 64 * kMiB;
constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// Looked up on use, because few programs need these functions.
struct Functions {
  CUresult (*import)(CUexternalMemory*, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*) =
      function<CUresult(CUexternalMemory*, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*)>(
          "cuImportExternalMemory");
  CUresult (*map)(CUdeviceptr*, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*) =
      function<CUresult(CUdeviceptr*, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*)>(
          "cuExternalMemoryGetMappedBuffer");
  CUresult (*map_array)(CUmipmappedArray*, CUexternalMemory,
                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC*) =
      function<CUresult(CUmipmappedArray*, CUexternalMemory,
                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC*)>(
          "cuExternalMemoryGetMappedMipmappedArray");
  CUresult (*destroy)(CUexternalMemory) =
      function<CUresult(CUexternalMemory)>("cuDestroyExternalMemory");
};

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  (void)cuMemGetInfo_v2(&free, &total);
  return free;
}

CUDA_EXTERNAL_MEMORY_HANDLE_DESC described(int fd) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {};
  desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  desc.handle.fd = fd;
  desc.size = kSize;
  desc.flags = CUDA_EXTERNAL_MEMORY_DEDICATED;
  return desc;
}

CUDA_EXTERNAL_MEMORY_BUFFER_DESC range(std::size_t offset, std::size_t size) {
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {};
  desc.offset = offset;
  desc.size = size;
  return desc;
}

// The offset at which a mapping of a part begins: 0 on a real driver, which maps dedicated imported
// memory only as a whole.
std::size_t part_begins(std::size_t offset) { return is_simulated() ? offset : 0; }

// Memory, its descriptor, and a mapping in the exporting process. The mapping shows the same bytes
// as the importer's.
struct Exported {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  int fd = -1;

  bool make() {
    const auto prop = device_memory(kDescriptor);
    return cuMemCreate(&handle, kSize, &prop, 0) == CUDA_SUCCESS &&
           cuMemAddressReserve(&at, kSize, 0, 0, 0) == CUDA_SUCCESS &&
           cuMemMap(at, kSize, 0, handle, 0) == CUDA_SUCCESS &&
           cuMemSetAccess(at, kSize, &kReadWrite, 1) == CUDA_SUCCESS &&
           cuMemExportToShareableHandle(&fd, handle, kDescriptor, 0) == CUDA_SUCCESS;
  }
  bool let_go() const {
    return cuMemUnmap(at, kSize) == CUDA_SUCCESS && cuMemRelease(handle) == CUDA_SUCCESS &&
           cuMemAddressFree(at, kSize) == CUDA_SUCCESS;
  }
};

// The other process: exports, waits until the importer is done, and frees its own memory.
int export_and_wait(int socket) {
  const WithContext with;
  Exported exported;
  char word = 0;
  if (!exported.make()) return 1;
  if (cuMemsetD32_v2(exported.at, 0x5eed0003U, kSize / 4) != CUDA_SUCCESS) return 2;
  if (cuCtxSynchronize() != CUDA_SUCCESS) return 3;
  if (!send_with_descriptor(socket, &word, 1, exported.fd)) return 4;
  ::close(exported.fd);
  if (::read(socket, &word, 1) != 1) return 5;
  std::uint32_t seen = 0;
  if (cuMemcpyDtoH_v2(&seen, exported.at + part_begins(kMiB), 4) != CUDA_SUCCESS ||
      seen != 0x5eed0004U) {
    return 6;
  }
  if (!exported.let_go()) return 7;
  return ::write(socket, &word, 1) == 1 && ::read(socket, &word, 1) == 0 ? 0 : 8;
}

}  // namespace

#define NEED_EXTERNAL_MEMORY(functions)                                     \
  const Functions functions;                                                \
  if ((functions).import == nullptr || (functions).map == nullptr ||        \
      (functions).map_array == nullptr || (functions).destroy == nullptr) { \
    return skip_check("the driver has no external memory");                 \
  }
#define IMPORT_OR_SKIP(functions, external, fd)                                         \
  do {                                                                                  \
    const auto desc_ = described(fd);                                                   \
    const CUresult result_ = (functions).import(external, &desc_);                      \
    if (result_ != CUDA_SUCCESS && !is_simulated()) {                                   \
      return skip_check("its own memory is not external to it: " + code_name(result_)); \
    }                                                                                   \
    EXPECT_OK(result_);                                                                 \
  } while (false)

// The first check, because the other process must be made before the driver is initialised here.
DRIVER_CHECK(external_memory_of_another_process_is_its_makers_and_lives_as_long_as_it_is_imported) {
  NEED_EXTERNAL_MEMORY(functions);
  int sockets[2] = {-1, -1};
  EXPECT_SAME(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(sockets[0]);
    ::_exit(export_and_wait(sockets[1]));
  }
  ::close(sockets[1]);
  {
    const WithContext with;
    char word = 0;
    const int fd = receive_with_descriptor(sockets[0], &word, 1);
    EXPECT_TRUE(fd >= 0);
    const std::size_t before = free_bytes();
    CUexternalMemory external = nullptr;
    CUdeviceptr at = 0;
    const std::size_t offset = part_begins(kMiB);
    const auto part = range(offset, kSize - offset);
    std::uint32_t seen = 0;
    IMPORT_OR_SKIP(functions, &external, fd);
    EXPECT_OK(functions.map(&at, external, &part));
    EXPECT_SAME(free_bytes(), before);
    EXPECT_OK(cuMemcpyDtoH_v2(&seen, at, 4));
    EXPECT_SAME(seen, 0x5eed0003U);
    EXPECT_OK(cuMemsetD32_v2(at, 0x5eed0004U, 1));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_SAME(::write(sockets[0], &word, 1), 1);
    EXPECT_SAME(::read(sockets[0], &word, 1), 1);  // the maker has freed the memory
    EXPECT_OK(cuMemcpyDtoH_v2(&seen, at, 4));
    EXPECT_SAME(seen, 0x5eed0004U);
    EXPECT_SAME(free_bytes(), before);
    EXPECT_OK(functions.destroy(external));
    EXPECT_OK(cuMemFree_v2(at));
    EXPECT_SAME(free_bytes(), before + kSize);
  }
  ::close(sockets[0]);
  int status = 0;
  EXPECT_SAME(::waitpid(child, &status, 0), child);
  EXPECT_SAME(WIFEXITED(status) ? WEXITSTATUS(status) : 256, 0);
}

DRIVER_CHECK(a_mapped_buffer_shows_the_same_bytes_and_is_counted_once) {
  NEED_EXTERNAL_MEMORY(functions);
  const WithContext with;
  const std::size_t before = free_bytes();
  Exported exported;
  CUexternalMemory external = nullptr;
  CUdeviceptr one = 0, two = 0, base = 0;
  std::size_t size = 0;
  EXPECT_TRUE(exported.make());
  IMPORT_OR_SKIP(functions, &external, exported.fd);
  const std::size_t offset = part_begins(32 * kMiB), length = is_simulated() ? 16 * kMiB : kSize;
  const auto whole = range(0, kSize), part = range(offset, length);
  EXPECT_OK(functions.map(&one, external, &whole));
  EXPECT_OK(functions.map(&two, external, &part));
  EXPECT_SAME(before - free_bytes(), kSize);
  EXPECT_OK(cuMemGetAddressRange_v2(&base, &size, two + 4096));
  EXPECT_SAME(base, two);
  EXPECT_SAME(size, length);
  EXPECT_OK(cuMemsetD32_v2(exported.at + offset, 0x0badcafeU, 1));
  std::uint32_t seen = 0;
  EXPECT_OK(cuMemcpyDtoH_v2(&seen, two, 4));
  EXPECT_SAME(seen, 0x0badcafeU);
  EXPECT_OK(cuMemsetD32_v2(two + 4, 0x600df00dU, 1));
  EXPECT_OK(cuMemcpyDtoH_v2(&seen, one + offset + 4, 4));
  EXPECT_SAME(seen, 0x600df00dU);
  EXPECT_OK(cuMemFree_v2(one));
  EXPECT_TRUE(exported.let_go());
  EXPECT_SAME(before - free_bytes(), kSize);
  EXPECT_OK(cuMemFree_v2(two));
  EXPECT_SAME(before - free_bytes(), kSize);  // the imported object still keeps the memory
  EXPECT_OK(functions.destroy(external));
  EXPECT_SAME(free_bytes(), before);
}

DRIVER_CHECK(a_mapped_mipmapped_array_takes_and_gives_bytes) {
  NEED_EXTERNAL_MEMORY(functions);
  const auto level_of =
      function<CUresult(CUarray*, CUmipmappedArray, unsigned)>("cuMipmappedArrayGetLevel");
  const auto destroy = function<CUresult(CUmipmappedArray)>("cuMipmappedArrayDestroy");
  const WithContext with;
  const std::size_t before = free_bytes();
  Exported exported;
  CUexternalMemory external = nullptr;
  CUmipmappedArray array = nullptr;
  CUarray level = nullptr;
  EXPECT_TRUE(exported.make());
  IMPORT_OR_SKIP(functions, &external, exported.fd);
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc = {};
  desc.arrayDesc = {1024, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  desc.numLevels = 2;
  const CUresult mapped = functions.map_array(&array, external, &desc);
  if (mapped == CUDA_SUCCESS) {
    std::vector<unsigned char> given(512), back(512);
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<unsigned char>(i * 5);
    EXPECT_OK(level_of(&level, array, 1));
    EXPECT_OK(cuMemcpyHtoA_v2(level, 0, given.data(), given.size()));
    EXPECT_OK(cuMemcpyAtoH_v2(back.data(), level, 0, back.size()));
    EXPECT_TRUE(given == back);
    EXPECT_SAME(before - free_bytes(), kSize);
    EXPECT_OK(destroy(array));
  }
  EXPECT_OK(functions.destroy(external));
  EXPECT_TRUE(exported.let_go());
  EXPECT_SAME(free_bytes(), before);
  if (mapped != CUDA_SUCCESS && !is_simulated()) {
    return skip_check("no array in memory that was made for none: " + code_name(mapped));
  }
  EXPECT_OK(mapped);
}

DRIVER_CHECK(external_memory_of_other_systems_and_wrong_handles_are_refused) {
  NEED_EXTERNAL_MEMORY(functions);
  const WithContext with;
  CUexternalMemory external = nullptr;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = described(-1);
  for (const int type : {0, 10, 1000, int{CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32},
                         int{CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP},
                         int{CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF}}) {
    desc.type = type;
    desc.handle.win32 = {nullptr, nullptr};
    EXPECT_TRUE(functions.import(&external, &desc) != CUDA_SUCCESS);
  }
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  desc = described(nothing);
  EXPECT_TRUE(functions.import(&external, &desc) != CUDA_SUCCESS);
  // The driver owns a descriptor only if it accepts the descriptor; 580.159 also closes a refused
  // one.
  if (is_simulated()) EXPECT_SAME(::close(nothing), 0);
}

SIMULATOR_CHECK(only_what_was_imported_is_mapped) {
  const Functions functions;
  const WithContext with;
  Exported exported;
  CUexternalMemory external = nullptr;
  CUdeviceptr at = 0;
  EXPECT_TRUE(exported.make());
  auto desc = described(exported.fd);
  desc.size = kSize + 1;
  EXPECT_CODE(functions.import(&external, &desc), CUDA_ERROR_INVALID_VALUE);
  desc = described(exported.fd);
  EXPECT_OK(functions.import(&external, &desc));
  EXPECT_SAME(::fcntl(exported.fd, F_GETFD), -1);
  for (const auto& wrong : {range(0, 0), range(0, kSize + 1), range(kSize, 1), range(~0ULL, 2)}) {
    EXPECT_CODE(functions.map(&at, external, &wrong), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_OK(functions.destroy(external));
  const auto whole = range(0, kSize);
  EXPECT_CODE(functions.map(&at, external, &whole), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(functions.destroy(external), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_TRUE(exported.let_go());
}
