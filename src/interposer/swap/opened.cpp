#include "interposer/swap/opened.h"

#include "interposer/account/device.h"
#include "interposer/account/link.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gated.h"
#include "interposer/gate/streams.h"
#include "interposer/memory/imports.h"
#include "interposer/os/debug.h"
#include "interposer/swap/devices.h"
#include "interposer/swap/share.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr int64_t kOwnerPatienceMs =
    20000;  // an owner that is moving memory answers only after the move

bool same(const gpurota_shared_name& a, const gpurota_shared_name& b) {
  return memcmp(&a, &b, sizeof(a)) == 0;
}

// Whether a message about the next blocks fits what came before it: `done` bytes in `blocks`
// blocks.
bool is_sane(const gpurota_msg_shared& m, const Descriptors& fds, uint64_t done, uint32_t blocks) {
  const uint64_t mapped = m.mapped_bytes;
  if (mapped == 0 || mapped > kSaneBytes || done >= mapped || m.block_bytes == 0) return false;
  if ((mapped | m.block_bytes) % kPageBytes != 0 || m.block_bytes > kSaneBytes) return false;
  if (m.offset_bytes > mapped || m.bytes > mapped - m.offset_bytes) return false;
  const uint64_t left = (mapped - done + m.block_bytes - 1) / m.block_bytes;
  return m.first_block == blocks && m.count != 0 && m.count == fds.count() && m.count <= left;
}

CUresult reserve(uint64_t size, uint64_t* address) {
  CUdeviceptr at = 0;
  const CUresult result = GPUROTA_OWN(cuMemAddressReserve)(&at, size, 0, 0, 0);
  *address = at;
  return result;
}

