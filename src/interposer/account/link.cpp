#include "interposer/account/link.h"

#include "abi/wire_park.h"
#include "interposer/account/holdings.h"
#include "interposer/account/link_calls.h"
#include "interposer/account/swap_table.h"
#include "interposer/os/config.h"
#include "interposer/os/debug.h"
#include "interposer/os/notice.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

// A handshake waits at least this long, however little the program wants to wait for a daemon that
// is away: a running daemon answers sooner.
constexpr int64_t kLeastHandshakeMs = 500;

gpurota_msg_hello make_hello(State& s) {
  gpurota_msg_hello hello{};
  hello.header = {GPUROTA_MSG_HELLO, sizeof(hello), ++s.link.sequence};
  hello.magic = GPUROTA_WIRE_MAGIC;
  hello.version = GPUROTA_WIRE_VERSION;
  hello.features = GPUROTA_FEATURE_SWAP | GPUROTA_FEATURE_LATENCY | GPUROTA_FEATURE_PARK |
                   GPUROTA_FEATURE_WINDOWS | GPUROTA_FEATURE_SWAP_LATENCY;
  hello.lease = config().lease;
  memcpy(hello.token, config().token, sizeof(hello.token));
  for (uint32_t i = 0; i < s.link.slot_count; ++i) {
    const int64_t granted = s.slots[i].granted.load();
    const uint32_t contexts = s.slots[i].contexts.load();
    if (granted <= 0 && contexts == 0) continue;
    gpurota_held& held = hello.held[hello.held_count++];
    memcpy(held.uuid, s.slots[i].uuid, sizeof(held.uuid));
    held.granted_bytes = granted > 0 ? static_cast<uint64_t>(granted) : 0;
    held.contexts = contexts;
  }
  return hello;
}

