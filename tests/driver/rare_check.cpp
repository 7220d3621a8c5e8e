// Functions that few programs use: shared pools, batches of copies and of values, attributes of
// streams, user objects, arrays with deferred mapping, the range of mapped memory.
#include "tests/driver/api.h"
#include "tests/driver/device_memory.h"
#include "tests/driver/pass_descriptor.h"

#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Looked up on use, because an older driver may lack these functions.
#define NEED(variable, type, name)             \
  auto* const variable = function<type>(name); \
  if ((variable) == nullptr) return skip_check(std::string("no ") + (name))

using ExportPool = CUresult(void*, CUmemoryPool, CUmemAllocationHandleType, unsigned long long);
using ImportPool = CUresult(CUmemoryPool*, void*, CUmemAllocationHandleType, unsigned long long);
using ExportPointer = CUresult(CUmemPoolPtrExportData*, CUdeviceptr);
using ImportPointer = CUresult(CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*);
constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// The other process: reads a word of the imported memory and overwrites it. 0 on success.
int import_and_answer(int socket) {
  CUmemPoolPtrExportData data = {};
  const int fd = receive_with_descriptor(socket, &data, sizeof data);
  auto* const import_pool = function<ImportPool>("cuMemPoolImportFromShareableHandle");
  auto* const import_pointer = function<ImportPointer>("cuMemPoolImportPointer");
  if (fd < 0 || import_pool == nullptr || import_pointer == nullptr) return 1;
  const WithContext with;
  CUmemoryPool pool = nullptr;
  CUdeviceptr at = 0, own = 0;
  std::uint32_t word = 0;
  std::size_t before = 0, after = 0, total = 0;
  void* handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
  if (import_pool(&pool, handle, kDescriptor, 0) != CUDA_SUCCESS) return 2;
  (void)cuMemGetInfo_v2(&before, &total);
  if (import_pointer(&at, pool, &data) != CUDA_SUCCESS) return 3;
  (void)cuMemGetInfo_v2(&after, &total);
  if (before != after) return 4;
  if (cuMemcpyDtoH_v2(&word, at, 4) != CUDA_SUCCESS || word != 0x5eed0001U) return 5;
  if (cuMemsetD32_v2(at, 0x5eed0002U, 1) != CUDA_SUCCESS) return 6;
  if (cuMemAllocFromPoolAsync(&own, kMiB, pool, nullptr) == CUDA_SUCCESS) return 7;
  if (cuMemFreeAsync(at, nullptr) != CUDA_SUCCESS) return 8;
  return cuCtxSynchronize() == CUDA_SUCCESS ? 0 : 9;
}

}  // namespace

// The first check, because the other process must be made before the driver is initialised here.
DRIVER_CHECK(a_pool_is_shared_with_another_process_and_the_owner_pays) {
  NEED(export_pool, ExportPool, "cuMemPoolExportToShareableHandle");
  NEED(export_pointer, ExportPointer, "cuMemPoolExportPointer");
  int sockets[2] = {-1, -1};
  EXPECT_SAME(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(sockets[0]);
    ::_exit(import_and_answer(sockets[1]));
  }
  ::close(sockets[1]);
  int status = 0;
  {
    const WithContext with;
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = kDescriptor;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    CUdeviceptr other = 0, at = 0;
    int fd = -1;
    CUmemPoolPtrExportData data = {};
    EXPECT_OK(cuMemPoolCreate(&pool, &properties));
    EXPECT_OK(cuMemAllocFromPoolAsync(&other, 4096, pool, nullptr));
    EXPECT_OK(cuMemAllocFromPoolAsync(&at, kMiB, pool, nullptr));
    EXPECT_OK(cuMemsetD32_v2(at, 0x5eed0001U, 1));
    EXPECT_OK(export_pool(&fd, pool, kDescriptor, 0));
    EXPECT_OK(export_pointer(&data, at));
    EXPECT_TRUE(send_with_descriptor(sockets[0], &data, sizeof data, fd));
    EXPECT_SAME(::waitpid(child, &status, 0), child);
    std::uint32_t word = 0;
    EXPECT_OK(cuMemcpyDtoH_v2(&word, at, 4));
    EXPECT_SAME(word, 0x5eed0002U);
    EXPECT_OK(cuMemFreeAsync(at, nullptr));
    EXPECT_OK(cuMemFreeAsync(other, nullptr));
    EXPECT_OK(cuMemPoolDestroy(pool));
    ::close(fd);
  }
  ::close(sockets[0]);
  EXPECT_SAME(WIFEXITED(status) ? WEXITSTATUS(status) : 256, 0);
}