// Maps a block. The mapping keeps the memory alive, so the handle is released.
CUresult map_block(int fd, uint64_t address, uint64_t size) {
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = ask_obstacle(kParkImports, [&] {
    return GPUROTA_OWN(cuMemImportFromShareableHandle)(
        &handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  });
  if (result != CUDA_SUCCESS) return result;
  result = GPUROTA_OWN(cuMemMap)(address, size, 0, handle, 0);
  GPUROTA_OWN(cuMemRelease)(handle);
  return result;
}

// Maps the blocks of an answer, and adds the bytes that could be mapped to `done`.
CUresult map_blocks(const gpurota_msg_shared& answer, const Descriptors& fds, uint64_t mapped,
                    uint64_t* done) {
  for (uint32_t i = 0; i < fds.count(); ++i) {
    const uint64_t left = answer.mapped_bytes - *done;
    const uint64_t size = left < answer.block_bytes ? left : answer.block_bytes;
    const CUresult result = map_block(fds[i], mapped + *done, size);
    if (result != CUDA_SUCCESS) return result;
    *done += size;
  }
  return CUDA_SUCCESS;
}

// False: the driver could not unmap the memory now.
bool unmap(uint64_t address, uint64_t mapped_size, uint64_t reserved_size) {
  if (mapped_size != 0 && GPUROTA_OWN(cuMemUnmap)(address, mapped_size) != CUDA_SUCCESS) {
    return false;
  }
  GPUROTA_OWN(cuMemAddressFree)(address, reserved_size);
  return true;
}

bool unmap(const Opened& opened) {
  if (!unmap(opened.mapped, opened.mapped_size, opened.mapped_size)) return false;
  end_import(opened.charge);
  return true;
}

// The GPU that the memory is on; if the driver does not say, the GPU that the memory is opened for.
int32_t device_of(uint64_t address) {
  int ordinal = 0;
  if (GPUROTA_OWN(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) ==
          CUDA_SUCCESS &&
      ordinal >= 0) {
    return ordinal;
  }
  GPUROTA_OWN(cuCtxGetDevice)(&ordinal);
  return ordinal;
}

CUresult refuse_to_open(const gpurota_shared_name& name, CUresult result) {
  GPUROTA_DEBUG("memory at %llx of another process cannot be opened: %s",
                static_cast<unsigned long long>(name.address),
                result == CUDA_ERROR_NOT_PERMITTED
                    ? "it is not there any more, or another user's"
                    : "its process or the daemon does not answer, or not with what can be mapped");
  return result;
}

// Connects to the owner, and retries until the deadline: the owner may be moving its memory, and
// the owner or the daemon may be away for a moment.
CUresult meet_owner(const gpurota_shared_name& name, int64_t deadline, Socket* out,
                    bool* own_lease) {
  ErrnoGuard guard;
  for (;;) {
    const Answer said = ask_to_open(name, out, own_lease);
    if (said == Answer::kYes) return CUDA_SUCCESS;
    if (said == Answer::kNo) return CUDA_ERROR_NOT_PERMITTED;
    if (now_ms() >= deadline) return CUDA_ERROR_MAP_FAILED;
    sleep_ms(kRetryMs);
  }
}

// Maps the blocks that arrive. `lost`: the owner is gone, or cannot answer now.
CUresult receive_blocks(const Socket& owner, int64_t deadline, Opened* out, uint64_t* done,
                        bool* lost) {
  uint32_t blocks = 0;
  do {
    gpurota_msg_shared message{};
    Descriptors fds;
    const long n = receive_packet(owner, &message, sizeof(message), &fds, deadline);
    *lost = n == kEndOfFile || n == kBroken;
    if (n < static_cast<long>(sizeof(message))) return CUDA_ERROR_MAP_FAILED;
    *lost = message.status == GPUROTA_REFUSED_BUSY;
    if (message.status == GPUROTA_REFUSED_LEASE) return CUDA_ERROR_NOT_PERMITTED;
    if (message.status != GPUROTA_OK || !is_sane(message, fds, *done, blocks)) {
      return CUDA_ERROR_MAP_FAILED;
    }
    if (*done == 0) {
      const CUresult result = reserve(message.mapped_bytes, &out->mapped);
      if (result != CUDA_SUCCESS) return result;
      out->mapped_size = message.mapped_bytes;
      out->address = out->mapped + message.offset_bytes;
      out->size = message.bytes;
    } else if (message.mapped_bytes != out->mapped_size) {
      return CUDA_ERROR_MAP_FAILED;
    }
    const CUresult result = map_blocks(message, fds, out->mapped, done);
    if (result != CUDA_SUCCESS) return result;
    blocks += message.count;
  } while (*done < out->mapped_size);
  return CUDA_SUCCESS;
}

// One attempt to open the memory.
CUresult meet_and_receive(const gpurota_shared_name& name, int64_t deadline, Opened* out,
                          bool* own_lease, bool* lost) {
  Socket owner;
  *lost = false;
  CUresult result = meet_owner(name, deadline, &owner, own_lease);
  if (result != CUDA_SUCCESS) return result;
  ErrnoGuard guard;
  uint64_t done = 0;
  result = receive_blocks(owner, deadline, out, &done, lost);
  close_socket(&owner);
  if (result != CUDA_SUCCESS && out->mapped_size != 0) {
    unmap(out->mapped, done, out->mapped_size);
    out->mapped_size = 0;
  }
  return result;
}

CUresult map_shared(State& s, const gpurota_shared_name& name, Opened* out) {
  const int64_t deadline = now_ms() + kOwnerPatienceMs;
  CUresult result = CUDA_SUCCESS;
  bool own_lease = false;
  for (bool lost = true; lost;) {
    result = meet_and_receive(name, deadline, out, &own_lease, &lost);
    if (!lost || now_ms() >= deadline) break;
    ErrnoGuard guard;
    sleep_ms(kRetryMs);
  }
  if (result != CUDA_SUCCESS) return refuse_to_open(name, result);
  out->device = device_of(out->mapped);
  result = give_all_access(s, out->device, out->mapped, out->mapped_size);
  const int slot = own_lease ? -1 : slot_of_device(out->device);
  out->charge.slot = static_cast<int16_t>(slot);
  if (result == CUDA_SUCCESS && slot >= 0 && !charge_import(&out->charge, out->mapped_size)) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result == CUDA_SUCCESS) return result;
  unmap(*out);
  return refuse_to_open(name, result);
}

// With OpenedMemory::mutex held. True: the memory is open already, and `result` is the answer to
// the program.
bool open_again(OpenedMemory& memory, const gpurota_shared_name& name, uint32_t context,
                CUdeviceptr* out, CUresult* result) {
  for (uint32_t i = 1; i < memory.table.end(); ++i) {
    if (!memory.table.is_used(i) || memory.table[i].count == 0) continue;
    if (!same(memory.table[i].name, name)) continue;
    Opened& opened = memory.table[i];
    *result = opened.context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (*result == CUDA_SUCCESS) {
      ++opened.count;
      *out = opened.address;
    }
    return true;
  }
  return false;
}