// Maps the page over the old one, if there is one, because other threads use its address.
bool map_page(State& s, int fd) {
  if (sealed_size(fd) < static_cast<off_t>(GPUROTA_PAGE_BYTES)) return false;
  void* old = s.page.load();
  const int flags = MAP_SHARED | (old != nullptr ? MAP_FIXED : 0);
  void* mapped = ::mmap(old, GPUROTA_PAGE_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (mapped == MAP_FAILED) return false;
  ::madvise(mapped, GPUROTA_PAGE_BYTES, MADV_DONTFORK);
  s.page.store(static_cast<gpurota_page*>(mapped), std::memory_order_release);
  return true;
}

// The lease's GPUs keep their slots for life, so a new daemon must show the same ones.
bool learn_slots(State& s) {
  const gpurota_page& page = *s.page.load();
  if (page.magic != GPUROTA_PAGE_MAGIC || page.version < GPUROTA_PAGE_VERSION || page.slots == 0 ||
      page.slots > GPUROTA_SLOTS) {
    return false;
  }
  const bool again = attached();
  if (again && page.slots != s.link.slot_count) return false;
  for (uint32_t i = 0; i < page.slots; ++i) {
    if (!again) memcpy(s.slots[i].uuid, page.grant[i].uuid, GPUROTA_UUID_BYTES);
    if (memcmp(s.slots[i].uuid, page.grant[i].uuid, GPUROTA_UUID_BYTES) != 0) return false;
  }
  s.link.slot_count = page.slots;
  return true;
}

const char* why_refused(uint32_t status) {
  switch (status) {
    case GPUROTA_REFUSED_LEASE:
      return "its lease has ended, or is somebody else's";
    case GPUROTA_REFUSED_VERSION:
      return "this library is too old for it";
    case GPUROTA_REFUSED_BUSY:
      return "the lease is parked, or the lease or its user has as many processes as the site "
             "allows (max_tenants_per_lease, max_tenants_per_user), so this one gets no memory; it "
             "asks again when it next needs some";
    default:
      return "for a reason newer than this library";
  }
}

bool welcome(State& s, const gpurota_msg_welcome& message, Descriptors* fds) {
  s.link.crowded = message.status == GPUROTA_REFUSED_BUSY;
  s.link.daemon_features = message.features;
  if ((message.features & GPUROTA_FEATURE_QUIET) != 0) silence_notices();
  if (message.status != GPUROTA_OK) {
    GPUROTA_DEBUG("the daemon refused this program (status %u): %s", message.status,
                  why_refused(message.status));
    const bool refused = message.status == GPUROTA_REFUSED_LEASE && !attached();
    if (refused && config().lease == 0) {
      notice_once(Notice::kLeaseOver,
                  "the lease of this container is over, so this program gets "
                  "no GPU memory: delete its pod");
    } else if (refused) {
      notice_once(Notice::kLeaseOver,
                  "lease L%llu is over, or another user's, so this program gets no GPU memory; "
                  "unset GPUROTA_LEASE LD_PRELOAD "
                  "CUDA_VISIBLE_DEVICES, or open a new shell",
                  static_cast<unsigned long long>(config().lease));
    }
    s.link.lease_refused =
        message.status == GPUROTA_REFUSED_LEASE || message.status == GPUROTA_REFUSED_VERSION;
    return false;
  }
  if ((message.features & GPUROTA_FEATURE_EXPIRED) != 0 && !attached()) {
    const auto lease = static_cast<unsigned long long>(config().lease);
    notice_once(Notice::kLeaseOver,
                "the time of L%llu is over, so this program may be stopped when somebody needs the "
                "GPU; to keep it: gpurota update L%llu --for 2h",
                lease, lease);
  }
  const bool swaps = (message.features & GPUROTA_FEATURE_SWAP) != 0;
  if (attached() && swaps != swapping()) return false;  // a tenant's kind never changes
  if (fds->count() != 2 || !map_page(s, (*fds)[0]) || !learn_slots(s)) return false;
  s.link.no_thread = swaps && !g_swap.begin(s);
  if (s.link.no_thread) return false;
  Socket event;
  if (!adopt_socket(fds->take(1), &event)) return false;
  remember_socket(kEventSocket, event);
  {
    Lock lock(s.link.recall_mutex);
    s.link.recall_inode = event.inode;
  }
  const uint64_t last_inode = s.link.event_inode.exchange(event.inode);
  s.link.event_fd.store(event.fd + 1);
  const int unclaimed = s.link.next_event.exchange(event.fd + 1);
  if (unclaimed > 0) close_if_ours(unclaimed - 1, last_inode);
  s.link.event_turn.fetch_add(1);
  futex_wake(&s.link.event_turn, 1);
  return true;
}

bool handshake(State& s, const Socket& call, int64_t deadline_ms) {
  gpurota_msg_hello hello;
  {
    // Under the lock no answer to a RECALL is half done. Without the lock, an answer that still
    // goes out on the previous connection could give back bytes that HELLO reports as held. An
    // answer that cannot be sent could put bytes back into the headroom after HELLO was made
    // without them.
    Lock lock(s.link.recall_mutex);
    hello = make_hello(s);
    s.link.recall_inode = 0;
  }
  if (!send_packet(call, &hello, sizeof(hello), deadline_ms)) return false;
  alignas(8) unsigned char buffer[GPUROTA_WIRE_MAX];
  gpurota_msg_welcome answer;
  Descriptors fds;
  const long n = receive_packet(call, buffer, sizeof(buffer), &fds, deadline_ms);
  if (n < static_cast<long>(sizeof(answer))) return false;
  memcpy(&answer, buffer, sizeof(answer));
  return answer.header.type == GPUROTA_MSG_WELCOME && answer.header.seq == hello.header.seq &&
         welcome(s, answer, &fds);
}

}  // namespace

bool connected(State& s) {
  if (!s.link.call.open) return false;
  if (is_ours(s.link.call)) return true;
  GPUROTA_DEBUG("the program closed the connection to the daemon");
  disconnect(s);
  return false;
}

Answer why_not(const State& s) {
  if (s.link.lease_refused) return Answer::kOver;
  if (s.link.crowded) return Answer::kCrowded;
  return s.link.no_thread ? Answer::kNoThread : Answer::kAway;
}

