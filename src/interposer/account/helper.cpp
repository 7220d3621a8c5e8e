// The helper thread: answers RECALL while the program is busy, and reconnects to a restarted
// daemon, whether or not the program allocates.
//
// The helper takes no signals, calls no CUDA function, and takes Link::mutex only by try_lock():
// another thread may hold that lock while it waits for a GROW, which in turn waits for the helper's
// answer to a RECALL. Link::recall_mutex keeps HELLO and the answers to RECALL apart, so that no
// bytes are both given back and reported as held.
#include "abi/wire_park.h"
#include "interposer/account/burst_pages.h"
#include "interposer/account/headroom.h"
#include "interposer/account/link.h"
#include "interposer/account/park_orders.h"
#include "interposer/account/swap_table.h"
#include "interposer/os/debug.h"
#include "interposer/os/socket.h"
#include "interposer/os/threads.h"

#include <cstring>

#include <sys/prctl.h>

namespace gpurota::interposer {
namespace {

constexpr int64_t kFirstRetryMs = 50;
constexpr int64_t kLastRetryMs = 1000;
// The pause after the daemon has said that the lease is over, which it may have said by mistake.
constexpr int64_t kRefusedRetryMs = 30000;
// How often to check that the program has not closed our descriptor.
constexpr int64_t kDescriptorCheckMs = 60000;

void answer_recall(State& s, const Socket& event, const gpurota_msg_recall& recall) {
  const int slot = static_cast<int>(recall.slot);
  Lock lock(s.link.recall_mutex);
  if (s.link.recall_inode != event.inode) return;  // a newer HELLO ended its connection
  const uint32_t grown_seq = s.slots[slot].grown_seq.load(std::memory_order_acquire);
  const int64_t bytes = surrender(s, slot);
  gpurota_msg_return answer{};
  answer.header = {GPUROTA_MSG_RETURN, sizeof(answer), recall.header.seq};
  answer.slot = recall.slot;
  answer.grown_seq = grown_seq;
  answer.bytes = static_cast<uint64_t>(bytes);
  if (!send_packet(event, &answer, sizeof(answer), now_ms() + 1000)) {
    receive_grant(s, slot, bytes, 0);
  }
  s.mirror(slot);
  GPUROTA_DEBUG("slot %d: gave back %lld bytes that another process needs", slot,
                static_cast<long long>(bytes));
}

// False when the connection is to be given up.
bool handle_event(State& s, const Socket& event, const void* packet, long size, Descriptors* fds) {
  gpurota_msg_header header;
  if (size < static_cast<long>(sizeof(header))) return false;
  memcpy(&header, packet, sizeof(header));
  if (header.type == GPUROTA_MSG_PARK) return take_park_message(s, packet, size);
  if (header.type != GPUROTA_MSG_RECALL || swapping()) {
    // Each leaves the messages of the other alone.
    return take_burst_message(s, event, packet, size, fds) &&
           (!swapping() || g_swap.take_order(s, packet, size, fds));
  }
  gpurota_msg_recall recall;
  if (size < static_cast<long>(sizeof(recall))) return false;
  memcpy(&recall, packet, sizeof(recall));
  if (recall.slot >= s.link.slot_count) return false;
  answer_recall(s, event, recall);
  return true;
}

// Serves the event socket until its connection ends or a newer socket replaces it.
void serve(State& s, const Socket& event) {
  alignas(8) unsigned char buffer[GPUROTA_WIRE_MAX];
  while (s.link.next_event.load() == 0 && is_ours(event)) {
    Descriptors fds;
    const int64_t deadline = now_ms() + park_wait_ms(s, kDescriptorCheckMs);
    const long n = receive_packet(event, buffer, sizeof(buffer), &fds, deadline);
    if (n != kDeadline && (n <= 0 || !handle_event(s, event, buffer, n, &fds))) return;
    if (!report_park_ready(s, event)) return;
  }
}

// Reconnects: when the event socket has ended, so has the connection.
void come_back(State& s, int64_t* delay_ms) {
  const uint32_t turn = s.link.event_turn.load();
  if (s.link.next_event.load() != 0) return;
  const timespec wait = to_timespec(*delay_ms);
  futex_wait(&s.link.event_turn, turn, &wait);
  if (s.link.next_event.load() != 0 || !s.link.mutex.try_lock()) return;
  if (s.link.next_event.load() == 0) {
    disconnect(s);
    const bool back = reconnect_once(s);
    *delay_ms = back ? kFirstRetryMs : *delay_ms * 2;
    if (*delay_ms > kLastRetryMs) *delay_ms = kLastRetryMs;
    if (s.link.lease_refused) *delay_ms = kRefusedRetryMs;
  }
  s.link.mutex.unlock();
}

void* run(void* argument) {
  State& s = *static_cast<State*>(argument);
  ::syscall(SYS_prctl, PR_SET_NAME, "gpurota", 0, 0, 0);
  int64_t delay_ms = kFirstRetryMs;
  for (;;) {
    const int next = s.link.next_event.exchange(0);
    if (next == 0) {
      come_back(s, &delay_ms);
      continue;
    }
    delay_ms = kFirstRetryMs;
    Socket event{next - 1, s.link.event_inode.load(), true};
    const bool swaps = swapping();
    if (swaps) g_swap.connected(s, event.fd, event.inode);
    forget_burst_pages(s);
    serve(s, event);
    forget_park_order(s);
    if (swaps) g_swap.lost(s);
    int mine = next;
    s.link.event_fd.compare_exchange_strong(mine, 0);
    close_socket(&event);
  }
  return nullptr;
}

}  // namespace

// Without the thread the program still works, but answers no RECALL. Its headroom then stays until
// its next question, and the daemon counts all of the headroom.
void start_helper(State& s) {
  if (s.link.helper_started) return;
  s.link.helper_started = start_thread(run, &s);
  if (!s.link.helper_started) GPUROTA_DEBUG("could not start the helper thread");
}

}  // namespace gpurota::interposer
