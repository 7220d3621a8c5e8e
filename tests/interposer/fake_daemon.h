// A daemon for the tests of libgpurota: implements abi/wire.h on a real socket, in a thread of the
// test, with a simple ledger, and misbehaves on request.
//
// The test's thread sets it up and queries it; every method may be called while tenants are served.
#pragma once

#include "abi/page.h"
#include "abi/wire.h"
#include "base/fd.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gpurota::interposer_test {

using Uuid = std::array<std::uint8_t, GPUROTA_UUID_BYTES>;

struct FakeGpu {
  Uuid uuid{};
  std::uint64_t limit = 0;
};

// The HELLO of a tenant.
struct SeenHello {
  std::uint64_t lease = 0;
  std::string token;
  std::vector<gpurota_held> held;
};

enum class Mischief {
  kNone,
  kRefuseHello,     // WELCOME with `refusal`
  kGarbageWelcome,  // bytes that are not a message
  kForeignWelcome,  // a WELCOME without descriptors
  kHangUpOnGrow,    // closes the connection on a GROW, once
  kGarbageGrown,    // answers a GROW with bytes that are not a message, once
  kShortGrown,      // answers with half a message, once
  kWrongSequence,   // answers with another seq, once
  kHugeGrown,       // grants more than any GPU has, once
  kNewerDaemon,     // another version, all features, longer messages and unknown ones
  kOldDaemon,       // version 1 only
  kSilent,          // reads and never answers
};

class FakeDaemon {
 public:
  // Serves as soon as it is made. `context_cost` is the part of the limit that a context takes.
  FakeDaemon(std::string path, std::vector<FakeGpu> gpus, std::uint64_t context_cost = 0);
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  void misbehave(Mischief mischief, std::uint32_t refusal = 0);
  void set_limit(int slot, std::uint64_t limit);
  // The answer to a program without a lease: lease 12 and this token, or the refusal.
  void give_automatically(std::uint32_t status, const std::string& token,
                          const std::string& visible);
  int asked_for_leases() const;
  // Recalls every tenant's headroom and waits until each has answered.
  std::uint64_t recall_all(int slot);

  std::uint64_t granted(int slot) const;  // to all tenants together
  std::uint32_t contexts(int slot) const;
  std::vector<SeenHello> hellos() const;
  int tenants() const;                              // connected now
  int grows() const;                                // GROW messages seen
  int bad_messages() const;                         // messages that a daemon must reject
  gpurota_page_use use(int slot) const;             // as shown by the first tenant
  std::vector<std::string> unhooked_names() const;  // from the tenants' pages
  bool wait_for_hellos(std::size_t count) const;    // up to ten seconds

 private:
  // Waits until `done()`, called under the lock after each message, returns true; up to ten
  // seconds.
  bool wait(const std::function<bool()>& done) const;

  struct Tenant {
    Fd call;
    int pid = 0;
    Fd event;
    gpurota_page* page = nullptr;
    std::vector<std::uint64_t> granted;
    std::vector<std::uint32_t> contexts;
    std::uint32_t awaited = 0;  // seq of the unanswered RECALL
    std::uint32_t last_grown = 0;
  };

  // Memory that several tenants hold: in the grant of each, but only once in charged().
  struct Shared {
    std::uint64_t bytes = 0;
    std::uint32_t slot = 0;
    std::vector<int> holders;  // call descriptors, one for each report of the memory
  };

  void serve();
  void accept_tenant();
  bool holding(Tenant& tenant, const gpurota_msg_holding& message);
  void drop_holdings(int call);
  bool on_call(Tenant& tenant);
  bool on_event(Tenant& tenant);
  bool answer_automatic(Tenant& tenant, const gpurota_msg_automatic& question);
  bool answer_info(Tenant& tenant, std::uint32_t slot, std::uint32_t seq);
  bool answer_members(Tenant& tenant, const gpurota_msg_processes& asked);
  bool hello(Tenant& tenant, const gpurota_msg_hello& message);
  bool grow(Tenant& tenant, const gpurota_msg_grow& message);
  bool answer_grow(Tenant& tenant, const gpurota_msg_grow& message);
  bool mischievous_grown(Tenant& tenant, const gpurota_msg_grow& message, bool* handled);
  void take_back(Tenant& tenant, const gpurota_msg_return& message);
  void ask_for_slack(int slot);
  void collect_answers();
  std::uint64_t charged(int slot) const;
  void publish();

  const std::string path_;
  const std::uint64_t context_cost_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<FakeGpu> gpus_;
  std::map<int, Tenant> tenants_;  // by call descriptor
  std::map<std::uint64_t, Shared> shared_;
  std::vector<SeenHello> hellos_;
  Mischief mischief_ = Mischief::kNone;
  std::uint32_t refusal_ = 0;
  int mischief_left_ = 0;
  gpurota_msg_lease automatic_{};
  int asked_for_leases_ = 0;
  int grows_ = 0;
  int bad_messages_ = 0;
  std::uint32_t sequence_ = 1000;
  Fd listener_;
  Fd wake_read_;
  Fd wake_write_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gpurota::interposer_test