// The wait begins when the daemon is first missed: a program that keeps trying must not wait anew
// each time.
bool ensure_connected(State& s) {
  if (connected(s)) return true;
  if (lease_pending()) return false;  // refused, or the driver is not initialised yet
  if (s.link.away_since == 0) s.link.away_since = now_ms();
  const int64_t deadline = s.link.away_since + config().wait_ms;
  for (;;) {
    const int64_t left = deadline - now_ms();
    const int64_t least = left > kLeastHandshakeMs ? left : kLeastHandshakeMs;
    if (reconnect_once(s, least < kHandshakeMs ? least : kHandshakeMs)) return true;
    if (s.link.crowded) s.link.away_since = 0;  // the daemon refused: no retry helps
    if (why_not(s) != Answer::kAway || now_ms() >= deadline) return false;
    sleep_ms(kRetryMs);
  }
}

// The daemon may have to recall headroom of other processes before it can answer.
static int64_t answer_ms() {
  return config().wait_ms > kHandshakeMs ? config().wait_ms : kHandshakeMs;
}

bool ask(State& s, void* question, size_t size, uint16_t answer_type, void* answer,
         size_t answer_size, Descriptors* fds, bool* sent) {
  auto* header = static_cast<gpurota_msg_header*>(question);
  header->size = static_cast<uint16_t>(size);
  header->seq = ++s.link.sequence;
  const int64_t deadline = now_ms() + answer_ms();
  alignas(8) unsigned char buffer[GPUROTA_WIRE_MAX];
  Descriptors unexpected;
  if (fds == nullptr) fds = &unexpected;
  long n = -1;
  const bool gone_out = send_packet(s.link.call, question, size, deadline);
  if (sent != nullptr) *sent = gone_out;
  if (gone_out) {
    n = receive_packet(s.link.call, buffer, sizeof(buffer), fds, deadline);
  }
  gpurota_msg_header got{};
  if (n >= static_cast<long>(answer_size)) memcpy(&got, buffer, sizeof(got));
  if (got.type == answer_type && got.seq == header->seq) {
    memcpy(answer, buffer, answer_size);
    return true;
  }
  GPUROTA_DEBUG("lost the daemon in the middle of a question");
  disconnect(s);
  return false;
}

void tell(State& s, void* message, size_t size) {
  auto* header = static_cast<gpurota_msg_header*>(message);
  header->size = static_cast<uint16_t>(size);
  if (connected(s) && !send_packet(s.link.call, message, size, now_ms())) disconnect(s);
}

void disconnect(State& s) {
  close_socket(&s.link.call);
  // The helper owns the event socket. Shutting it down wakes the helper, which closes it and
  // reconnects.
  const int event = s.link.event_fd.exchange(0);
  if (event > 0) shut_down(event - 1, s.link.event_inode.load());
}

bool reconnect_once(State& s, int64_t patience_ms) {
  if (lease_pending()) return false;
  s.link.crowded = false;
  close_inherited();
  const int fd = connect_to(config().socket_path);
  Socket call;
  if (fd < 0 || !adopt_socket(fd, &call)) return false;
  if (!handshake(s, call, now_ms() + patience_ms)) {
    close_socket(&call);
    return false;
  }
  s.link.call = call;
  remember_socket(kCallSocket, call);
  for (uint32_t i = 0; i < s.link.slot_count; ++i) s.mirror(static_cast<int>(i));  // a new page
  s.mirror_unhooked();
  s.link.away_since = 0;
  s.link.lease_refused = false;
  tell_holdings(s);
  start_helper(s);
  s.attached.store(1, std::memory_order_release);
  GPUROTA_DEBUG("connected to %s as lease L%llu", config().socket_path,
                static_cast<unsigned long long>(config().lease));
  for (uint32_t i = 0; i < s.link.slot_count; ++i) {
    const uint8_t* uuid = s.slots[i].uuid;
    GPUROTA_DEBUG("slot %u is GPU %02x%02x%02x%02x-…, limit %llu bytes", i, uuid[0], uuid[1],
                  uuid[2], uuid[3],
                  static_cast<unsigned long long>(s.page.load()->grant[i].limit_bytes));
  }
  return true;
}

