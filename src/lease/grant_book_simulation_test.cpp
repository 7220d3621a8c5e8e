// Seeded runs of one account against tenants that behave like libgpurota, with messages that cross,
// a GPU that is lost and found again, and daemons that restart, even while the GPU is lost.
// Whatever the order of these events, the limit is never exceeded, and no request that fits is
// refused.
#include "lease/grant_book.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace gpurota::lease {
namespace {

const GpuUuid kGpu{"GPU-0"};
const LeaseId kLease{1};
constexpr Bytes kLimit = gib(4);

struct Tenant {
  TenantId id;
  Bytes used, headroom;
  std::uint32_t grown_seq = 0;
  std::optional<GrowRequest> asked;
  bool dead = false;
};

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    open();
    for (std::uint64_t i = 1; i <= 6; ++i) add_tenant();
  }

  void step() {
    now_ += std::chrono::microseconds(pick(50));
    if (pick(lost_ ? 100 : 2000) == 0) lost_ ? find_again() : lose();
    if (pick(lost_ ? 200 : 3000) == 0) restart();
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        allocate(any());
        break;
      case 4:
      case 5:
        free(any());
        break;
      case 6:
        if (pick(40) == 0) die(any());
        break;
      case 7:
        take(book_.serve(now_));
        break;
      default:
        deliver();
        break;
    }
    check();
  }

  void settle() {
    for (int i = 0; i < 100000 && !inbox_.empty(); ++i) deliver();
    while (const auto when = book_.next_deadline()) {
      now_ = std::max(now_, *when);
      take(book_.serve(now_));
      while (!inbox_.empty()) deliver();
    }
  }

  void end_all() {
    if (lost_) find_again();
    settle();
    // By index, because a death may add a successor.
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      if (!tenants_[i].dead) die(tenants_[i]);
    }
    EXPECT_EQ(account().charged(), Bytes());
  }

  int refused() const { return refused_; }
  int granted() const { return granted_; }
  Bytes most() const { return most_; }

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  Tenant& any() { return tenants_[pick(tenants_.size())]; }
  Tenant& find(TenantId id) {
    return *std::find_if(tenants_.begin(), tenants_.end(),
                         [&](const Tenant& t) { return t.id == id; });
  }

  void open() {
    Lease lease;
    lease.id = kLease;
    lease.gpus = {LeaseGpu{kGpu, kLimit, std::nullopt}};
    book_.open(lease);
  }

  const Account& account() const {
    static const Account kNone{Bytes()};
    const Account* found = book_.find(kLease, kGpu).if_there();
    EXPECT_NE(found, nullptr) << "the lease's account is gone with its GPU";
    return found ? *found : kNone;
  }

  // On a lost GPU nothing is measured, and no memory can be allocated.
  void lose() { lost_ = true; }
  void find_again() {
    lost_ = false;
    for (const TenantId id : std::exchange(unmeasured_, {})) measure_gone(id);
  }

  // Messages under way are lost; tenants report what they hold, and ask again. Nobody reports
  // tenants that died before.
  void restart() {
    book_ = GrantBook();
    open();
    book_.hold_until(kLease, now_ + std::chrono::milliseconds(1));
    inbox_.clear();
    unmeasured_.clear();
    for (Tenant& t : tenants_) {
      if (!t.dead) book_.add_tenant(t.id, kLease, {{kGpu, t.used + t.headroom, 0}});
      t.grown_seq = 0;
    }
    for (Tenant& t : tenants_) {
      if (t.dead || !t.asked) continue;
      t.asked = GrowRequest{t.id, ++seq_, false, t.headroom, t.asked->need, t.asked->want};
      t.headroom = Bytes();
      take(book_.grow(kGpu, *t.asked, now_));
    }
  }

  void add_tenant() {
    tenants_.push_back({TenantId{++last_id_}, {}, {}, 0, {}, false});
    book_.add_tenant(tenants_.back().id, kLease, {});
  }

  void allocate(Tenant& t) {
    if (t.asked || t.dead) return;
    const Bytes size = mib(1 + pick(900));
    if (size <= t.headroom) {
      t.headroom -= size;
      t.used += size;
      return;
    }
    t.asked = GrowRequest{t.id, ++seq_, false, t.headroom, size, std::max(size, mib(64))};
    t.headroom = Bytes();
    take(book_.grow(kGpu, *t.asked, now_));
  }

  void free(Tenant& t) {
    const Bytes size = std::min(t.used, mib(1 + pick(900)));
    t.used -= size;
    t.headroom += size;
  }

  // The tenant gets a successor; its memory is gone from the GPU at the next sample.
  void die(Tenant& t) {
    const TenantId id = t.id;
    t.dead = true;
    take(book_.mark_dead(id, now_));
    lost_ ? unmeasured_.push_back(id) : measure_gone(id);
    std::erase_if(inbox_, [&](const auto& a) { return tenant_of(a.action) == id; });
    if (tenants_.size() < 60) add_tenant();
  }

  void measure_gone(TenantId id) {
    take(book_.measure(kLease, kGpu, {{id, {std::nullopt, false, {}, now_}}}, {}, now_));
  }

  static TenantId tenant_of(const GrantAction& action) {
    return std::visit([](const auto& a) { return a.tenant; }, action);
  }

  void take(const AddressedGrantActions& actions) {
    inbox_.insert(inbox_.end(), actions.begin(), actions.end());
  }

  // Messages of the two sockets may overtake each other, so one of the first three messages, chosen
  // at random, is delivered.
  void deliver() {
    if (inbox_.empty()) return;
    const auto at =
        inbox_.begin() + static_cast<long>(pick(std::min<std::size_t>(inbox_.size(), 3)));
    const GrantAction action = at->action;
    inbox_.erase(at);
    Tenant& t = find(tenant_of(action));
    if (t.dead) return;
    if (const auto* reply = std::get_if<GrantReply>(&action)) {
      on_reply(t, *reply);
    } else {
      const auto& recall = std::get<GrantRecall>(action);
      const Bytes back = t.headroom;
      t.headroom = Bytes();
      take(book_.give_back(t.id, kGpu, back, recall.seq, t.grown_seq, now_));
    }
  }

  void on_reply(Tenant& t, const GrantReply& reply) {
    ASSERT_TRUE(t.asked && t.asked->seq == reply.seq);
    const Bytes need = t.asked->need;
    t.asked.reset();
    if (reply.status == GrantStatus::kRefused) {
      ++refused_;
      return;
    }
    ++granted_;
    // The driver fails on a lost GPU: the grant is not used.
    const Bytes used = lost_ ? Bytes() : need;
    t.headroom += reply.granted - used;
    t.used += used;
    t.grown_seq = reply.seq;
  }

  void check() {
    Bytes held;
    for (const Tenant& t : tenants_) {
      if (!t.dead) held += t.used + t.headroom;
    }
    ASSERT_LE(held, kLimit);
    ASSERT_LE(account().charged(), kLimit);
    most_ = std::max(most_, held);
  }

  std::mt19937_64 random_;
  GrantBook book_;
  std::deque<Tenant> tenants_;
  std::deque<AddressedGrantAction> inbox_;
  bool lost_ = false;                 // the GPU
  std::vector<TenantId> unmeasured_;  // which tenants died meanwhile
  std::uint64_t last_id_ = 0;
  std::uint32_t seq_ = 0;
  TimePoint now_{};
  int refused_ = 0;
  int granted_ = 0;
  Bytes most_;
};