DRIVER_CHECK(values_of_a_batch_are_written_in_order_and_waited_for) {
  NEED(batch, CUresult(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned),
       "cuStreamBatchMemOp_v2");
  const WithContext with;
  CUdeviceptr at = 0;
  CUstream stream = nullptr;
  EXPECT_OK(cuMemAlloc_v2(&at, 64));
  EXPECT_OK(cuMemsetD32_v2(at, 0, 16));
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUstreamBatchMemOpParams list[4] = {};
  list[0].value = {CU_STREAM_MEM_OP_WRITE_VALUE_32, at, 7, 0, 0};
  list[1].value = {CU_STREAM_MEM_OP_WAIT_VALUE_32, at, 7, CU_STREAM_WAIT_VALUE_EQ, 0};
  list[2].value = {CU_STREAM_MEM_OP_WRITE_VALUE_64, at + 8, 0x1122334455667788U, 0, 0};
  list[3].value = {CU_STREAM_MEM_OP_WRITE_VALUE_32, at, 9, 0, 0};
  EXPECT_OK(batch(stream, 4, list, 0));
  EXPECT_OK(cuStreamSynchronize(stream));
  std::uint64_t words[2] = {};
  EXPECT_OK(cuMemcpyDtoH_v2(words, at, 16));
  EXPECT_SAME(words[0], 9U);
  EXPECT_SAME(words[1], 0x1122334455667788U);
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuMemFree_v2(at));
}

