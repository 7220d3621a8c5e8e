// Lists the processes on a GPU of the lease, as NVML does, but only those of the lease. The daemon
// says which processes are of the lease. If the daemon cannot tell, a process sees only itself.
#include "interposer/account/link.h"
#include "interposer/account/nvml.h"
#include "interposer/os/sys.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr unsigned kUsual = 64;  // lists up to this length need no mapped memory
// The most entries for which memory is mapped: a longer list fails with NVML_ERROR_MEMORY. A
// machine may have more pids (pid_max: up to 4194304), but the list has only processes that use
// the GPU.
constexpr unsigned kMost = 65536;

bool among(const int32_t* pids, int count, unsigned pid) {
  for (int i = 0; i < count; ++i) {
    if (static_cast<unsigned>(pids[i]) == pid) return true;
  }
  return false;
}

// Moves the lease's processes to the front of `list`, and returns their number.
template <typename Info>
unsigned keep_ours(Info* list, unsigned count) {
  int32_t few[kUsual];
  const size_t bytes = count * sizeof(int32_t);
  auto* pids = count <= kUsual ? few : static_cast<int32_t*>(map_memory(bytes, 0));
  if (pids == nullptr) return 0;
  for (unsigned i = 0; i < count; ++i) pids[i] = static_cast<int32_t>(list[i].pid);
  int members = keep_members(pids, static_cast<int>(count));
  if (members < 0) {
    pids[0] = sys_getpid();
    members = count > 0 ? 1 : 0;
  }
  unsigned kept = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (among(pids, members, list[i].pid)) list[kept++] = list[i];
  }
  if (pids != few) ::munmap(pids, bytes);
  return kept;
}

// NVML's whole list. `room`: entries that fit; a long list is in mapped memory.
template <typename Info>
struct List {
  Info few[kUsual];
  Info* entries = few;
  unsigned room = kUsual;
  unsigned count = 0;

  List() = default;
  ~List() {
    if (entries != few) ::munmap(entries, room * sizeof(Info));
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  bool grow(unsigned wanted) {
    if (wanted > kMost) return false;
    void* memory = map_memory(wanted * sizeof(Info), 0);
    if (memory == nullptr) return false;
    if (entries != few) ::munmap(entries, room * sizeof(Info));
    entries = static_cast<Info*>(memory);
    room = wanted;
    return true;
  }

  // Tries again with more room: processes may start between two calls.
  template <typename Real>
  nvmlReturn_t read(Real real, nvmlDevice_t device) {
    for (;;) {
      count = room;
      const nvmlReturn_t result = real(device, &count, entries);
      if (result != NVML_ERROR_INSUFFICIENT_SIZE) return result;
      if (!grow(count > room ? count + kUsual : room * 2)) return NVML_ERROR_MEMORY;
    }
  }
};

// Answers as NVML does: if there is too little room, the number of processes and INSUFFICIENT_SIZE.
template <typename Real, typename Info>
nvmlReturn_t list_ours(Real real, nvmlDevice_t device, unsigned* count, Info* out) {
  if (count == nullptr || (out == nullptr && *count > 0)) return real(device, count, out);
  ErrnoGuard guard;
  if (slot_of_nvml_device(device) < 0) return real(device, count, out);
  List<Info> list;
  const nvmlReturn_t result = list.read(real, device);
  if (result != NVML_SUCCESS) return result;
  const unsigned kept = list.count > 0 ? keep_ours(list.entries, list.count) : 0;
  const unsigned room = *count;
  *count = kept;
  if (kept > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (kept > 0) memcpy(out, list.entries, kept * sizeof(Info));
  return NVML_SUCCESS;
}

}  // namespace
}  // namespace gpurota::interposer

using gpurota::interposer::list_ours;

#define GPUROTA_NVML_LIST(name, Info)                                  \
  nvmlReturn_t name(nvmlDevice_t device, unsigned* count, Info* out) { \
    GPUROTA_NVML_ENTER(name, device, count, out);                      \
    return list_ours(real, device, count, out);                        \
  }
GPUROTA_NVML_LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
GPUROTA_NVML_LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
GPUROTA_NVML_LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)
GPUROTA_NVML_LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
GPUROTA_NVML_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
GPUROTA_NVML_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_v2_t)
GPUROTA_NVML_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
GPUROTA_NVML_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
GPUROTA_NVML_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_v1_t* list) {
  GPUROTA_NVML_ENTER(nvmlDeviceGetRunningProcessDetailList, device, list);
  const nvmlReturn_t result = real(device, list);
  if (result != NVML_SUCCESS || list == nullptr || list->procArray == nullptr ||
      list->version != NVML_PROCESS_DETAIL_LIST_V1 || list->numProcArrayEntries == 0) {
    return result;
  }
  gpurota::interposer::ErrnoGuard guard;
  if (gpurota::interposer::slot_of_nvml_device(device) < 0) return result;
  list->numProcArrayEntries =
      gpurota::interposer::keep_ours(list->procArray, list->numProcArrayEntries);
  return result;
}
