// Simulates users who always want more, in virtual time and from a seed, and tests what the fair
// share promises about order, proportion and the longest wait.
#include "lease/fair_share.h"
#include "lease/request_queue.h"
#include "testing/effort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using std::chrono::minutes;

constexpr std::chrono::seconds kHalfLife = 48h;
constexpr std::chrono::seconds kLongestWait = 24h;
constexpr minutes kLongestRun{300};

class FairLab {
 public:
  FairLab(std::uint64_t seed, std::vector<int> weights)
      : random_(seed), weights_(std::move(weights)) {
    for (int i = 0; i < 4; ++i) {
      GpuRoom room;
      room.info.index = i;
      room.info.uuid = GpuUuid{"GPU-" + std::to_string(i)};
      room.info.memory = room.capacity = gib(80);
      rooms_.push_back(room);
    }
  }

  // Each user always has a few waiting requests. The first `greedy` users want many GPUs.
  void run(WallTime end, std::size_t greedy) {
    while (now_ < end && !::testing::Test::HasFailure()) {
      const minutes passed(pick(1, 60));
      now_ += passed;
      keeping_.pass(facts_, passed);
      end_what_is_due();
      for (std::size_t user = 0; user < weights_.size(); ++user) submit(user, user < greedy);
      settle();
    }
  }

  std::map<std::size_t, double> gpu_hours;  // by user

 private:
  struct Run {
    Occupant occupant;
    std::size_t user;
  };
  struct Wish {
    Request request;
    std::size_t user;
    WallTime since;
    std::optional<WallTime> bound;  // for its start, once it is overdue
  };
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  void end_what_is_due() {
    std::erase_if(runs_, [&](const Run& run) { return *run.occupant.ends <= now_; });
  }

  void submit(std::size_t user, bool is_greedy) {
    const auto mine = std::count_if(wishes_.begin(), wishes_.end(),
                                    [&](const Wish& w) { return w.user == user; });
    if (mine >= 2) return;
    Request request;
    request.id = RequestId{++last_};
    request.user = std::to_string(user);
    request.placement.count = is_greedy ? pick(2, 4) : 1;
    request.lasts = minutes(pick(10, static_cast<int>(kLongestRun.count())));
    wishes_.push_back({std::move(request), user, now_, {}});
  }

  double used(std::size_t user) const {
    double seconds = 0;
    for (const Past& past : past_) {
      if (past.user != user || past.since >= now_) continue;
      const WallTime until = std::min(past.until, now_);
      const double amount = std::chrono::duration<double>(until - past.since).count() * past.gpus;
      seconds += decayed(amount, past.since, until, now_, kHalfLife);
    }
    return seconds;
  }

  Claim claim_of(const Wish& wish, const std::vector<double>& used) const {
    FairShare share;
    share.used = std::chrono::seconds(static_cast<std::int64_t>(used[wish.user]));
    share.weight = weights_[wish.user];
    return {wish.request.id, share, now_ - wish.since >= kLongestWait};
  }

  void sort() {
    std::vector<double> all;
    for (std::size_t user = 0; user < weights_.size(); ++user) all.push_back(used(user));
    std::sort(wishes_.begin(), wishes_.end(), [&](const Wish& a, const Wish& b) {
      return goes_before(claim_of(a, all), claim_of(b, all));
    });
    // Requests that have waited for kLongestWait are served in the order of their arrival, and the
    // first of them is protected. A request that has become the first waits at most until all
    // leases that ran at that time have ended.
    int ahead = 0;
    for (Wish& wish : wishes_) {
      if (now_ - wish.since < kLongestWait) break;
      ++ahead;
      if (!wish.bound) wish.bound = now_ + ahead * (kLongestRun + minutes(61));
    }
  }

  void settle() {
    for (bool again = true; again;) {
      sort();
      std::vector<Request> queue;
      std::vector<Occupant> leases;
      for (const Wish& wish : wishes_) {
        queue.push_back(wish.request);
        queue.back().waited =
            std::chrono::duration_cast<std::chrono::milliseconds>(now_ - wish.since);
      }
      for (const Run& run : runs_) leases.push_back(run.occupant);
      const QueueDecision decision =
          decide({queue, rooms_, leases, topology_, {}, &keeping_}, now_);
      for (const Grant& grant : decision.grants) start(grant);
      again = !decision.grants.empty();
      if (!again) facts_ = decision.keeping;
    }
    for (const Wish& wish : wishes_) {
      if (wish.bound) {
        EXPECT_LE(now_, *wish.bound)
            << to_string(wish.request.id) << " of " << wish.user << " starves";
      }
    }
  }

  void start(const Grant& grant) {
    const auto at = std::find_if(wishes_.begin(), wishes_.end(),
                                 [&](const Wish& w) { return w.request.id == grant.request; });
    std::vector<GpuUuid> kept;
    for (const LeaseGpu& share : grant.gpus) kept.push_back(share.uuid);
    keeping_.on_start(grant.request, kept, facts_);
    Run run;
    run.user = at->user;
    run.occupant.id = LeaseId{++last_};
    run.occupant.gpus = grant.gpus;
    run.occupant.ends = now_ + *at->request.lasts;
    const auto gpus = static_cast<double>(grant.gpus.size());
    past_.push_back({at->user, now_, *run.occupant.ends, gpus});
    gpu_hours[at->user] += std::chrono::duration<double>(*at->request.lasts).count() / 3600 * gpus;
    runs_.push_back(std::move(run));
    wishes_.erase(at);
  }

  struct Past {
    std::size_t user;
    WallTime since, until;
    double gpus;
  };
  std::mt19937_64 random_;
  std::vector<int> weights_;
  std::vector<GpuRoom> rooms_;
  Topology topology_;
  std::vector<Run> runs_;
  std::vector<Wish> wishes_;
  std::vector<Past> past_;
  std::uint64_t last_ = 0;
  WallTime now_{};
  Keeping keeping_;
  KeepingFacts facts_;
};

TEST(FairLab, GreedyUsersGetGpuTimeByWeight) {
  for (std::uint64_t seed = 1; seed <= testing::effort(3U); ++seed) {
    FairLab lab(seed, {1, 1, 2, 4});
    lab.run(WallTime(24h * 40), 0);
    const double all = lab.gpu_hours[0] + lab.gpu_hours[1] + lab.gpu_hours[2] + lab.gpu_hours[3];
    EXPECT_NEAR(lab.gpu_hours[0] / all, 1.0 / 8, 0.03) << "seed " << seed;
    EXPECT_NEAR(lab.gpu_hours[2] / all, 2.0 / 8, 0.03) << "seed " << seed;
    EXPECT_NEAR(lab.gpu_hours[3] / all, 4.0 / 8, 0.05) << "seed " << seed;
  }
}

TEST(FairLab, NobodyStarves) {
  for (std::uint64_t seed = 1; seed <= testing::effort(10U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    // Two users want up to the whole machine and have a low weight, beside many who want one GPU
    // each.
    FairLab lab(seed, {1, 1, 100, 100, 100, 100, 100, 100, 100, 100});
    lab.run(WallTime(24h * 20), 2);
    EXPECT_GT(lab.gpu_hours[0], 0);
    EXPECT_GT(lab.gpu_hours[1], 0);
  }
}

}  // namespace
}  // namespace gpurota::lease
