// Turns, the gate and swap memory together, in real processes on a driver, simulated or NVIDIA's:
//
//   turns_machine [--tenants N] [--memory SIZE] [--capacity SIZE] [--quantum SECONDS] [--seconds S]
//                 [--work SECONDS --pause SECONDS] [--kill SECONDS] [--stop SECONDS]
//
// --kill ends the first tenant with SIGKILL at that time, wherever its memory is; --stop stops it
// for a second. The others continue.
//
// Each tenant has SIZE of memory; together they have more than the capacity, so they take turns.
// Every tenant checks what it reads. Prints each switch, and at the end the cost. Fails if a byte
// was wrong, a tenant got no turn, or more than the capacity was held.
#include "sched/turns.h"
#include "tests/turns/message.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace turns_test {
namespace {

using namespace gpurota;
using namespace gpurota::sched;

struct Options {
  int tenants = 2;
  Bytes memory = mib(192);
  Bytes capacity = mib(256);
  std::optional<double> quantum;
  double seconds = 5;
  double work = 0, pause = 0;
  double kill = 0, stop = 0;  // the times of --kill and --stop; 0: never
};

struct Process {
  pid_t pid = 0;
  int socket = -1;
  bool done = false;
  bool killed = false;
  bool wrong = false;
  std::uint64_t checks = 0;
  int turns = 0;
};

Duration to_duration(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}
double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
TimePoint now() { return std::chrono::steady_clock::now(); }

class Machine {
 public:
  explicit Machine(const Options& options) : options_(options) {}

  bool run() {
    GpuSettings gpu;
    gpu.uuid = kGpu;
    gpu.capacity = options_.capacity;
    if (options_.quantum) gpu.quantum = to_duration(*options_.quantum);
    if (!turns_.set_gpu(gpu)) return false;
    for (int i = 0; i < options_.tenants; ++i) {
      if (!start(i)) return false;
    }
    const TimePoint end = now() + to_duration(options_.seconds);
    const TimePoint begun = now();
    while (now() < end && !somebody_failed()) {
      disturb(to_seconds(now() - begun));
      poll_once(std::min(end, now() + std::chrono::milliseconds(20)));
    }
    for (auto& [id, p] : processes_) say(id, {Kind::kFinish, 0, 0, 0, 0, 0, 0, 0});
    // A tenant that waits at its gate finishes only when its turn comes.
    const TimePoint patience = now() + to_duration(60);
    while (alive() > 0 && now() < patience) poll_once(patience);
    return judge();
  }

