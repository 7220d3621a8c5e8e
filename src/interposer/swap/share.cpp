#include "interposer/swap/share.h"

#include "interposer/driver/own_calls.h"
#include "interposer/memory/imports.h"
#include "interposer/os/debug.h"
#include "interposer/os/socket.h"
#include "interposer/swap/allocations.h"
#include "interposer/swap/grants.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

// The longest that sending one whole answer may take: the other process may have stopped reading.
constexpr int64_t kShareSendMs = 2000;
constexpr int kMostAnswersAtOnce = 4;  // the daemon's orders wait for these answers

static_assert(sizeof(SharedHandle) <= sizeof(CUipcMemHandle), "it stands in for one");

bool can_share(const State& s, int slot) {
  const char* why = nullptr;
  if (swap_of(s).devices[slot].calls.traits == 0) {
    why = "this driver makes no memory that can be both moved and shared";
  } else if (swap_of(s).shares.key[0] == 0) {
    why = "the kernel gave no random numbers";
  } else if ((s.link.daemon_features & GPUROTA_FEATURE_OPEN) == 0) {
    why = "the daemon is older than this library";
  }
  if (why != nullptr) GPUROTA_DEBUG("cuIpcGetMemHandle is refused: %s", why);
  return why == nullptr;
}

// An allocation's number, which never changes while the allocation lives, so that all its handles
// are equal. 0: no memory for the entry.
uint64_t number_of(SwapShares& shares, uint64_t address, int slot) {
  Lock lock(shares.mutex);
  SharedMemory* memory = shares.memory.put(address);
  if (memory == nullptr) return 0;
  if (memory->number == 0) *memory = {++shares.last, static_cast<uint8_t>(slot)};
  shares.count.store(static_cast<uint32_t>(shares.memory.size()), std::memory_order_release);
  return memory->number;
}

bool next_question(SwapShares& shares, SharedQuestion* out) {
  Lock lock(shares.asked_mutex);
  if (shares.asked == 0) return false;
  *out = shares.questions[0];
  --shares.asked;
  memmove(&shares.questions[0], &shares.questions[1], shares.asked * sizeof(shares.questions[0]));
  return true;
}

// Makes descriptors of some blocks. With SwapShares::mutex held, so that a free of these blocks
// waits.
uint32_t describe(State& s, const gpurota_shared_name& name, gpurota_msg_shared* out,
                  Descriptors* fds) {
  SharedMemory* memory = swap_of(s).shares.memory.find(name.address);
  SwapFound found;
  SwapBacking backing{};
  if (memory == nullptr || memory->number != name.number || !swap_find(s, name.address, &found)) {
    return GPUROTA_REFUSED_LEASE;
  }
  SwapSpace& space = swap_of(s).devices[memory->slot].space;
  if (!space.find_backing(found.base, &backing)) return GPUROTA_REFUSED_LEASE;
  uint64_t handles[Descriptors::kMost];
  out->count = space.handles(found.base, out->first_block, Descriptors::kMost, handles);
  for (uint32_t i = 0; i < out->count; ++i) {
    int fd = -1;
    if (GPUROTA_OWN(cuMemExportToShareableHandle)(
            &fd, handles[i], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS) {
      return GPUROTA_REFUSED_BUSY;
    }
    sys_fcntl(fd, F_SETFD, FD_CLOEXEC);
    fds->add(fd);
  }
  if (out->count == 0) return GPUROTA_REFUSED_LEASE;
  out->blocks = backing.blocks;
  out->mapped_bytes = backing.size;
  out->block_bytes = kMostBlock;
  out->offset_bytes = found.base - backing.address;
  out->bytes = found.allocation.size;
  return GPUROTA_OK;
}

void answer(State& s, const SharedQuestion& question) {
  gpurota_msg_shared message{};
  const int64_t deadline = now_ms() + kShareSendMs;
  do {
    message.header = {GPUROTA_MSG_SHARED, sizeof(message), 0};
    message.first_block += message.count;
    Descriptors fds;
    {
      Lock lock(swap_of(s).shares.mutex);
      message.status = describe(s, question.name, &message, &fds);
    }
    if (message.status != GPUROTA_OK) {
      fds.close();
      message.count = 0;
    }
    ErrnoGuard guard;
    if (!send_packet(question.socket, &message, sizeof(message), deadline, &fds)) return;
  } while (message.status == GPUROTA_OK && message.first_block + message.count < message.blocks);
}

}  // namespace

bool swap_share(State& s, uint64_t address, CUipcMemHandle* out, CUresult* result) {
  SwapFound found;
  if (!swapping() || !swap_find(s, address, &found)) return false;
  const int slot = found.allocation.slot;
  *result = CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) return true;
  *result = CUDA_ERROR_NOT_SUPPORTED;
  if (!can_share(s, slot)) return true;
  *result = swap_wire(s, slot, found.base);
  if (*result != CUDA_SUCCESS) return true;
  SharedHandle handle{};
  memcpy(handle.beginning, kSharedHandle, sizeof(kSharedHandle));
  handle.name = {{swap_of(s).shares.key[0], swap_of(s).shares.key[1]},
                 found.base,
                 number_of(swap_of(s).shares, found.base, slot)};
  if (handle.name.number == 0) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    return true;
  }
  *out = {};
  memcpy(out->reserved, &handle, sizeof(handle));
  return true;
}

void swap_unshare(State& s, uint64_t address) {
  SwapShares& shares = swap_of(s).shares;
  if (shares.count.load(std::memory_order_acquire) == 0) return;
  SharedMemory gone{};
  Lock lock(shares.mutex);
  shares.memory.take(address, &gone);
  shares.count.store(static_cast<uint32_t>(shares.memory.size()), std::memory_order_release);
}

void take_open(State& s, const gpurota_shared_name& name, int fd) {
  SwapShares& shares = swap_of(s).shares;
  SharedQuestion question{name, {}};
  if (fd < 0 || !adopt_socket(fd, &question.socket)) return;
  {
    Lock lock(shares.asked_mutex);
    if (shares.asked < kSwapOpens) {
      shares.questions[shares.asked++] = question;
      swap_of(s).gate.poke();
      return;
    }
  }
  close_socket(&question.socket);  // the opener notices, and asks again
}

void answer_opens(State& s) {
  SharedQuestion question;
  for (int i = 0; i < kMostAnswersAtOnce; ++i) {
    if (!next_question(swap_of(s).shares, &question)) return;
    answer(s, question);
    close_socket(&question.socket);
  }
  swap_of(s).gate.poke();  // there may be more
}

}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr ptr) {
  GPUROTA_ENTER(cuIpcGetMemHandle, out, ptr);
  CUresult result = CUDA_SUCCESS;
  if (interposer::swap_share(interposer::state(), ptr, out, &result)) return result;
  result = real(out, ptr);
  if (result == CUDA_SUCCESS) {
    interposer::export_begins(interposer::state(), ptr,
                              interposer::key_of_bytes(out->reserved, sizeof(out->reserved)));
  }
  return result;
}
