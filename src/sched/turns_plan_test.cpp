// Random plans for the simulated machine, and the reduction of a failing plan.
#include "sched/turns_world_test.h"

#include <algorithm>
#include <random>

namespace gpurota::sched::testing_world {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return pick(n) == 0; }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) / 9007199254740992.0;
  }

 private:
  std::mt19937_64 random_;
};

constexpr Bytes kWired = mib(600);

Duration ms(std::uint64_t n) { return std::chrono::milliseconds(n); }

Settings random_settings(Dice& dice) {
  Settings s;
  s.piece = dice.one_in(4) ? mib(256) : gib(1);
  s.most_quantum = std::chrono::seconds(20);
  if (dice.one_in(3)) s.quantum = ms(200 + dice.pick(8000));
  if (dice.one_in(3)) s.priority_share = dice.between(0.2, 0.8);
  if (dice.one_in(4)) s.host_budget = gib(30 + dice.pick(200));
  s.stopped_deadline = {};
  return s;
}

LeasePlan random_lease(Dice& dice, const Plan& plan, std::uint64_t id) {
  LeasePlan lease;
  lease.terms.id = LeaseId{id};
  for (const GpuSettings& gpu : plan.gpus) {
    if (lease.terms.gpus.empty() ? dice.one_in(plan.gpus.size()) : dice.one_in(2)) {
      lease.terms.gpus.push_back({gpu.uuid, {}});
    }
  }
  if (lease.terms.gpus.empty()) {
    lease.terms.gpus.push_back({plan.gpus[dice.pick(plan.gpus.size())].uuid, {}});
  }
  lease.terms.weight = 1 + static_cast<unsigned>(dice.pick(3));
  lease.terms.priority = dice.one_in(5) ? 1 : 0;
  if (dice.one_in(6)) lease.terms.quantum = ms(dice.one_in(4) ? 0 : 100 + dice.pick(5000));
  lease.tenants = 1 + static_cast<int>(dice.pick(2));
  lease.wired = kWired;
  lease.kernel = dice.one_in(4) ? 0.3 : 0.005;
  lease.churns = dice.one_in(3);
  if (dice.one_in(2)) {
    lease.work = dice.between(0.01, 6);
    lease.pause = dice.between(0.05, 6);
  } else if (lease.tenants > 1) {
    lease.collective = dice.one_in(2);
  }
  return lease;
}

void size_leases(Dice& dice, Plan& plan) {
  std::uint64_t tenants = 0;
  for (const LeasePlan& lease : plan.leases) tenants += static_cast<std::uint64_t>(lease.tenants);
  const Bytes wired(kWired.count() * tenants);
  for (LeasePlan& lease : plan.leases) {
    Bytes least = gib(1000);
    const auto own = static_cast<std::uint64_t>(lease.tenants);
    for (LeaseTerms::Gpu& gpu : lease.terms.gpus) {
      Bytes capacity;
      for (const GpuSettings& g : plan.gpus) {
        if (g.uuid == gpu.uuid) capacity = g.capacity;
      }
      gpu.limit = capacity - wired + Bytes(kWired.count() * own);
      least = std::min(least, capacity - wired);
    }
    const double share = dice.between(0.1, 0.98) / static_cast<double>(own);
    lease.memory = Bytes(static_cast<std::uint64_t>(static_cast<double>(least.count()) * share));
    if (!dice.one_in(4)) continue;
    const Bytes all((lease.memory.count() + kWired.count()) * own);
    for (LeaseTerms::Gpu& gpu : lease.terms.gpus) {
      gpu.soft_limit = Bytes(all.count() / 100 * (70 + dice.pick(40)));
    }
  }
}

void sort_script(Plan& plan) {
  std::stable_sort(plan.script.begin(), plan.script.end(),
                   [](const ScriptLine& a, const ScriptLine& b) { return a.at < b.at; });
}

