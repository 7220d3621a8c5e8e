#include "interposer/account/refusal.h"

#include "interposer/account/link.h"
#include "interposer/account/link_calls.h"
#include "interposer/account/state.h"
#include "interposer/os/config.h"
#include "interposer/os/debug.h"
#include "interposer/os/notice.h"

#include <cstdio>

namespace gpurota::interposer {
namespace {

// "L5", or "this container", whose user knows no lease.
struct WhoText {
  char text[32];
};
WhoText who_text() {
  WhoText who{};
  const auto lease = static_cast<unsigned long long>(config().lease);
  snprintf(who.text, sizeof(who.text), lease != 0 ? "L%llu" : "this container", lease);
  return who;
}

// What is left of the limit is less. A context has no size that is known before.
void tell_of_limit(const State& s, int slot, const char* what) {
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  if (page == nullptr || slot < 0) return;
  const auto lease = static_cast<unsigned long long>(config().lease);
  const uint64_t limit = __atomic_load_n(&page->grant[slot].limit_bytes, __ATOMIC_RELAXED);
  if (s.swaps.load() != 0 && lease == 0) {
    notice_once(Notice::kRefused, "this container was refused %s", what);
  } else if (s.swaps.load() != 0) {
    notice_once(Notice::kRefused,
                "L%llu was refused %s ('gpurota explain L%llu' shows what there is)", lease, what,
                lease);
  } else if (lease == 0) {
    notice_once(Notice::kRefused,
                "this container was refused %s: more than is left of its %s (the manifest of its "
                "pod asks for that)",
                what, size_text(limit).text);
  } else {
    notice_once(Notice::kRefused,
                "L%llu was refused %s: more than is left of its %s (gpurota update L%llu --memory "
                "SIZE)",
                lease, what, size_text(limit).text, lease);
  }
}

void tell_of_refusal(const State& s, int slot, const char* what, Answer why) {
  const WhoText who = who_text();
  switch (why) {
    case Answer::kAway:
      return notice_once(Notice::kAway,
                         "%s was refused %s: no daemon answers at %s, and only it can give more "
                         "(gpurota doctor says why; a program with a /run of its own needs that "
                         "file in it)",
                         who.text, what, config().socket_path);
    case Answer::kCrowded:
      return notice_once(Notice::kCrowded,
                         "%s was refused %s: it, or its user, has as many processes on GPUs as the "
                         "site allows (max_tenants_per_lease, max_tenants_per_user): end one",
                         who.text, what);
    case Answer::kOver:
      return notice_once(Notice::kLeaseOver,
                         "%s was refused %s: its lease is over; reserve or run anew", who.text,
                         what);
    case Answer::kNoThread:
      return notice_once(Notice::kNoThread,
                         "%s was refused %s: no thread can be made for this process; raise its "
                         "user's limit (ulimit -u) or that of its control group (pids.max)",
                         who.text, what);
    default:
      return tell_of_limit(s, slot, what);
  }
}

CUresult count_refusal(int slot, uint64_t bytes, Answer why, const char* what) {
  State& s = state();
  if (slot >= 0) {
    s.slots[slot].refusals.fetch_add(1, std::memory_order_relaxed);
    s.mirror(slot);
  }
  tell_of_refusal(s, slot, what, why);
  GPUROTA_DEBUG("slot %d: an allocation of %llu bytes is refused: %s", slot,
                static_cast<unsigned long long>(bytes),
                why == Answer::kNo ? "the lease's limit" : "not for its limit");
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

CUresult refuse(int slot, uint64_t bytes, Answer why) {
  char what[64] = "GPU memory for a context";
  if (bytes != 0) snprintf(what, sizeof(what), "%s of GPU memory", size_text(bytes).text);
  return count_refusal(slot, bytes, why, what);
}

CUresult refuse_import(int slot, uint64_t bytes, Answer why) {
  char what[96];
  snprintf(what, sizeof(what), "%s of GPU memory of another process, which counts for both",
           size_text(bytes).text);
  return count_refusal(slot, bytes, why, what);
}

CUresult refuse_elsewhere() {
  State& s = state();
  if (!attached()) {
    Answer why = Answer::kAway;
    {
      ErrnoGuard guard;
      Lock lock(s.link.mutex);
      why = why_not(s);
    }
    return count_refusal(-1, 0, why, "GPU memory");
  }
  notice_once(Notice::kForeign,
              "%s has no part of the GPU that this program has chosen, so it gets no memory there: "
              "leave CUDA_VISIBLE_DEVICES as gpurota sets it",
              who_text().text);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace gpurota::interposer
