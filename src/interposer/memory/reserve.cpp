// A program asks for N bytes. From top to bottom:
//
//   1. reserve() takes the bytes from the headroom: take(). Mostly nothing else is needed.
//   2. If the headroom is too small, the daemon is asked: grow(), which sends GROW. After a refusal
//      idle pools release memory. The refusal is believed only if nothing was put back meanwhile:
//      ask_daemon().
//   3. If the answer is still no, the request waits for calls under way that took more than they
//      will keep: outlast(), Flight.
//   4. If the driver then refuses, the bytes are put back, as they are when memory is freed: put().
//   5. If the bytes cannot be had, the program is refused, with the reason: refuse().
//
// granted = charged + headroom. The page shows the charge before the driver takes the memory: a
// measurement of the daemon's in between must not find more memory than the page says is in use.
#include "interposer/memory/reserve.h"

#include "interposer/account/headroom.h"
#include "interposer/account/link.h"
#include "interposer/account/link_calls.h"
#include "interposer/account/swap_table.h"
#include "interposer/memory/pool_charge.h"
#include "interposer/os/config.h"
#include "interposer/os/debug.h"
#include "interposer/os/notice.h"

#include <cstdio>

namespace gpurota::interposer {
namespace {

// A refusal takes at most this long, with all questions and the wait for calls of other threads,
// which may be off their processors for a while.
constexpr int kPatience = 1000;  // ms
// The most questions for one request. After the first, a question is asked only because something
// was freed during the question before.
constexpr int kMostQuestions = 64;
// The least that is asked for, so that small allocations rarely ask.
constexpr uint64_t kGrantPiece = uint64_t{64} << 20;
// A free that leaves more headroom than this gives the excess back: a program that is stopped or
// stuck cannot be asked for it.
constexpr int64_t kExcess = int64_t{1} << 30;

// While a Refusal exists, bytes put back are counted in Slot::freed. A thread that puts bytes back
// checks for a Refusal after it has changed the headroom, and a Refusal reads the headroom after it
// has begun: one of the two has seen the other.
class Refusal {
 public:
  explicit Refusal(Slot& slot) : slot_(slot) { slot_.asking.fetch_add(1); }
  ~Refusal() { slot_.asking.fetch_sub(1); }
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;