void random_script(Dice& dice, Plan& plan) {
  const auto add = [&](double at, Act act, std::size_t lease, int tenant, Bytes bytes = {}) {
    plan.script.push_back({at, act, static_cast<int>(lease), tenant, bytes});
  };
  for (std::size_t i = 0; i < plan.leases.size(); ++i) {
    const double start = dice.between(0, plan.seconds / (dice.one_in(3) ? 2 : 50));
    add(start, Act::kStart, i, 0);
    if (dice.one_in(3)) add(dice.between(start, plan.seconds), Act::kEnd, i, 0);
    const int tenant =
        static_cast<int>(dice.pick(static_cast<std::uint64_t>(plan.leases[i].tenants)));
    if (dice.one_in(3)) {
      const double stop = dice.between(start, plan.seconds);
      add(stop, Act::kStop, i, tenant);
      add(stop + dice.between(0.1, 60), Act::kContinue, i, tenant);
    }
    if (dice.one_in(4)) add(dice.between(start, plan.seconds), Act::kKill, i, tenant);
    if (dice.one_in(4)) add(dice.between(start, plan.seconds), Act::kFailMoves, i, tenant);
  }
  while (dice.one_in(2)) add(dice.between(1, plan.seconds), Act::kRestart, 0, 0);
  if (dice.one_in(4)) {
    const std::size_t g = dice.pick(plan.gpus.size());
    const auto bytes = static_cast<std::uint64_t>(
        static_cast<double>(plan.gpus[g].capacity.count()) * dice.between(0.7, 1.2));
    add(dice.between(1, plan.seconds), Act::kCapacity, g, 0, Bytes(bytes));
  }
  sort_script(plan);
}

// Sets the host budget to about the memory that does not fit on the GPUs.
void make_host_memory_scarce(Dice& dice, Plan& plan) {
  Bytes all, capacity;
  for (const GpuSettings& gpu : plan.gpus) capacity += gpu.capacity;
  std::uint64_t leases = 0;
  for (const LeasePlan& lease : plan.leases) {
    const auto times = static_cast<std::uint64_t>(lease.tenants) * lease.terms.gpus.size();
    all += Bytes((lease.memory + lease.wired).count() * times);
    ++leases;
  }
  const auto deficit = static_cast<double>((all - capacity).count());
  const Bytes pieces(plan.settings.piece.count() * 2 * leases);
  plan.settings.host_budget =
      pieces + Bytes(static_cast<std::uint64_t>(deficit * dice.between(0.5, 3)));
}

}  // namespace