bool attach() {
  State& s = state();
  if (s.attached.load(std::memory_order_acquire) != 0) return true;
  ErrnoGuard guard;
  Lock lock(s.link.mutex);
  return s.attached.load(std::memory_order_acquire) != 0 || ensure_connected(s);
}

bool attach_now() {
  State& s = state();
  if (s.attached.load(std::memory_order_acquire) != 0) return true;
  ErrnoGuard guard;
  Lock lock(s.link.mutex);
  return s.attached.load(std::memory_order_acquire) != 0 || reconnect_once(s);
}

void report_contexts(int slot) {
  State& s = state();
  ErrnoGuard guard;
  Lock lock(s.link.mutex);
  if (!connected(s)) return;  // the next HELLO reports the contexts
  gpurota_msg_contexts question{};
  question.header.type = GPUROTA_MSG_CONTEXTS;
  question.slot = static_cast<uint32_t>(slot);
  question.count = s.slots[slot].contexts.load();
  gpurota_msg_info answer;
  ask(s, &question, sizeof(question), GPUROTA_MSG_INFO, &answer, sizeof(answer));
}

bool query(int slot, uint64_t* limit, uint64_t* available) {
  State& s = state();
  ErrnoGuard guard;
  Lock lock(s.link.mutex);
  if (!connected(s) && !reconnect_once(s)) return false;
  gpurota_msg_query question{};
  question.header.type = GPUROTA_MSG_QUERY;
  question.slot = static_cast<uint32_t>(slot);
  gpurota_msg_info answer;
  if (!ask(s, &question, sizeof(question), GPUROTA_MSG_INFO, &answer, sizeof(answer))) return false;
  if (answer.slot != question.slot) return false;
  *limit = answer.limit_bytes;
  *available = answer.available_bytes;
  return true;
}

int keep_members(int32_t* pids, int count) {
  State& s = state();
  ErrnoGuard guard;
  Lock lock(s.link.mutex);
  if (!connected(s) && !reconnect_once(s)) return -1;
  if ((s.link.daemon_features & GPUROTA_FEATURE_PROCESSES) == 0) return -1;
  int kept = 0;
  for (int done = 0; done < count;) {
    gpurota_msg_processes question{};
    gpurota_msg_processes answer;
    question.header.type = GPUROTA_MSG_PROCESSES;
    while (done < count && question.count < GPUROTA_WIRE_PIDS) {
      question.pid[question.count++] = pids[done++];
    }
    if (!ask(s, &question, sizeof(question), GPUROTA_MSG_MEMBERS, &answer, sizeof(answer))) {
      return -1;
    }
    if (answer.count > question.count) return -1;
    for (uint32_t i = 0; i < answer.count; ++i) pids[kept++] = answer.pid[i];
  }
  return kept;
}

Answer ask_to_open(const gpurota_shared_name& name, Socket* out, bool* own_lease) {
  State& s = state();
  ErrnoGuard guard;
  Lock lock(s.link.mutex);
  if (!ensure_connected(s)) return why_not(s) == Answer::kAway ? Answer::kAway : Answer::kNo;
  if ((s.link.daemon_features & GPUROTA_FEATURE_OPEN) == 0) return Answer::kNo;
  gpurota_msg_open question{};
  question.header.type = GPUROTA_MSG_OPEN;
  question.name = name;
  gpurota_msg_opened answer;
  Descriptors fds;
  if (!ask(s, &question, sizeof(question), GPUROTA_MSG_OPENED, &answer, sizeof(answer), &fds)) {
    return Answer::kAway;
  }
  if (answer.status == GPUROTA_REFUSED_BUSY) return Answer::kAway;
  if (answer.status != GPUROTA_OK) return Answer::kNo;
  // An older daemon does not say to which lease the other process belongs. Only the process that
  // made the memory is then charged for it.
  *own_lease = answer.own_lease != 0 || (s.link.daemon_features & GPUROTA_FEATURE_HOLDING) == 0;
  return fds.count() == 1 && adopt_socket(fds.take(0), out) ? Answer::kYes : Answer::kAway;
}

}  // namespace gpurota::interposer
