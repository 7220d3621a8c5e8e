// A daemon for the tests of swap tenants: speaks abi/wire_swap.h on a real socket from a thread of
// the test, and if it is to disturb, takes the turn away from its tenants at random: closes the
// gate, lets submissions through while it does not drain, evicts some or all memory, restores it,
// opens again.
//
// The test's daemon keeps books as the real one does, and counts what does not agree with them.
#pragma once

#include "abi/page.h"
#include "abi/wire.h"
#include "base/fd.h"
#include "fake_daemon.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace gpurota::interposer_test {

struct SwapBehaviour {
  bool opens = true;        // else the gates stay shut
  bool disturbs = false;    // takes turns away at random
  bool forgets = false;     // opens without restoring, once
  bool stays_shut = false;  // memory comes back, but work is only let through, call by call
  bool takes_away = false;  // keeps all memory away, and grants more all the same
  bool answers = true;      // else questions for memory wait for ever
  bool copies_all = false;  // memory is not to be hashed
  std::uint64_t context_cost = std::uint64_t{100} << 20;
  std::uint64_t oversize = 0;  // beyond the limit of each GPU, in host memory
  unsigned seed = 1;
};

class SwapDaemon {
 public:
  SwapDaemon(std::string path, std::vector<FakeGpu> gpus, SwapBehaviour behaviour);
  // Is gone at once, whatever is under way.
  ~SwapDaemon();
  SwapDaemon(const SwapDaemon&) = delete;
  SwapDaemon& operator=(const SwapDaemon&) = delete;

  void set(const SwapBehaviour& behaviour);
  std::uint64_t evictions() const;
  std::uint64_t evicted_bytes() const;
  std::uint64_t clean_bytes() const;  // of these, without a copy
  // Orders that a process with an RDMA device open did not carry out.
  std::uint64_t refused_for_rdma() const;
  std::uint64_t let_through() const;
  bool wait_for_grant_while_away() const;
  // The part of the time since this was last asked in which tenants said that they are at work.
  double busy_share();
  std::string bad() const;  // what was wrong, "" if nothing
  // Of all tenants that are connected.
  gpurota_swap_memory memory(int slot) const;
  std::uint64_t hosted_bytes(int slot) const;
  bool wait_for_hosted(int slot, std::uint64_t bytes) const;
  std::uint64_t most_hosted() const;  // of one GPU, at any time
  bool wait_for_evictions(std::uint64_t count) const;
  bool wait_for_clean_bytes(std::uint64_t bytes) const;
  bool wait_for_refusals(std::uint64_t count) const;
  bool wait_for_returns(std::uint64_t count) const;  // of orders that were not carried out in full
  bool wait_for_memory(int slot, std::uint64_t movable, std::uint64_t wired) const;
  bool wait_for_waiting_submission() const;
  bool wait_for_question() const;
  bool wait_for_resident(int slot, std::uint64_t bytes) const;

 private:
  enum class Phase { kShut, kOpen, kClosing, kEvicting, kOut, kRestoring };
  struct Gpu {
    gpurota_swap_memory memory{};
    std::uint64_t hosted = 0;
    std::uint64_t evict = 0;  // ordered and not reported yet
    std::uint64_t restore = 0;
  };
  struct Tenant {
    Fd call;
    Fd event;
    gpurota_page* page = nullptr;
    bool here = false;
    std::uint64_t key[2] = {};
    bool forgotten = false;  // its memory was not restored
    bool let_in = false;     // something was let through since the gate was shut
    std::vector<Gpu> gpus;
    Phase phase = Phase::kShut;
    std::uint32_t gate_seq = 0;
    gpurota_msg_swap_status status{};
    std::chrono::steady_clock::time_point said;  // the status, or asked for since
    std::vector<gpurota_msg_swap_grow> questions;
    std::chrono::steady_clock::time_point next;  // when something happens to it by itself
  };

  void serve();
  void accept_tenant();
  bool on_call(Tenant& tenant);
  bool holding(const Tenant& tenant, const gpurota_msg_holding& message);
  bool on_event(Tenant& tenant);
  bool take(Tenant& tenant, const unsigned char* packet, long size);
  // Brings who opens memory together with who shares it.
  bool open(const Tenant& opener, gpurota_msg_open question);
  bool hello(Tenant& tenant, const gpurota_msg_hello& message);
  bool info(Tenant& tenant, std::uint32_t slot, std::uint32_t seq);
  void here(Tenant& tenant, const gpurota_msg_swap_here& message);
  void shrink(Tenant& tenant, const gpurota_msg_swap_shrink& message);
  void moved(Tenant& tenant, const gpurota_msg_swap_moved& message);
  void answer(Tenant& tenant, const gpurota_msg_swap_grow& question);
  void answer_all(Tenant& tenant);
  void answer_hosted(Tenant& tenant, const gpurota_msg_swap_grow& question);
  void step(Tenant& tenant);
  void order(Tenant& tenant, std::uint32_t what);
  void evict_some(Tenant& tenant);
  static bool is_out(const Tenant& tenant);
  void restore(Tenant& tenant, bool all);
  bool moves(const Tenant& tenant) const;
  void count_work(Tenant& tenant);
  std::uint64_t charged(std::size_t slot) const;
  std::uint64_t hosted(std::size_t slot) const;
  void wrong(const std::string& what);
  bool after(Tenant& tenant, int most_ms);
  bool wait(const std::function<bool()>& done) const;

  const std::string path_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<FakeGpu> gpus_;
  SwapBehaviour behaviour_;
  std::mt19937 random_;
  std::list<Tenant> tenants_;
  std::map<std::uint64_t, std::uint64_t> shared_;  // bytes by key
  std::uint64_t evictions_ = 0;
  std::uint64_t evicted_ = 0;
  std::uint64_t clean_ = 0;
  double busy_s_ = 0;
  double idle_s_ = 0;
  std::uint64_t most_hosted_ = 0;
  std::uint64_t refused_for_rdma_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t let_through_ = 0;
  std::uint64_t granted_while_away_ = 0;
  std::string bad_;
  Fd listener_;
  Fd wake_read_;
  Fd wake_write_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gpurota::interposer_test