// With OpenedMemory::mutex held. Removes the memory's addresses from the table.
void unlist(OpenedMemory& memory, const Opened& opened) {
  uint32_t gone = 0;
  for (uint64_t at = 0; at < opened.mapped_size; at += kPageBytes) {
    memory.pages.take((opened.mapped + at) / kPageBytes, &gone);
  }
}

// With OpenedMemory::mutex held. Adds the memory's addresses to the table; false: no memory for
// that.
bool list(OpenedMemory& memory, const Opened& opened, uint32_t index) {
  for (uint64_t at = 0; at < opened.mapped_size; at += kPageBytes) {
    uint32_t* page = memory.pages.put((opened.mapped + at) / kPageBytes);
    if (page == nullptr) {
      unlist(memory, opened);
      return false;
    }
    *page = index;
  }
  return true;
}

// With OpenedMemory::mutex held. 0: no memory for the entry.
uint32_t keep(OpenedMemory& memory, const Opened& opened) {
  const uint32_t index = memory.table.take();
  if (index == 0) return 0;
  memory.table[index] = opened;
  memory.count.fetch_add(1, std::memory_order_release);
  return index;
}

// With OpenedMemory::mutex held. The memory's addresses must not be in the table any more.
void forget(OpenedMemory& memory, uint32_t index) {
  memory.table.give_back(index);
  memory.count.fetch_sub(1, std::memory_order_release);
}

// With OpenedMemory::mutex held. False: no memory for the entry.
bool note(OpenedMemory& memory, const Opened& opened) {
  const uint32_t index = keep(memory, opened);
  if (index == 0) return false;
  if (list(memory, opened, index)) return true;
  forget(memory, index);
  return false;
}

// With OpenedMemory::mutex held; 0: nothing of ours.
uint32_t index_of(OpenedMemory& memory, uint64_t address) {
  const uint32_t* index = memory.pages.find(address / kPageBytes);
  return index != nullptr ? *index : 0;
}

bool is_shared_handle(const CUipcMemHandle& handle, SharedHandle* out) {
  memcpy(out, handle.reserved, sizeof(*out));
  return memcmp(out->beginning, kSharedHandle, sizeof(kSharedHandle)) == 0;
}

// Waits for work that may use the memory, as the driver does before it frees memory. False: a
// capture is under way, which waiting could end.
bool wait_for_users(State& s, const Opened& opened) {
  if (swapping())
    return swap_of(s).drained.load(std::memory_order_acquire) != 0 || wait_for_work(s);
  const Lock lock(s.streams.mutex);
  const NothingCaptures nothing(s, lock);
  const InContext in(context_of_serial(opened.context));
  return GPUROTA_OWN(cuCtxSynchronize)(nothing) == CUDA_SUCCESS;
}

// Takes the first memory that nobody has open any more out of the table.
bool take_closed(OpenedMemory& memory, Opened* out) {
  Lock lock(memory.mutex);
  for (uint32_t i = 1; i < memory.table.end(); ++i) {
    if (!memory.table.is_used(i) || memory.table[i].count != 0) continue;
    *out = memory.table[i];
    forget(memory, i);
    return true;
  }
  return false;
}

// Memory that is closed is unmapped once nothing uses it: at once, or when something is opened or
// closed later. If closed memory cannot be recorded for later, it stays mapped.
void end_closed(State& s) {
  OpenedMemory& memory = swap_of(s).opened;
  Opened opened{};
  while (memory.count.load(std::memory_order_acquire) != 0 && take_closed(memory, &opened)) {
    if (wait_for_users(s, opened) && unmap(opened)) continue;
    Lock lock(memory.mutex);
    keep(memory, opened);
    return;
  }
}

