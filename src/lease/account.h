// The account of one slice lease on one GPU: how much each of its processes may hold. Pure.
//
// A tenant allocates inside its grant without asking; the account sees only grants. The sum of all
// grants, and of what the driver holds beside them (contexts, modules), stays within the limit. So
// the sum of allocations stays within the limit, too, whatever the timing. Before the account
// refuses a request for lack of memory, it recalls slack (memory granted, but not used).
//
// Used by GrantBook on the daemon's state thread. Never does I/O: messages to tenants are returned
// as GrantActions.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/maybe.h"
#include "core/time.h"
#include "lease/account_holder.h"
#include "lease/soft_limit.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace gpurota::lease {

enum class GrantStatus { kGranted, kRefused };

// Answer a GROW.
struct GrantReply {
  TenantId tenant;
  std::uint32_t seq = 0;
  GrantStatus status = GrantStatus::kRefused;
  Bytes granted;    // zero for a context: the tenant may not allocate from its reserve
  Bytes available;  // what is left after the answer
  bool operator==(const GrantReply&) const = default;
};

// Ask a tenant for all its headroom on this GPU.
struct GrantRecall {
  TenantId tenant;
  std::uint32_t seq = 0;
  bool operator==(const GrantRecall&) const = default;
};

using GrantAction = std::variant<GrantReply, GrantRecall>;
using GrantActions = std::vector<GrantAction>;

struct GrowRequest {
  TenantId tenant;
  std::uint32_t seq = 0;
  bool context = false;  // reserve for a context instead of granting memory
  Bytes returned;        // headroom given back with the request
  Bytes need;            // all or nothing; for a context, its assumed cost
  Bytes want;            // at least need
};

class Account {
 public:
  explicit Account(Bytes limit) : limit_(limit), most_(limit) {}

  // How long a request that is short of memory waits for tenants to return their slack. On a
  // machine with eight programs for each CPU a helper thread may run only after some 100 ms. A
  // refusal takes this long only if a tenant does not answer (stopped, traced).
  static constexpr Duration kRecallPatience = std::chrono::seconds(1);
  // How long a request waits until the memory of a dead sibling is free, or a new context is
  // measured. Drivers took 0.6 s for 20 GiB after a kill -9 (measured on an H100).
  static constexpr Duration kLingerPatience = std::chrono::seconds(2);

  // Adds a tenant that already holds `held` (after a daemon's restart; else zero). `overhead`: what
  // its contexts take beside `held`, as the last daemon measured it. Empty: the next sample
  // decides, but the overhead is at least `least`, the known cost of a context. `least` is
  // needed because a returning program is busy, and each sample of a busy program is too low by the
  // allocations that are under way.
  void add_tenant(TenantId tenant, Bytes held, int contexts, std::optional<Bytes> overhead = {},
                  Bytes least = {});
  // Call when the connection has ended; the process may live. The tenant is still counted in full,
  // and is asked nothing.
  GrantActions disconnect(TenantId tenant, TimePoint now);
  // Call when the process is dead. The tenant is counted until a measurement no longer lists its
  // process.
  GrantActions mark_dead(TenantId tenant, TimePoint now);
  // Call when the process has connected again as a new tenant, which itself reports what it holds.
  void forget(TenantId tenant) { holders_.erase(tenant); }
  // As forget(), for a daemon that knew the old tenant: the new tenant is charged for the memory
  // that the driver was seen to hold beside the old grant, until a sample shows otherwise.
  void replace(TenantId old, TenantId by);