Plan random_plan_with_asides(unsigned seed, double seconds) {
  Plan plan = random_plan(seed, seconds);
  Dice dice(seed + 1'000'000'007u);
  for (std::size_t i = 0; i < plan.leases.size(); ++i) {
    for (std::uint64_t left = dice.pick(5); left > 0; --left) {
      const double from = dice.between(0, seconds);
      const double until = from + dice.between(0.001, dice.one_in(3) ? 2 : 300);
      plan.script.push_back({from, Act::kAside, static_cast<int>(i), 0, {}});
      plan.script.push_back({until, Act::kBack, static_cast<int>(i), 0, {}});
    }
  }
  sort_script(plan);
  return plan;
}

Plan random_plan_with_losses(unsigned seed, double seconds) {
  Plan plan = random_plan_with_asides(seed, seconds);
  Dice dice(seed + 4'100'000'021u);
  plan.renumbers = true;
  const auto add = [&](double at, Act act, std::size_t gpu, int at_once) {
    plan.script.push_back({at, act, static_cast<int>(gpu), at_once, {}});
  };
  for (std::size_t g = 0; g < plan.gpus.size(); ++g) {
    for (std::uint64_t left = dice.pick(4); left > 0; --left) {
      const double from = dice.between(0, seconds);
      const double until = from + dice.between(0.001, dice.one_in(3) ? 2 : 900);
      add(from, Act::kLose, g, 0);
      if (!dice.one_in(4)) add(dice.between(from, until), Act::kRestart, 0, 0);
      if (!dice.one_in(6)) add(until, Act::kFind, g, dice.one_in(2) ? 1 : 0);
      if (dice.one_in(2)) add(until + dice.between(0, 60), Act::kRestart, 0, 0);
    }
  }
  constexpr Shape kShapes[] = {Shape::kAny, Shape::kEqual, Shape::kTorch, Shape::kOdd};
  for (LeasePlan& lease : plan.leases) lease.shape = kShapes[dice.pick(4)];
  sort_script(plan);
  return plan;
}

Plan random_plan_with_blocks(unsigned seed, double seconds) {
  Plan plan = random_plan(seed, seconds);
  Dice dice(seed + 3'000'000'019u);
  constexpr Shape kShapes[] = {Shape::kEqual, Shape::kLlama, Shape::kTorch, Shape::kVllm,
                               Shape::kOdd};
  for (LeasePlan& lease : plan.leases) lease.shape = kShapes[dice.pick(5)];
  return plan;
}

Plan random_plan_with_doubts(unsigned seed, double seconds) {
  Plan plan = random_plan_with_blocks(seed, seconds);
  Dice dice(seed + 3'600'000'013u);
  for (LeasePlan& lease : plan.leases) lease.doubted = dice.one_in(2);
  return plan;
}

Plan random_plan_with_endless_stops(unsigned seed, double seconds) {
  Plan plan = random_plan_with_blocks(seed, seconds);
  Dice dice(seed + 1'700'000'009u);
  plan.settings.stopped_deadline = ms(500 + dice.pick(10000));
  std::erase_if(plan.script, [&](const ScriptLine& line) {
    return line.act == Act::kContinue && !dice.one_in(4);
  });
  for (std::size_t i = 0; i < plan.leases.size(); ++i) {
    const int tenant =
        static_cast<int>(dice.pick(static_cast<std::uint64_t>(plan.leases[i].tenants)));
    if (dice.one_in(2))
      plan.script.push_back(
          {dice.between(0, seconds), Act::kStop, static_cast<int>(i), tenant, {}});
  }
  sort_script(plan);
  return plan;
}

Plan random_plan_with_captures(unsigned seed, double seconds) {
  Plan plan = random_plan_with_blocks(seed, seconds);
  Dice dice(seed + 2'500'000'003u);
  // Longer than drains and moves take, but shorter than the time until others happen to free memory
  // that a lease waits for.
  plan.settings.yield_deadline = std::chrono::seconds(4);
  const auto excuses = [](const ScriptLine& line) {  // reasons why a lease does not yield
    return line.act != Act::kStart && line.act != Act::kEnd;
  };
  std::erase_if(plan.script, excuses);
  // Near the point where all memory just fits: turns begin and end repeatedly, and all leases hold
  // the GPU at each beginning.
  for (LeasePlan& lease : plan.leases) {
    lease.captures = dice.one_in(2);
    lease.churns = true;
    const auto tenants = static_cast<double>(plan.leases.size()) * lease.tenants;
    const auto part = static_cast<double>(lease.memory.count()) * dice.between(1.2, 2.5) / tenants;
    lease.memory = std::min(lease.memory, Bytes(static_cast<std::uint64_t>(part)));
  }
  return plan;
}

Plan random_plan_with_outsiders(unsigned seed, double seconds) {
  Plan plan = random_plan_with_blocks(seed, seconds);
  Dice dice(seed + 4'000'000'007u);
  if (dice.one_in(2)) make_host_memory_scarce(dice, plan);
  const auto grow = [&](Act act, std::size_t whose, int tenant, Bytes most) {
    for (std::uint64_t left = dice.pick(6); left > 0; --left) {
      const double from = dice.between(0, seconds);
      const double until = from + dice.between(0.001, dice.one_in(3) ? 2 : 300);
      const Bytes bytes(dice.pick(most.count() / (dice.one_in(2) ? 20 : 3)));
      plan.script.push_back({from, act, static_cast<int>(whose), tenant, bytes});
      plan.script.push_back({until, act, static_cast<int>(whose), tenant, {}});
    }
  };
  for (std::size_t g = 0; g < plan.gpus.size(); ++g) {
    grow(Act::kOutsiders, g, 0, plan.gpus[g].capacity);
  }
  for (std::size_t i = 0; i < plan.leases.size(); ++i) {
    grow(Act::kBeside, i, static_cast<int>(dice.pick(2)), gib(6));
  }
  sort_script(plan);
  return plan;
}

Plan random_plan_with_oversize(unsigned seed, double seconds) {
  Plan plan = random_plan_with_asides(seed, seconds);
  Dice dice(seed + 2'000'000'011u);
  plan.settings.host_budget = gib(60 + dice.pick(300));
  for (LeasePlan& lease : plan.leases) {
    if (dice.one_in(3)) continue;
    const auto own = static_cast<std::uint64_t>(lease.tenants);
    double most = 1e18;
    for (LeaseTerms::Gpu& gpu : lease.terms.gpus) {
      gpu.oversize = gib(1 + dice.pick(40));
      const Bytes limit = gpu.limit - Bytes(lease.wired.count() * own);
      most = std::min(most, static_cast<double>(limit.count()) * dice.between(0.3, 1) +
                                static_cast<double>(gpu.oversize.count()) * dice.between(0.3, 1.1));
    }
    lease.memory = Bytes(static_cast<std::uint64_t>(most) / own);
  }
  return plan;
}

Plan random_plan(unsigned seed, double seconds) {
  Dice dice(seed);
  Plan plan;
  plan.seed = seed;
  plan.seconds = seconds;
  plan.settings = random_settings(dice);
  const std::uint64_t gpus = 1 + dice.pick(3);
  for (std::uint64_t i = 0; i < gpus; ++i) {
    GpuSettings gpu;
    gpu.uuid = GpuUuid{"GPU-" + std::to_string(i)};
    gpu.capacity = gib(20 + dice.pick(60));
    if (dice.one_in(8)) gpu.mode = TurnsMode::kOn;
    if (dice.one_in(12)) gpu.mode = TurnsMode::kOff;
    if (dice.one_in(6)) gpu.quantum = ms(200 + dice.pick(5000));
    plan.gpus.push_back(gpu);
  }
  const std::uint64_t leases = 2 + dice.pick(5);
  for (std::uint64_t i = 1; i <= leases; ++i) plan.leases.push_back(random_lease(dice, plan, i));
  size_leases(dice, plan);
  random_script(dice, plan);
  return plan;
}

double longest_wait(const Plan& plan) {
  double longest_quantum = std::chrono::duration<double>(plan.settings.most_quantum).count();
  if (plan.settings.quantum) {
    longest_quantum = std::chrono::duration<double>(*plan.settings.quantum).count();
  }
  double turns = 0;
  for (const LeasePlan& lease : plan.leases) {
    if (lease.terms.quantum) {
      const bool from_cost = *lease.terms.quantum == Duration::zero();
      const Duration most = from_cost ? plan.settings.most_quantum : *lease.terms.quantum;
      longest_quantum = std::max(longest_quantum, std::chrono::duration<double>(most).count());
    }
    turns += lease.terms.weight;
  }
  for (const GpuSettings& gpu : plan.gpus) {
    if (!gpu.quantum) continue;
    longest_quantum =
        std::max(longest_quantum, std::chrono::duration<double>(*gpu.quantum).count());
  }
  constexpr double kSwitch = 6;  // to move 80 GiB both ways, drain, and let submissions through
  // A lease may have had more than its part because nobody else could use the GPU. The lease makes
  // up for four quanta of that at most.
  const double others = (turns + 5) * (longest_quantum + kSwitch) * 2;
  return others / (1 - plan.settings.priority_share);
}

std::string to_string(const Plan& plan) {
  static constexpr const char* kActs[] = {"start",      "end",     "stop",     "continue", "kill",
                                          "fail moves", "restart", "capacity", "aside",    "back",
                                          "outsiders",  "beside",  "lose",     "find"};
  std::string text = "seed " + std::to_string(plan.seed) + "\n";
  for (const GpuSettings& gpu : plan.gpus) {
    text += "  " + gpu.uuid.value + " " + gpurota::to_string(gpu.capacity) + " mode " +
            std::to_string(static_cast<int>(gpu.mode)) + "\n";
  }
  for (const LeasePlan& lease : plan.leases) {
    text += "  " + gpurota::to_string(lease.terms.id) + ": " + std::to_string(lease.tenants) +
            " x " + gpurota::to_string(lease.memory) + " on";
    for (const LeaseTerms::Gpu& gpu : lease.terms.gpus) text += " " + gpu.uuid.value;
    text += ", weight " + std::to_string(lease.terms.weight) + ", priority " +
            std::to_string(lease.terms.priority) + ", work " + std::to_string(lease.work) +
            ", pause " + std::to_string(lease.pause) +
            (lease.terms.gpus.front().soft_limit ? ", soft limit" : "") +
            (lease.terms.gpus.front().oversize.is_zero() ? "" : ", oversize") +
            (lease.collective ? ", collective" : "") + (lease.captures ? ", captures" : "") +
            (lease.churns ? ", churns" : "") + (lease.doubted ? ", doubted" : "") + ", shape " +
            std::to_string(static_cast<int>(lease.shape)) + "\n";
  }
  for (const ScriptLine& line : plan.script) {
    text += "  " + std::to_string(line.at) + " s: " + kActs[static_cast<int>(line.act)] + " " +
            std::to_string(line.lease) + "/" + std::to_string(line.tenant) +
            (line.bytes.is_zero() ? "" : " " + gpurota::to_string(line.bytes)) + "\n";
  }
  return text;
}

Plan cut_down(const Plan& plan) {
  Plan best = plan;
  for (std::size_t size = best.script.size(); size >= 1; size /= 2) {
    for (std::size_t from = 0; from < best.script.size();) {
      Plan less = best;
      const auto first = less.script.begin() + static_cast<long>(from);
      const auto count = std::min(size, less.script.size() - from);
      less.script.erase(first, first + static_cast<long>(count));
      if (simulate(less).failure.empty()) {
        from += size;
      } else {
        best = less;
      }
    }
  }
  return best;
}

}  // namespace gpurota::sched::testing_world