DRIVER_CHECK(a_batch_of_three_dimensional_copies_moves_boxes) {
  NEED(batch, CUresult(std::size_t, CUDA_MEMCPY3D_BATCH_OP*, unsigned long long, CUstream),
       "cuMemcpy3DBatchAsync_v2");
  const WithContext with;
  constexpr std::size_t kWidth = 64, kHeight = 8, kDepth = 4, kBytes = kWidth * kHeight * kDepth;
  CUdeviceptr from = 0, to = 0;
  CUstream stream = nullptr;
  std::vector<unsigned char> host(kBytes), back(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) host[i] = static_cast<unsigned char>(i * 7);
  EXPECT_OK(cuMemAlloc_v2(&from, kBytes));
  EXPECT_OK(cuMemAlloc_v2(&to, kBytes));
  EXPECT_OK(cuMemcpyHtoD_v2(from, host.data(), kBytes));
  EXPECT_OK(cuMemsetD8_v2(to, 0, kBytes));
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA_MEMCPY3D_BATCH_OP list[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {  // the left half, then the right one
    const CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    list[i].src.type = list[i].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    list[i].src.op.ptr = {from + i * kWidth / 2, kWidth, kHeight, where};
    list[i].dst.op.ptr = {to + i * kWidth / 2, kWidth, kHeight, where};
    list[i].extent.width = kWidth / 2;
    list[i].extent.height = kHeight;
    list[i].extent.depth = kDepth;
    list[i].srcAccessOrder = 1;  // in stream order
  }
  EXPECT_OK(batch(1, list, 0, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuMemcpyDtoH_v2(back.data(), to, kBytes));
  EXPECT_TRUE(back[kWidth + 5] == host[kWidth + 5] && back[kWidth + 40] == 0);
  EXPECT_OK(batch(2, list, 0, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuMemcpyDtoH_v2(back.data(), to, kBytes));
  EXPECT_TRUE(back == host);
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuMemFree_v2(from));
  EXPECT_OK(cuMemFree_v2(to));
}

DRIVER_CHECK(attributes_of_a_stream_are_kept_and_copied) {
  using Set = CUresult(CUstream, CUlaunchAttributeID, const CUlaunchAttributeValue*);
  using Get = CUresult(CUstream, CUlaunchAttributeID, CUlaunchAttributeValue*);
  NEED(set, Set, "cuStreamSetAttribute");
  NEED(get, Get, "cuStreamGetAttribute");
  NEED(copy, CUresult(CUstream, CUstream), "cuStreamCopyAttributes");
  const WithContext with;
  CUstream one = nullptr, two = nullptr;
  EXPECT_OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
  CUlaunchAttributeValue value = {};
  value.cooperative = 3;  // CU_SYNC_POLICY_YIELD
  EXPECT_OK(set(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT_OK(copy(two, one));
  value = {};
  EXPECT_OK(get(two, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT_SAME(value.cooperative, 3);
  EXPECT_CODE(get(two, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuStreamDestroy_v2(one));
  EXPECT_OK(cuStreamDestroy_v2(two));
}

DRIVER_CHECK(a_user_object_lives_as_long_as_graphs_refer_to_it) {
  using Retain = CUresult(CUgraph, CUuserObject, unsigned, unsigned);
  NEED(create, CUresult(CUuserObject*, void*, CUhostFn, unsigned, unsigned), "cuUserObjectCreate");
  NEED(release, CUresult(CUuserObject, unsigned), "cuUserObjectRelease");
  NEED(retain, Retain, "cuGraphRetainUserObject");
  const WithContext with;
  static int destroyed = 0;
  CUuserObject object = nullptr;
  CUgraph graph = nullptr, twin = nullptr;
  EXPECT_OK(create(
      &object, &destroyed, [](void* p) { ++*static_cast<int*>(p); }, 2,
      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_OK(cuGraphCreate(&graph, 0));
  EXPECT_OK(retain(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_OK(cuGraphClone(&twin, graph));
  EXPECT_OK(release(object, 1));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_SAME(destroyed, 0);
  EXPECT_OK(cuGraphDestroy(twin));
  EXPECT_OK(cuCtxSynchronize());
  // The callback runs on one of the driver's threads.
  for (int i = 0; i < 2000 && destroyed == 0; ++i) ::usleep(1000);
  EXPECT_SAME(destroyed, 1);
}

// The memory that an array needs is queried while the array has none. The same array with memory
// takes that much.
DRIVER_CHECK(an_array_with_deferred_mapping_tells_what_it_would_need) {
  using Needs = CUresult(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray, CUdevice);
  NEED(create, CUresult(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*), "cuArray3DCreate_v2");
  NEED(needs, Needs, "cuArrayGetMemoryRequirements");
  const WithContext with;
  std::size_t before = 0, after = 0, total = 0;
  CUDA_ARRAY3D_DESCRIPTOR shape = {
      4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_DEFERRED_MAPPING};
  CUarray array = nullptr;
  CUDA_ARRAY_MEMORY_REQUIREMENTS found = {};
  EXPECT_OK(cuMemGetInfo_v2(&before, &total));
  EXPECT_OK(create(&array, &shape));
  EXPECT_OK(cuMemGetInfo_v2(&after, &total));
  EXPECT_SAME(before, after);
  EXPECT_OK(needs(&found, array, 0));
  EXPECT_OK(cuArrayDestroy(array));
  shape.Flags = 0;
  EXPECT_OK(create(&array, &shape));
  EXPECT_CODE(needs(&found, array, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemGetInfo_v2(&after, &total));
  EXPECT_SAME(before - after, (found.size + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB));
  EXPECT_OK(cuArrayDestroy(array));
  EXPECT_OK(cuMemGetInfo_v2(&after, &total));
  EXPECT_SAME(before, after);
}

DRIVER_CHECK(the_range_of_mapped_memory_is_its_whole_reservation) {
  const WithContext with;
  constexpr std::size_t kSize = 8 * kMiB;
  const auto prop = device_memory();
  CUdeviceptr reserved = 0, start = 0;
  std::size_t size = 0;
  EXPECT_OK(cuMemAddressReserve(&reserved, 2 * kSize, 0, 0, 0));
  for (const CUdeviceptr at : {reserved, reserved + kSize}) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
    EXPECT_OK(cuMemMap(at, kSize, 0, handle, 0));
    EXPECT_OK(cuMemRelease(handle));
  }
  EXPECT_OK(cuMemSetAccess(reserved, 2 * kSize, &kReadWrite, 1));
  const CUdeviceptr second = reserved + kSize;
  EXPECT_OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, second));
  EXPECT_OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, second));
  EXPECT_SAME(start, reserved);
  EXPECT_SAME(size, 2 * kSize);
  EXPECT_OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, second));
  EXPECT_OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, second));
  EXPECT_SAME(start, second);
  EXPECT_SAME(size, kSize);
  EXPECT_OK(cuMemUnmap(reserved, 2 * kSize));
  EXPECT_OK(cuMemAddressFree(reserved, 2 * kSize));
}