  GrantActions grow(const GrowRequest& request, TimePoint now);
  // `recall` is the seq of the recall that this answers, 0 for none; `grown_seq` as in wire.h.
  GrantActions give_back(TenantId tenant, Bytes bytes, std::uint32_t recall,
                         std::uint32_t grown_seq, TimePoint now);
  void set_contexts(TenantId tenant, int contexts, TimePoint now);
  struct SharedNow {
    Bytes of_tenant;      // of its grant: memory that other processes may have, too
    Bytes counted_again;  // of all tenants' grants: the part that counts shared memory again
    Bytes adopted;        // imported just now: the lease is already charged for it
  };
  void set_shared(TenantId tenant, const SharedNow& now);
  // Returns the cost of a first context, if this measurement shows it.
  std::optional<Bytes> measure(TenantId tenant, const Measurement& measurement);
  // Whether the tenant is counted. A dead tenant is counted until its memory is free.
  bool counts(TenantId tenant) const { return holders_.contains(tenant); }
  // Sets the memory of the lease's processes that are not tenants (static loaders, cleared
  // environments).
  void set_outsiders(Bytes held) { outsiders_ = held; }
  // `highest`: the limit before it was lowered, up to which memory may have been granted; zero: the
  // limit was not lowered.
  void set_limit(Bytes limit, Bytes highest = {}) {
    limit_ = limit;
    most_ = std::max(limit, highest);
  }
  void set_soft_limit(std::optional<Bytes> soft) { soft_.limit = soft; }
  // Each grant of memory above the soft limit is exact, and comes at least `throttle` after its
  // request and after the last grant above the limit. Zero: grants above the limit are like others.
  void set_throttle(Duration throttle) { soft_.throttle = throttle; }
  // Recalls all headroom if the charge is above a lowered limit: tenants must not allocate any more
  // of what was granted before.
  GrantActions recall_excess();
  // Grants nothing until `when`, so that processes of the lease that the last daemon knew can
  // reconnect first.
  void hold_until(TimePoint when) { held_until_ = when; }

  // Serves the requests that can be served now. Call after any change that may have freed memory,
  // and at next_deadline().
  GrantActions serve(TimePoint now);
  std::optional<TimePoint> next_deadline() const;

  Bytes limit() const { return limit_; }
  Bytes most() const { return most_; }  // the most that may have been granted
  Bytes charged() const;
  Bytes granted() const;  // all tenants' memory, without contexts and the driver's other memory
  Bytes available() const { return limit_ - charged(); }
  Bytes charged(TenantId tenant) const;
  struct Holding {
    Bytes granted;  // memory only, without contexts
    int contexts = 0;
    std::optional<Bytes> overhead;  // of its contexts; nothing while they are not measured
    bool settled =
        true;  // false: dead, and its memory is not free yet; or a context is not measured yet
  };
  Holding holding(TenantId tenant) const;
  bool has_dead() const;
  bool expects_measurement() const;  // of a dead tenant, or of an unmeasured context

 private:
  struct Waiting {
    GrowRequest request;
    TimePoint arrived;
    std::optional<TimePoint> recall_deadline;  // set when its first round of recalls began
    int empty_rounds = 0;                      // rounds in a row that brought nothing
    std::optional<TimePoint> throttled_until;
  };

  // False: the request has to wait; else its answer is in `actions`.
  bool answer(Waiting& waiting, TimePoint now, GrantActions& actions);
  void recall_all(GrantActions& actions);
  // Whether recalls for the request are over: all slack of the tenants, including the requesting
  // tenant, has come back, or the time is up. If not, a round of recalls is under way.
  bool recalled(Waiting& waiting, TimePoint now, GrantActions& actions);
  GrantReply grant(const GrowRequest& request, TimePoint now);
  // Memory that is charged now, but that the next samples may show as free: what dead tenants held,
  // and what is reserved for contexts beyond their cost.
  Bytes unsettled() const;
  Maybe<AccountHolder> find(TenantId tenant);

  Bytes limit_, most_;
  Bytes outsiders_;
  Bytes counted_again_;  // the part of the grants that counts shared memory again
  std::map<TenantId, AccountHolder> holders_;
  std::deque<Waiting> waiting_;
  std::set<TenantId> awaited_;  // have not answered the current round of recalls yet
  std::uint32_t round_ = 0;
  std::size_t round_size_ = 0;  // how many tenants were asked in the current round
  bool round_brought_ = false;  // something was returned in the current round
  TimePoint held_until_{};
  SoftLimit soft_;
};

}  // namespace gpurota::lease
