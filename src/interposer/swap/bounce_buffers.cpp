#include "interposer/swap/bounce_buffers.h"

namespace gpurota::interposer {

bool PinnedPiece::have(const SwapCalls& calls, uint64_t bytes, CUresult* result) {
  *result = CUDA_SUCCESS;
  if (memory == nullptr) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    void* made = calls.map_host(calls.self, bytes, true);
    if (made == nullptr) return false;
    if (!calls.pin(calls.self, made, bytes)) {
      calls.unmap_host(calls.self, made, bytes);
      return false;
    }
    memory = static_cast<char*>(made);
    *result = CUDA_SUCCESS;
    return true;
  }
  if (lost_pin) {
    calls.unpin(calls.self, memory);
    calls.pin(calls.self, memory, bytes);  // without the pin, copies only take longer
    lost_pin = false;
  }
  if (in_doubt) *result = wait_for_copies(calls);
  in_doubt = *result != CUDA_SUCCESS;
  return !in_doubt;
}

uint32_t BounceBuffers::most(HostMemory& host) {
  const uint64_t share = host.pinned_limit() / 16 / kBytes;
  return share < kLeast ? kLeast : share < kCount ? static_cast<uint32_t>(share) : kCount;
}

bool BounceBuffers::take(const SwapCalls& calls, HostMemory& host, uint32_t count, uint8_t* taken,
                         CUresult* result) {
  *taken = 0;
  *result = CUDA_SUCCESS;
  if (static_cast<uint32_t>(__builtin_popcount(used_)) + count > most(host)) return false;
  for (uint32_t i = 0; i < kCount && count > 0; ++i) {
    if ((used_ >> i & 1) != 0) continue;
    const bool is_new = pieces_[i].memory == nullptr;
    if (!pieces_[i].have(calls, kBytes, result)) {
      give_back(taken, false);
      return false;
    }
    if (is_new) host.count_pinned(kBytes);
    used_ = static_cast<uint8_t>(used_ | 1u << i);
    *taken = static_cast<uint8_t>(*taken | 1u << i);
    --count;
  }
  return true;
}

void BounceBuffers::give_back(uint8_t* taken, bool in_doubt) {
  for (uint32_t i = 0; i < kCount; ++i) {
    if ((*taken >> i & 1) != 0 && in_doubt) pieces_[i].in_doubt = true;
  }
  used_ = static_cast<uint8_t>(used_ & ~*taken);
  *taken = 0;
}

char* BounceBuffers::memory(uint8_t taken, uint32_t number) const {
  for (uint32_t i = 0; i < kCount; ++i) {
    if ((taken >> i & 1) != 0 && number-- == 0) return pieces_[i].memory;
  }
  return nullptr;
}

void BounceBuffers::lose_pins() {
  for (PinnedPiece& piece : pieces_) piece.lost_pin = piece.memory != nullptr;
}

}  // namespace gpurota::interposer