class GrantBookSimulation : public testing::TestWithParam<unsigned> {};

TEST_P(GrantBookSimulation, LimitIsKeptAndReachableAndAllMemoryReturns) {
  World world(GetParam());
  for (int i = 0; i < 20000 && !testing::Test::HasFatalFailure(); ++i) world.step();
  EXPECT_GT(world.granted(), 100);
  EXPECT_GT(world.refused(), 10);
  EXPECT_GE(world.most(), Bytes(kLimit.count() / 100 * 95));
  world.end_all();
}

INSTANTIATE_TEST_SUITE_P(Seeds, GrantBookSimulation, testing::Range(1u, 9u));

TEST(GrantBookFit, SlackInFlightCausesNoRefusalOfARequestThatFits) {
  // A grant with slack in it is under way to tenant a. Tenant b asks for that slack and for all the
  // rest.
  GrantBook book;
  Lease lease;
  lease.id = kLease;
  lease.gpus = {LeaseGpu{kGpu, kLimit, std::nullopt}};
  book.open(lease);
  const TenantId a{1}, b{2};
  book.add_tenant(a, kLease, {});
  book.add_tenant(b, kLease, {});
  (void)book.grow(kGpu, {a, 7, false, {}, mib(1), mib(64)}, TimePoint{});
  auto actions = book.grow(kGpu, {b, 8, false, {}, kLimit - mib(1), kLimit - mib(1)}, TimePoint{});
  ASSERT_EQ(actions.size(), 1u);
  const auto round = std::get<GrantRecall>(actions[0].action).seq;
  actions = book.give_back(a, kGpu, Bytes(), round, 0, TimePoint{});  // crossed with the grant
  actions = book.give_back(a, kGpu, mib(63), round, 7, TimePoint{});
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(std::get<GrantReply>(actions[0].action).status, GrantStatus::kGranted);
}

}  // namespace
}  // namespace gpurota::lease
