// Linear memory that two processes share by handle: this process opens memory that another process
// owns.
#include "tests/driver/api.h"
#include "tests/driver/device_memory.h"

#include <cstring>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr unsigned kLazyPeerAccess = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;

// The driver's answers about an address.
struct Told {
  bool of_current_context = false;
  CUmemoryPool pool = nullptr;
  unsigned char ipc_capable = 7, mapped = 7;
  int device = -1;
  unsigned handle_types = 7, access = 7;
  CUdeviceptr base = 0, range = 0, mapping = 0;
  std::size_t size = 0, range_size = 0, mapping_size = 0;
};

// A request to the other process: a call to make there, with arguments and results.
struct Request {
  CUresult (*call)(Request&) = nullptr;
  CUresult result = CUDA_ERROR_UNKNOWN;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  std::uint32_t word = 0;
  CUipcMemHandle handle = {};
  Told told = {};
};

// The process that owns the memory: a child made before the driver is initialised here. The child
// runs the same code and makes the requested calls.
class Owner {
 public:
  static CUresult ask(Request& request, CUresult (*call)(Request&)) {
    static const Owner owner;
    request.call = call;
    request.result = CUDA_ERROR_UNKNOWN;
    if (::send(owner.socket_, &request, sizeof request, MSG_NOSIGNAL) == sizeof request) {
      (void)::recv(owner.socket_, &request, sizeof request, 0);
    }
    return request.result;
  }

 private:
  Owner() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[0]);
      serve(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    socket_ = ends[0];
  }
  ~Owner() {
    ::close(socket_);
    (void)::waitpid(child_, nullptr, 0);
  }
  static void serve(int socket) {
    const WithContext with;
    Request request;
    while (::recv(socket, &request, sizeof request, 0) == sizeof request) {
      request.result = request.call(request);
      (void)::send(socket, &request, sizeof request, MSG_NOSIGNAL);
    }
  }

  int socket_ = -1;
  pid_t child_ = -1;
};