CUresult open_shared(State& s, const gpurota_shared_name& name, CUdeviceptr* out) {
  OpenedMemory& memory = swap_of(s).opened;
  const Place place = current_place();
  const uint64_t(&own)[2] = swap_of(s).shares.key;
  if (place.kind == Place::Kind::kNoContext ||
      (own[0] == name.owner[0] && own[1] == name.owner[1])) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (place.context == 0) return CUDA_ERROR_OUT_OF_MEMORY;  // more contexts than we keep track of
  end_closed(s);
  CUresult result = CUDA_SUCCESS;
  {
    Lock lock(memory.mutex);
    if (open_again(memory, name, place.context, out, &result)) return result;
  }
  Opened opened{};
  opened.name = name;
  opened.context = place.context;
  opened.count = 1;
  result = map_shared(s, name, &opened);
  if (result != CUDA_SUCCESS) return result;
  bool noted = false;
  {
    // Another thread may have done the same meanwhile, or have ended the context.
    Lock lock(memory.mutex);
    if (!open_again(memory, name, place.context, out, &result)) {
      noted = context_of_serial(place.context) != nullptr && note(memory, opened);
      result = noted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  if (noted) {
    *out = opened.address;
  } else {
    unmap(opened);
  }
  return result;
}

// False: the memory was not opened by a handle of ours.
bool close_opened(State& s, uint64_t address, CUresult* result) {
  OpenedMemory& memory = swap_of(s).opened;
  if (memory.count.load(std::memory_order_acquire) == 0) return false;
  {
    Lock lock(memory.mutex);
    const uint32_t index = index_of(memory, address);
    if (index == 0) return false;
    Opened& found = memory.table[index];
    *result = found.address == address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (*result != CUDA_SUCCESS || --found.count != 0) return true;
    unlist(memory, found);
  }
  end_closed(s);
  return true;
}

}  // namespace

bool find_opened(State& s, uint64_t address, Opened* out) {
  OpenedMemory& memory = swap_of(s).opened;
  if (memory.count.load(std::memory_order_acquire) == 0) return false;
  Lock lock(memory.mutex);
  const uint32_t index = index_of(memory, address);
  if (index == 0) return false;
  *out = memory.table[index];
  return address - out->address < out->size;
}

void end_opened_in(State& s, uint32_t serial) {
  OpenedMemory& memory = swap_of(s).opened;
  for (uint32_t i = 1; memory.count.load(std::memory_order_acquire) != 0; ++i) {
    Opened opened{};
    {
      Lock lock(memory.mutex);
      if (i >= memory.table.end()) return;
      if (!memory.table.is_used(i) || memory.table[i].context != serial) continue;
      opened = memory.table[i];
      unlist(memory, opened);
      forget(memory, i);
    }
    unmap(opened);
  }
}

}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

namespace gpurota::interposer {
namespace {

// The driver has opened the memory. Memory that cannot be charged is closed again, which does not
// affect its owner.
CUresult opened_by_driver(CUdeviceptr address, const CUipcMemHandle& handle) {
  State& s = state();
  Import import{};
  import.key = key_of_bytes(handle.reserved, sizeof(handle.reserved));
  import.slot = static_cast<int16_t>(slot_of_device(device_of(address)));
  import.context = current_place().context;
  if (import.slot < 0) return CUDA_SUCCESS;  // on a peer GPU that is not of the lease
  CUdeviceptr base = 0;
  size_t size = 0;
  GPUROTA_OWN(cuMemGetAddressRange_v2)(&base, &size, address);
  const CUresult result = import_opened(s, address, import, size);
  if (result != CUDA_SUCCESS) GPUROTA_OWN(cuIpcCloseMemHandle)(address);
  return result;
}

}  // namespace
}  // namespace gpurota::interposer

namespace {

template <typename Real>
CUresult open_handle(CUdeviceptr* out, const CUipcMemHandle& handle, unsigned int flags,
                     Real real) {
  interposer::SharedHandle ours;
  if (!interposer::is_shared_handle(handle, &ours)) {
    if (out == nullptr) return real(out);
    CUdeviceptr opened = 0;
    CUresult result = real(&opened);
    if (result == CUDA_SUCCESS) result = interposer::opened_by_driver(opened, handle);
    if (result == CUDA_SUCCESS) *out = opened;
    return result;
  }
  if (out == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  return interposer::open_shared(interposer::state(), ours.name, out);
}

}  // namespace

CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  GPUROTA_ENTER(cuIpcOpenMemHandle, out, handle, flags);
  return open_handle(out, handle, flags, [&](CUdeviceptr* to) {
    return interposer::ask_obstacle(interposer::kParkImports,
                                    [&] { return real(to, handle, flags); });
  });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  GPUROTA_ENTER(cuIpcOpenMemHandle_v2, out, handle, flags);
  return open_handle(out, handle, flags, [&](CUdeviceptr* to) {
    return interposer::ask_obstacle(interposer::kParkImports,
                                    [&] { return real(to, handle, flags); });
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr) {
  GPUROTA_ENTER(cuIpcCloseMemHandle, ptr);
  CUresult result = CUDA_SUCCESS;
  if (interposer::close_opened(interposer::state(), ptr, &result)) return result;
  return interposer::close_counted(interposer::state(), ptr, [=] { return real(ptr); });
}
