// A daemon for the tests of swap tenants: implements abi/wire_swap.h on a real socket in a thread
// of the test. On request it disturbs its tenants at random: closes the gate, admits submissions
// while the tenant does not drain, evicts some or all memory, restores it, and opens the gate
// again.
//
// The daemon keeps accounts as the real one does, and counts messages that contradict them.
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
  bool opens = true;        // false: the gates stay closed
  bool disturbs = false;    // takes turns away at random
  bool forgets = false;     // opens without restoring, once
  bool stays_shut = false;  // restores memory, but admits work only call by call
  bool takes_away = false;  // keeps all memory evicted, but still grants more
  bool answers = true;      // false: questions for memory wait forever
  bool copies_all = false;  // evictions copy unchanged memory too
  std::uint64_t context_cost = std::uint64_t{100} << 20;
  std::uint64_t oversize = 0;  // in host memory, beyond the limit of each GPU
  unsigned seed = 1;
};

class SwapDaemon {
 public:
  SwapDaemon(std::string path, std::vector<FakeGpu> gpus, SwapBehaviour behaviour);
  // Disconnects at once, even in the middle of an order.
  ~SwapDaemon();
  SwapDaemon(const SwapDaemon&) = delete;
  SwapDaemon& operator=(const SwapDaemon&) = delete;

  void set(const SwapBehaviour& behaviour);
  std::uint64_t evictions() const;
  std::uint64_t evicted_bytes() const;
  std::uint64_t clean_bytes() const;  // evicted bytes that needed no copy
  // Orders refused by a process with an open RDMA device.
  std::uint64_t refused_for_rdma() const;
  std::uint64_t let_through() const;
  bool wait_for_grant_while_away() const;
  // The fraction of time in which tenants reported work, measured since the last call of
  // busy_share().
  double busy_share();
  std::string bad() const;  // the first error; "" if none
  // The sum over all connected tenants.
  gpurota_swap_memory memory(int slot) const;
  std::uint64_t hosted_bytes(int slot) const;
  bool wait_for_hosted(int slot, std::uint64_t bytes) const;
  std::uint64_t most_hosted() const;  // maximum on one GPU at any time
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
    bool let_in = false;     // a submission was admitted since the gate closed
    std::vector<Gpu> gpus;
    Phase phase = Phase::kShut;
    std::uint32_t gate_seq = 0;
    gpurota_msg_swap_status status{};
    std::chrono::steady_clock::time_point said;  // when the status was last reported or requested
    std::vector<gpurota_msg_swap_grow> questions;
    std::chrono::steady_clock::time_point next;  // when the daemon acts on it next
  };

  void serve();
  void accept_tenant();
  bool on_call(Tenant& tenant);
  bool holding(const Tenant& tenant, const gpurota_msg_holding& message);
  bool on_event(Tenant& tenant);
  bool take(Tenant& tenant, const unsigned char* packet, long size);
  // Connects the tenant that opens memory with the tenant that shares it.
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