 private:
  bool start(int i) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(pair[0]);
      for (const auto& [id, p] : processes_) ::close(p.socket);
      TenantOptions tenant;
      tenant.socket = pair[1];
      tenant.memory = options_.memory.count();
      tenant.work_seconds = options_.work;
      tenant.pause_seconds = options_.pause;
      tenant.seed = static_cast<unsigned>(i) + 1;
      ::_exit(run_tenant(tenant));
    }
    ::close(pair[1]);
    const TenantId id{static_cast<std::uint64_t>(i) + 1};
    processes_[id].pid = pid;
    processes_[id].socket = pair[0];
    LeaseTerms terms;
    terms.id = LeaseId{id.value};
    terms.gpus = {{kGpu, options_.capacity}};
    if (!turns_.check_lease(terms)) return false;
    turns_.add_lease(terms);
    feed(AddTenant{id, terms.id, {}, false});
    return true;
  }

  bool somebody_failed() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const auto& e) { return e.second.done && !e.second.killed; });
  }

  void disturb(double at) {
    const TenantId first{1};
    Process& p = processes_.at(first);
    if (options_.kill > 0 && at > options_.kill && !p.killed) {
      p.killed = true;
      ::kill(p.pid, SIGKILL);
      feed(TenantDied{first});
    }
    const bool stops = options_.stop > 0 && at > options_.stop && at < options_.stop + 1;
    if (stops == stopped_) return;
    stopped_ = stops;
    ::kill(p.pid, stops ? SIGSTOP : SIGCONT);
    feed(Reachable{first, !stops});
  }

  int alive() const {
    return static_cast<int>(std::count_if(processes_.begin(), processes_.end(),
                                          [](const auto& e) { return !e.second.done; }));
  }

  void poll_once(TimePoint end) {
    TimePoint until = end;
    if (const auto next = turns_.next_deadline()) until = std::min(until, *next);
    std::vector<pollfd> fds;
    std::vector<TenantId> ids;
    for (const auto& [id, p] : processes_) {
      if (p.done) continue;
      fds.push_back({p.socket, POLLIN, 0});
      ids.push_back(id);
    }
    const double left = std::max(0.0, to_seconds(until - now()));
    const int n = ::poll(fds.data(), fds.size(), static_cast<int>(left * 1000) + 1);
    if (n == 0) feed(Tick{});
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0) receive(ids[i]);
    }
  }

  void receive(TenantId id) {
    Message m{};
    Process& p = processes_.at(id);
    if (::recv(p.socket, &m, sizeof(m), 0) <= 0) {
      p.done = true;
      int status = 0;
      ::waitpid(p.pid, &status, 0);
      p.wrong = p.wrong || (status != 0 && !p.killed);
      feed(RemoveTenant{id});
      return;
    }
    switch (m.kind) {
      case Kind::kStatus:
        return feed(TenantStatus{id, m.seq, m.busy != 0, m.waiting, m.busy != 0 ? 0 : m.waiting});
      case Kind::kGrow:
        return feed(Grow{id, kGpu, m.seq, Bytes(m.bytes), false});
      case Kind::kEvicted:
        return feed(Evicted{id, kGpu, Bytes(m.bytes), Bytes(m.returned), m.failed != 0});
      case Kind::kRestored:
        return feed(Restored{id, kGpu, Bytes(m.bytes), Bytes(m.returned), m.failed != 0});
      case Kind::kResult:
        p.checks = m.bytes;
        p.wrong = p.wrong || m.busy != 0;
        return;
      default:
        return;
    }
  }

  void feed(const Event& event) {
    for (const Action& action : turns_.handle(event, now())) {
      std::visit([this](const auto& a) { carry_out(a); }, action);
    }
    over_ = over_ || turns_.residency().used(GpuSlot{0}) > options_.capacity;
    show_switches();
  }

  void say(TenantId id, const Message& m) {
    (void)::send(processes_.at(id).socket, &m, sizeof(m), MSG_NOSIGNAL);
  }
  void carry_out(const SetGate& a) {
    const std::uint32_t order = a.order == GateOrder::kOpen    ? 0
                                : a.order == GateOrder::kClose ? 1
                                                               : 2;
    if (order == 0) ++processes_.at(a.tenant).turns;
    say(a.tenant, {Kind::kGate, a.seq, order, 0, 0, 0, 0, 0});
  }
  void carry_out(const Evict& a) {
    say(a.tenant, {Kind::kEvict, 0, 0, 0, 0, 0, a.bytes.count(), 0});
  }
  void carry_out(const Restore& a) {
    say(a.tenant, {Kind::kRestore, 0, 0, 0, 0, 0, a.bytes.count(), 0});
  }
  void carry_out(const AnswerGrow& a) {
    const bool yes = a.answer == GrowAnswer::kGranted;
    say(a.tenant, {yes ? Kind::kGranted : Kind::kRefused, a.seq, 0, 0, 0, 0, 0, 0});
  }
  void carry_out(const ReportTrouble& a) {
    std::printf("%s\n", sched::to_string(Action(a)).c_str());
    troubled_ = true;
  }

  void show_switches() {
    const GpuView gpu = turns_.view()[0];
    if (gpu.switches.empty() || gpu.switches.back().at == shown_) return;
    const SwitchRecord& record = gpu.switches.back();
    const Moved& s = record.moved;
    shown_ = record.at;
    const Bytes moved = s.in + s.out;
    if (moved.is_zero()) return;
    std::printf("%s -> %s: in %s, out %s, %.3f s, %.1f GiB/s\n", to_string(record.from).c_str(),
                to_string(record.to).c_str(), to_string(s.in).c_str(), to_string(s.out).c_str(),
                to_seconds(s.took),
                static_cast<double>(moved.count()) / to_seconds(s.took) / (1 << 30));
    took_.push_back(to_seconds(s.took));
  }

  bool judge() {
    bool good = !over_ && !troubled_ && alive() == 0;
    for (const auto& [id, p] : processes_) {
      std::printf("tenant %llu: %llu checks, %d turns%s\n",
                  static_cast<unsigned long long>(id.value),
                  static_cast<unsigned long long>(p.checks), p.turns, p.wrong ? ", WRONG" : "");
      good = good && !p.wrong && (p.checks > 0 || p.killed) && p.turns > 0;
    }
    if (!took_.empty()) {
      std::sort(took_.begin(), took_.end());
      std::printf("%zu switches moved memory, median %.3f s\n", took_.size(),
                  took_[took_.size() / 2]);
    }
    if (over_) std::printf("more than the capacity was held\n");
    if (alive() > 0) std::printf("%d tenants did not end\n", alive());
    return good && !took_.empty();
  }

  static inline const GpuUuid kGpu{"GPU-0"};
  const Options options_;
  Turns turns_;
  std::map<TenantId, Process> processes_;
  std::vector<double> took_;
  TimePoint shown_{};
  bool over_ = false;
  bool troubled_ = false;
  bool stopped_ = false;
};

bool read_option(const std::string& name, const char* value, Options* options) {
  const std::map<std::string, double*> numbers = {
      {"--seconds", &options->seconds}, {"--work", &options->work}, {"--pause", &options->pause},
      {"--kill", &options->kill},       {"--stop", &options->stop},
  };
  const std::map<std::string, Bytes*> sizes = {{"--memory", &options->memory},
                                               {"--capacity", &options->capacity}};
  if (const auto found = numbers.find(name); found != numbers.end()) {
    *found->second = std::atof(value);
  } else if (const auto size = sizes.find(name); size != sizes.end()) {
    const auto bytes = parse_bytes(value);
    if (!bytes) return false;
    *size->second = *bytes;
  } else if (name == "--tenants") {
    options->tenants = std::atoi(value);
  } else if (name == "--quantum") {
    options->quantum = std::atof(value);
  } else {
    return false;
  }
  return true;
}

bool read_options(int argc, char** argv, Options* options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!read_option(argv[i], argv[i + 1], options)) return false;
  }
  return argc % 2 == 1;
}

}  // namespace
}  // namespace turns_test

int main(int argc, char** argv) {
  turns_test::Options options;
  if (!turns_test::read_options(argc, argv, &options)) {
    std::fprintf(
        stderr,
        "usage: turns_machine [--tenants N] [--memory SIZE] [--capacity SIZE] [--quantum S] "
        "[--seconds S] [--work S --pause S] [--kill S] [--stop S]\n");
    return 2;
  }
  return turns_test::Machine(options).run() ? 0 : 1;
}