// Memory that the owner allocates and fills with `word`, and the handle of that memory. The first
// object also makes a context in this process; all checks open memory in that context.
class Owned : public Request {
 public:
  Owned(std::size_t bytes, std::uint32_t value) {
    size = bytes;
    word = value;
    made_ = Owner::ask(*this, [](Request& r) {
      CUresult code = cuMemAlloc_v2(&r.address, r.size);
      if (code == CUDA_SUCCESS) code = cuMemsetD32_v2(r.address, r.word, r.size / 4);
      if (code == CUDA_SUCCESS) code = cuCtxSynchronize();
      return code == CUDA_SUCCESS ? cuIpcGetMemHandle(&r.handle, r.address) : code;
    });
    static const WithContext with;
  }
  ~Owned() {
    if (address != 0) (void)free();
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  CUresult made() const { return made_; }
  CUresult free() {
    const CUresult code = Owner::ask(*this, [](Request& r) { return cuMemFree_v2(r.address); });
    address = 0;
    return code;
  }

 private:
  CUresult made_;
};

bool is_same(const CUipcMemHandle& a, const CUipcMemHandle& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

CUresult open(CUdeviceptr* out, const Request& memory) {
  return cuIpcOpenMemHandle_v2(out, memory.handle, kLazyPeerAccess);
}

std::uint32_t word_at(CUdeviceptr address) {
  std::uint32_t word = 0;
  return cuMemcpyDtoH_v2(&word, address, 4) == CUDA_SUCCESS ? word : 0;
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  (void)cuMemGetInfo_v2(&free, &total);
  return free;
}

CUresult tell(Told& told, CUdeviceptr address) {
  CUcontext context = nullptr, current = nullptr;
  const struct {
    CUpointer_attribute attribute;
    void* out;
  } questions[] = {
      {CU_POINTER_ATTRIBUTE_CONTEXT, &context},
      {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, &told.pool},
      {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, &told.ipc_capable},
      {CU_POINTER_ATTRIBUTE_MAPPED, &told.mapped},
      {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &told.device},
      {CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, &told.handle_types},
      {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, &told.access},
      {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &told.range},
      {CU_POINTER_ATTRIBUTE_RANGE_SIZE, &told.range_size},
      {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, &told.mapping},
      {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, &told.mapping_size},
  };
  for (const auto& [attribute, out] : questions) {
    const CUresult code = cuPointerGetAttribute(out, attribute, address);
    if (code != CUDA_SUCCESS) return code;
  }
  const CUresult code = cuCtxGetCurrent(&current);
  told.of_current_context = context == current;
  return code == CUDA_SUCCESS ? cuMemGetAddressRange_v2(&told.base, &told.size, address) : code;
}

// The expected answers for linear memory; a page of 2 MiB is mapped as a whole.
void expect_linear(const Told& told, CUdeviceptr base, std::size_t size) {
  constexpr std::size_t kPage = 2 * kMiB;
  EXPECT_TRUE(told.of_current_context);
  EXPECT_TRUE(told.pool == nullptr);
  EXPECT_SAME(static_cast<int>(told.mapped), 1);
  EXPECT_SAME(told.device, 0);
  EXPECT_SAME(told.handle_types, 0U);
  EXPECT_SAME(told.access, static_cast<unsigned>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_SAME(told.base, base);
  EXPECT_SAME(told.size, size);
  EXPECT_SAME(told.range, base);
  EXPECT_SAME(told.range_size, size);
  EXPECT_SAME(told.mapping, base / kPage * kPage);
  EXPECT_SAME(told.mapping_size, (size + kPage - 1) / kPage * kPage);
}

}  // namespace

DRIVER_CHECK(memory_opened_by_its_handle_is_the_same_memory) {
  Owned memory(8 * kMiB, 9);
  EXPECT_OK(memory.made());
  CUdeviceptr opened = 0;
  EXPECT_OK(open(&opened, memory));
  EXPECT_SAME(word_at(opened), 9U);
  EXPECT_SAME(word_at(opened + 8 * kMiB - 4), 9U);
  EXPECT_OK(cuMemsetD32_v2(opened, 10, 8 * kMiB / 4));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(Owner::ask(
      memory, [](Request& r) { return cuMemcpyDtoH_v2(&r.word, r.address + r.size - 4, 4); }));
  EXPECT_SAME(memory.word, 10U);
  EXPECT_OK(cuIpcCloseMemHandle(opened));
}

DRIVER_CHECK(memory_opened_again_is_at_the_same_address_until_it_was_closed_as_often) {
  Owned memory(8 * kMiB, 9);
  CUdeviceptr first = 0, second = 0;
  EXPECT_OK(open(&first, memory));
  EXPECT_OK(open(&second, memory));
  EXPECT_SAME(first, second);
  EXPECT_OK(cuIpcCloseMemHandle(first));
  EXPECT_SAME(word_at(first), 9U);
  EXPECT_OK(cuIpcCloseMemHandle(first));
  EXPECT_CODE(cuIpcCloseMemHandle(first), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_CHECK(memory_is_open_in_one_context_of_a_process) {
  Owned memory(8 * kMiB, 9);
  CUdeviceptr opened = 0, elsewhere = 0;
  CUcontext other = nullptr;
  EXPECT_OK(open(&opened, memory));
  EXPECT_OK(cuCtxCreate_v2(&other, 0, 0));
  EXPECT_CODE(open(&elsewhere, memory), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_OK(cuCtxDestroy_v2(other));
  EXPECT_SAME(word_at(opened), 9U);
  EXPECT_OK(cuIpcCloseMemHandle(opened));
}

DRIVER_CHECK(the_owner_does_not_open_what_is_its_own) {
  Owned memory(8 * kMiB, 9);
  EXPECT_OK(memory.made());
  EXPECT_CODE(Owner::ask(memory,
                         [](Request& r) {
                           CUdeviceptr opened = 0;
                           return open(&opened, r);
                         }),
              CUDA_ERROR_INVALID_CONTEXT);
}

DRIVER_CHECK(memory_that_was_freed_is_not_opened) {
  Owned memory(8 * kMiB, 9);
  EXPECT_OK(memory.made());
  EXPECT_OK(memory.free());
  CUdeviceptr opened = 0;
  // The driver answers CUDA_ERROR_INVALID_VALUE if no other memory of the owner is open here.
  const CUresult result = open(&opened, memory);
  EXPECT_TRUE(result == CUDA_ERROR_NOT_PERMITTED || result == CUDA_ERROR_INVALID_VALUE);
}

DRIVER_CHECK(memory_that_is_freed_while_it_is_open_stays_until_it_is_closed) {
  constexpr std::size_t kSize = 96 * kMiB;
  Owned memory(kSize, 9);
  CUdeviceptr opened = 0;
  EXPECT_OK(open(&opened, memory));
  const std::size_t before = free_bytes();
  EXPECT_OK(memory.free());
  EXPECT_SAME(free_bytes(), before);
  EXPECT_SAME(word_at(opened), 9U);
  EXPECT_SAME(word_at(opened + kSize - 4), 9U);
  EXPECT_OK(cuIpcCloseMemHandle(opened));
  EXPECT_SAME(free_bytes() - before, kSize);
}

DRIVER_CHECK(the_handle_of_an_address_is_that_of_the_whole_allocation) {
  Owned memory(8 * kMiB, 9);
  Request inside = memory;
  EXPECT_OK(Owner::ask(inside, [](Request& r) {
    (void)cuMemsetD32_v2(r.address, 8, 1);
    (void)cuCtxSynchronize();
    return cuIpcGetMemHandle(&r.handle, r.address + 3 * kMiB);
  }));
  EXPECT_TRUE(is_same(inside.handle, memory.handle));
  CUdeviceptr opened = 0;
  EXPECT_OK(open(&opened, inside));
  EXPECT_SAME(word_at(opened), 8U);
  EXPECT_SAME(word_at(opened + 4), 9U);
  EXPECT_OK(cuIpcCloseMemHandle(opened));
}

DRIVER_CHECK(small_allocations_have_handles_and_addresses_of_their_own) {
  Owned one(1000, 11), two(1000, 12);
  EXPECT_OK(one.made());
  EXPECT_OK(two.made());
  EXPECT_TRUE(!is_same(one.handle, two.handle));
  CUdeviceptr first = 0, second = 0;
  EXPECT_OK(open(&first, one));
  EXPECT_OK(open(&second, two));
  EXPECT_SAME(word_at(first), 11U);
  EXPECT_SAME(word_at(second), 12U);
  EXPECT_OK(cuIpcCloseMemHandle(first));
  EXPECT_SAME(word_at(second), 12U);
  EXPECT_OK(cuIpcCloseMemHandle(second));
}

// How a real driver handles this is unknown.
SIMULATOR_CHECK(nothing_comes_to_lie_where_small_memory_was_freed_while_it_is_open) {
  Owned neighbour(1000, 11), memory(1000, 12);
  CUdeviceptr opened = 0;
  EXPECT_OK(open(&opened, memory));
  EXPECT_OK(memory.free());
  Owned next(1000, 13);
  EXPECT_OK(next.made());
  EXPECT_SAME(word_at(opened), 12U);
  EXPECT_OK(cuIpcCloseMemHandle(opened));
}

DRIVER_CHECK(only_linear_memory_of_the_process_itself_has_a_handle) {
  Owned memory(8 * kMiB, 9);
  CUipcMemHandle handle = {};
  CUdeviceptr opened = 0, of_pool = 0, mapped = 0;
  CUmemGenericAllocationHandle physical = 0;
  const auto prop = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  EXPECT_OK(open(&opened, memory));
  EXPECT_CODE(cuIpcGetMemHandle(&handle, opened), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuIpcCloseMemHandle(opened));
  EXPECT_OK(cuMemAllocAsync(&of_pool, kMiB, nullptr));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_CODE(cuIpcGetMemHandle(&handle, of_pool), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemFree_v2(of_pool));
  EXPECT_OK(cuMemAddressReserve(&mapped, 8 * kMiB, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&physical, 8 * kMiB, &prop, 0));
  EXPECT_OK(cuMemMap(mapped, 8 * kMiB, 0, physical, 0));
  EXPECT_OK(cuMemSetAccess(mapped, 8 * kMiB, &kReadWrite, 1));
  EXPECT_CODE(cuIpcGetMemHandle(&handle, mapped), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemUnmap(mapped, 8 * kMiB));
  EXPECT_OK(cuMemRelease(physical));
  EXPECT_OK(cuMemAddressFree(mapped, 8 * kMiB));
  EXPECT_CODE(cuIpcGetMemHandle(&handle, 0x1234), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr own = 0;
  EXPECT_OK(cuMemAlloc_v2(&own, 8 * kMiB));
  EXPECT_CODE(cuIpcGetMemHandle(nullptr, own), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemFree_v2(own));
}

DRIVER_CHECK(opened_memory_is_closed_by_its_address_and_not_freed) {
  Owned memory(8 * kMiB, 9);
  CUdeviceptr opened = 0;
  EXPECT_OK(open(&opened, memory));
  EXPECT_CODE(cuMemFree_v2(opened), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuIpcCloseMemHandle(opened + 4096), CUDA_ERROR_INVALID_VALUE);
  EXPECT_SAME(word_at(opened), 9U);
  EXPECT_OK(cuIpcCloseMemHandle(opened));
}

DRIVER_CHECK(a_handle_is_opened_with_its_one_flag) {
  Owned memory(8 * kMiB, 9);
  EXPECT_OK(memory.made());
  CUdeviceptr opened = 0;
  CUipcMemHandle garbage = {};
  std::memset(&garbage, 7, sizeof garbage);
  EXPECT_CODE(cuIpcOpenMemHandle_v2(&opened, memory.handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuIpcOpenMemHandle_v2(&opened, memory.handle, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuIpcOpenMemHandle_v2(nullptr, memory.handle, kLazyPeerAccess),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuIpcOpenMemHandle_v2(&opened, garbage, kLazyPeerAccess), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_CHECK(opened_memory_is_as_its_owner_s_but_cannot_be_shared) {
  Owned large(96 * kMiB, 9), small(1000, 11);
  for (Owned* memory : {&large, &small}) {
    EXPECT_OK(Owner::ask(*memory, [](Request& r) { return tell(r.told, r.address); }));
    expect_linear(memory->told, memory->address, memory->size);
    EXPECT_SAME(static_cast<int>(memory->told.ipc_capable), 1);
    CUdeviceptr opened = 0;
    Told told;
    EXPECT_OK(open(&opened, *memory));
    EXPECT_OK(tell(told, opened));
    expect_linear(told, opened, memory->size);
    EXPECT_SAME(static_cast<int>(told.ipc_capable), 0);
    EXPECT_OK(cuIpcCloseMemHandle(opened));
  }
}