 private:
  Slot& slot_;
};

// Whether `bytes` are more than the lease may have at all. False if the limit is not known.
bool beyond_limit(const State& s, int slot, int64_t bytes) {
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const uint64_t limit = __atomic_load_n(&page->grant[slot].limit_bytes, __ATOMIC_RELAXED);
  return limit != 0 && bytes > 0 && static_cast<uint64_t>(bytes) > limit;
}

// A refusal is believed only if nothing was put back since before the daemon was asked. Otherwise
// another thread's question may have returned to the daemon memory that this thread's pools
// released. `seen`: Slot::freed before the last question.
Answer ask_daemon(State& s, int slot, int64_t bytes, int64_t deadline, uint32_t* seen) {
  const std::atomic<uint32_t>& freed = s.slots[slot].freed;
  for (int i = 1;; ++i) {
    *seen = freed.load();
    const Answer answer = grow(slot, GPUROTA_GROW_MEMORY, static_cast<uint64_t>(bytes));
    if (answer == Answer::kYes) return answer;
    if (beyond_limit(s, slot, bytes)) return Answer::kNo;  // waiting does not help
    if (i == 1) reclaim_pools(slot);
    if (take(s, slot, bytes)) return Answer::kYes;
    if (answer != Answer::kNo || freed.load() == *seen) return answer;
    if (i == kMostQuestions || now_ms() >= deadline) return answer;
  }
}

// Waits for the flights that began before this refusal, as they took more than they will keep.
// `refused`: the daemon's last answer.
Answer outlast(State& s, int slot, int64_t bytes, int64_t deadline, Flight* own, uint32_t seen,
               Answer refused) {
  Slot& account = s.slots[slot];
  const uint64_t last = last_ticket(account);
  if (own != nullptr) own->wait_begins();
  bool taken = false;
  const int64_t patience = deadline - now_ms();
  for (int64_t i = 0; i < patience && !taken && under_way(account, last); ++i) {
    sleep_ms(1);
    taken = take(s, slot, bytes);
  }
  if (own != nullptr) own->wait_ends();
  if (taken) return Answer::kYes;
  return account.freed.load() != seen ? ask_daemon(s, slot, bytes, deadline, &seen) : refused;
}

}  // namespace

Answer reserve(int slot, int64_t bytes, Flight* own) {
  State& s = state();
  Answer answer = take(s, slot, bytes) ? Answer::kYes : Answer::kNo;
  if (answer != Answer::kYes) {
    ErrnoGuard guard;
    const Refusal refusal(s.slots[slot]);
    const int64_t deadline = now_ms() + kPatience;
    uint32_t seen = 0;
    answer = ask_daemon(s, slot, bytes, deadline, &seen);
    if (answer != Answer::kYes && !beyond_limit(s, slot, bytes)) {
      answer = outlast(s, slot, bytes, deadline, own, seen, answer);
    }
  }
  if (answer == Answer::kYes) s.mirror(slot);
  return answer;
}

// seq_cst: a thread that sees too little headroom must also see the flight that took it.
bool take(State& s, int slot, int64_t bytes) {
  std::atomic<int64_t>& headroom = s.slots[slot].headroom;
  int64_t now = headroom.load();
  while (now >= bytes) {
    if (headroom.compare_exchange_weak(now, now - bytes)) return true;
  }
  return false;
}

// The question to the daemon.

namespace {

// In a swap lease the daemon grants exactly the requested amount of memory that cannot move.
Answer grow_wired(State& s, int slot, gpurota_grow_kind kind, uint64_t need) {
  if (need >= kSaneBytes) return Answer::kNo;
  if (kind == GPUROTA_GROW_CONTEXT) return g_swap.grow(slot, GPUROTA_SWAP_CONTEXT, 0, nullptr);
  const Answer answer = g_swap.grow(slot, GPUROTA_SWAP_WIRED, need, nullptr);
  if (answer == Answer::kYes) {
    receive_grant(s, slot, static_cast<int64_t>(need), static_cast<int64_t>(need));
  }
  return answer;
}

// One GROW and its answer, with Link::mutex held. kAway: the daemon was lost meanwhile.
Answer ask_to_grow(State& s, int slot, gpurota_grow_kind kind, uint64_t need) {
  const int64_t returned = kind == GPUROTA_GROW_MEMORY ? surrender(s, slot) : 0;
  gpurota_msg_grow question{};
  question.header.type = GPUROTA_MSG_GROW;
  question.slot = static_cast<uint32_t>(slot);
  question.kind = kind;
  question.returned_bytes = static_cast<uint64_t>(returned);
  question.need_bytes = need;
  question.want_bytes = need > kGrantPiece || need == 0 ? need : kGrantPiece;
  gpurota_msg_grown answer;
  bool sent = false;
  const bool answered = ask(s, &question, sizeof(question), GPUROTA_MSG_GROWN, &answer,
                            sizeof(answer), nullptr, &sent);
  const bool sane = answered && answer.slot == question.slot && answer.granted_bytes < kSaneBytes &&
                    (answer.status != GPUROTA_OK || answer.granted_bytes >= need);
  if (!sane) {
    // Headroom that went back with a question is not taken back once the question was sent: the
    // daemon may have given it to another process before the connection was lost. The next daemon
    // believes what each process reports as granted, so both processes would hold these bytes.
    if (answered) disconnect(s);
    if (!sent) receive_grant(s, slot, returned, 0);
    return Answer::kAway;
  }
  if (answer.status != GPUROTA_OK) {
    GPUROTA_DEBUG("slot %d: %llu bytes refused (status %u), %llu are left", slot,
                  static_cast<unsigned long long>(need), answer.status,
                  static_cast<unsigned long long>(answer.available_bytes));
    return Answer::kNo;
  }
  if (kind == GPUROTA_GROW_MEMORY) {
    GPUROTA_DEBUG("slot %d: asked for %llu bytes, granted %llu", slot,
                  static_cast<unsigned long long>(need),
                  static_cast<unsigned long long>(answer.granted_bytes));
    receive_grant(s, slot, static_cast<int64_t>(answer.granted_bytes), static_cast<int64_t>(need));
    // Must come after the grant is added to the headroom: a thread that reads this seq finds the
    // grant there.
    s.slots[slot].grown_seq.store(answer.header.seq, std::memory_order_release);
  }
  return Answer::kYes;
}

}  // namespace

Answer grow(int slot, gpurota_grow_kind kind, uint64_t need) {
  State& s = state();
  ErrnoGuard guard;
  if (swapping()) return grow_wired(s, slot, kind, need);
  Lock lock(s.link.mutex);
  // Another thread that had the lock before may have got enough bytes for both threads.
  if (kind == GPUROTA_GROW_MEMORY && take(s, slot, static_cast<int64_t>(need))) return Answer::kYes;
  if (need >= kSaneBytes) return Answer::kNo;
  const int64_t deadline = now_ms() + config().wait_ms;
  do {
    if (!ensure_connected(s)) return why_not(s);
    const Answer answer = ask_to_grow(s, slot, kind, need);
    if (answer == Answer::kAway) continue;
    s.mirror(slot);
    return answer;
  } while (now_ms() < deadline);
  return Answer::kAway;
}

// Calls under way.

namespace {

constexpr uint64_t kWaits = UINT64_MAX;

}  // namespace

// Tickets only tell whether a refusal came between two flights, so only refusals advance them.
void Flight::begin(Slot& slot) {
  ticket_ = slot.tickets.load() + 1;
  for (std::atomic<uint64_t>& place : slot.flights) {
    uint64_t nobody = 0;
    if (place.load(std::memory_order_relaxed) != 0) continue;
    if (!place.compare_exchange_strong(nobody, ticket_)) continue;
    place_ = &place;
    return;
  }
}

// release: a thread that sees the place empty also sees everything done before, so the bytes that
// the flight put back are in the headroom. The order of later operations does not matter.
void Flight::end() {
  if (place_ != nullptr) place_->store(0, std::memory_order_release);
  place_ = nullptr;
}

void Flight::wait_begins() {
  if (place_ != nullptr) place_->store(kWaits);
}

void Flight::wait_ends() {
  if (place_ != nullptr) place_->store(ticket_);
}

uint64_t last_ticket(Slot& slot) { return slot.tickets.fetch_add(1) + 1; }

bool under_way(const Slot& slot, uint64_t ticket) {
  for (const std::atomic<uint64_t>& place : slot.flights) {
    const uint64_t its = place.load();
    if (its != 0 && its <= ticket) return true;
  }
  return false;
}

// Putting back.

namespace {

// Gives the daemon the headroom beyond one piece, if no thread is asking just now.
void give_back_excess(int slot) {
  State& s = state();
  if (swapping()) {
    ErrnoGuard guard;
    return g_swap.shrink(slot, 0, 0, static_cast<uint64_t>(surrender(s, slot)), 0);
  }
  if (!s.link.mutex.try_lock()) return;
  ErrnoGuard guard;
  const int64_t keep = above_limit(s, slot) ? 0 : static_cast<int64_t>(kGrantPiece);
  const int64_t excess = take_above(s, slot, keep);
  if (excess > 0) {
    gpurota_msg_return message{};
    message.header.type = GPUROTA_MSG_RETURN;
    message.slot = static_cast<uint32_t>(slot);
    message.grown_seq = s.slots[slot].grown_seq.load();
    message.bytes = static_cast<uint64_t>(excess);
    const bool was_connected = connected(s);
    tell(s, &message, sizeof(message));
    // A message that was not sent gives nothing back: the next HELLO counts the excess again.
    if (!was_connected || !s.link.call.open) receive_grant(s, slot, excess, 0);
  }
  s.link.mutex.unlock();
}

}  // namespace

bool above_limit(const State& s, int slot) {
  return beyond_limit(s, slot, s.slots[slot].granted.load(std::memory_order_relaxed));
}

void put(int slot, int64_t bytes) {
  State& s = state();
  credit_headroom(s, slot, bytes);
  const int64_t now = s.slots[slot].headroom.load(std::memory_order_relaxed);
  const bool keeps = !swapping() && !above_limit(s, slot);
  if (now > (keeps ? kExcess : 0)) give_back_excess(slot);
  s.mirror(slot);
}

// Refusing.

namespace {

// "L5"; or "this container", as the user of a container does not know the lease.
struct WhoText {
  char text[32];
};
WhoText who_text() {
  WhoText who{};
  const auto lease = static_cast<unsigned long long>(config().lease);
  snprintf(who.text, sizeof(who.text), lease != 0 ? "L%llu" : "this container", lease);
  return who;
}

// Tells the user that more was requested than is left of the limit. The size of a context is not
// known before it is made, so `what` may have no size.
void tell_of_limit(const State& s, int slot, const char* what) {
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  if (page == nullptr || slot < 0) return;
  const auto lease = static_cast<unsigned long long>(config().lease);
  const uint64_t limit = __atomic_load_n(&page->grant[slot].limit_bytes, __ATOMIC_RELAXED);
  if (swapping() && lease == 0) {
    notice_once(Notice::kRefused, "this container was refused %s", what);
  } else if (swapping()) {
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
