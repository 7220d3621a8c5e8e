// Room for allocations of an oversize lease: memory that its GPU has no room for lies in host
// memory, where GPUs use it in place. Such memory is never moved, so turns have nothing to do with
// it (docs/design/oversize.md).
#include "interposer/os/debug.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/grow.h"
#include "interposer/swap/swap_make.h"

namespace gpurota::interposer {
namespace {

// Other processes of the lease may take the room on the GPU between our two requests. So each round
// puts more of the allocation into host memory.
constexpr int kPasses = 8;

}  // namespace

Answer swap_get_room(int slot, uint64_t bytes, bool split, SwapRoom* out) {
  uint64_t hosted = 0;
  Answer answer = Answer::kNo;
  for (int round = 0; round < kPasses; ++round) {
    uint64_t to_host = 0;
    answer = swap_grow(slot, GPUROTA_SWAP_MOVABLE, bytes - hosted, &to_host);
    if (answer == Answer::kYes) {
      *out = {bytes - hosted, hosted};
      return Answer::kYes;
    }
    if (answer != Answer::kNo || to_host == 0 || to_host > bytes - hosted) break;
    if (!split) to_host = bytes;
    answer = swap_grow(slot, GPUROTA_SWAP_HOSTED, to_host, nullptr);
    if (answer != Answer::kYes) break;
    hosted += to_host;
    GPUROTA_DEBUG("slot %d: %llu bytes lie in host memory, since the GPU has no room for them",
                  slot, static_cast<unsigned long long>(to_host));
    if (hosted == bytes) {
      *out = {0, hosted};
      return Answer::kYes;
    }
  }
  swap_shrink(slot, 0, 0, 0, hosted);
  return answer == Answer::kYes ? Answer::kNo : answer;
}

}  // namespace gpurota::interposer
