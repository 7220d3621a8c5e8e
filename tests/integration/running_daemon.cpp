#include "running_daemon.h"

#include "base/log.h"
#include "sys/clock.h"
#include "sys/secret.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace gpurota::testing {

class RunningDaemon::SharedProbe final : public ports::GpuProbe {
 public:
  explicit SharedProbe(FakeGpuProbe& probe) : probe_(probe) {}
  Result<ports::DriverInfo> read_driver() override { return probe_.read_driver(); }
  Result<std::vector<GpuInfo>> read_gpus() override { return probe_.read_gpus(); }
  std::vector<GpuLink> read_links(const std::vector<GpuInfo>& gpus) override {
    return probe_.read_links(gpus);
  }
  GpuSample read_sample(const GpuInfo& gpu) override { return probe_.read_sample(gpu); }
  GpuFigures read_figures(const GpuInfo& gpu, bool processes) override {
    return probe_.read_figures(gpu, processes);
  }
  Result<std::vector<pid_t>> read_compute_pids(const GpuInfo& gpu) override {
    return probe_.read_compute_pids(gpu);
  }
  std::vector<Setting> read_settings(const GpuInfo& gpu) override {
    return probe_.read_settings(gpu);
  }
  Result<ports::MemoryLimits> read_memory_limits(const GpuInfo& gpu,
                                                 const std::string& group) override {
    return probe_.read_memory_limits(gpu, group);
  }
  Result<void> set_memory_limit(const GpuInfo& gpu, const std::string& group,
                                std::optional<Bytes> hard) override {
    return probe_.set_memory_limit(gpu, group, hard);
  }

 private:
  FakeGpuProbe& probe_;
};

class ToldProcesses final : public sys::SystemProcesses {
 public:
  ToldProcesses(ports::EventLoop& loop, const std::atomic<std::uint64_t>& memory)
      : SystemProcesses(loop), memory_(memory) {}
  Result<Bytes> private_memory(pid_t /*pid*/) override { return Bytes(memory_.load()); }

 private:
  const std::atomic<std::uint64_t>& memory_;
};

config::Config RunningDaemon::quick() {
  config::Config config;
  config.watch_period = std::chrono::milliseconds(20);
  config.watch.idle_period = std::chrono::milliseconds(20);
  config.grace = std::chrono::milliseconds(200);
  config.reconnect_grace = std::chrono::milliseconds(0);
  return config;
}

RunningDaemon::RunningDaemon(config::Config config) : config_(std::move(config)) {
  log::set_level(log::Level::kError);
  probe.add_gpu(gib(24));
  start();
}

RunningDaemon::~RunningDaemon() { stop(); }

void RunningDaemon::start() {
  const auto started = try_start();
  if (started) return;
  std::fprintf(stderr, "%s\n", started.error().message.c_str());
  std::abort();
}

Result<void> RunningDaemon::try_start() {
  auto loop = sys::SdEventLoop::make();
  if (!loop) std::abort();
  loop_ = std::move(*loop);
  // The daemon is created and destroyed on the thread that runs it.
  std::promise<Result<void>> done;
  thread_ = std::thread([this, &done] {
    ToldProcesses processes(*loop_, host_memory);
    daemon::Daemon::World world{*loop_,
                                [this] { return std::make_unique<SharedProbe>(probe); },
                                store,
                                processes,
                                sys::wall_now,
                                [] { return sys::random_hex(GPUROTA_TOKEN_CHARS).value_or(""); },
                                database,
                                [this] {
                                  const std::lock_guard lock(config_mutex_);
                                  return config::parse({{"gpurota.toml", config_text_}});
                                }};
    world.patience = patience;
    config::Loaded loaded;
    loaded.config = config_;
    daemon::Daemon::Places places{control_socket(), tenant_socket(), "/libgpurota.so"};
    places.roster = dir_.file("tenants");
    places.driver_limits = dir_.file("driver-limits");
    daemon::Daemon daemon(world, loaded, places);
    daemon_ = &daemon;
    Result<void> started = daemon.ask();
    if (started) started = daemon.start();
    done.set_value(started);
    if (started) (void)loop_->run();
  });
  const Result<void> started = done.get_future().get();
  if (!started) thread_.join();
  return started;
}

void RunningDaemon::stop() {
  if (!thread_.joinable()) return;
  loop_->post([this] { loop_->stop(); });
  thread_.join();
}

void RunningDaemon::finish() {
  loop_->post([this] { daemon_->finish([this] { loop_->stop(); }); });
  thread_.join();
}

void RunningDaemon::set_config_text(std::string text) {
  const std::lock_guard lock(config_mutex_);
  config_text_ = std::move(text);
}

client::Connection RunningDaemon::connect() const {
  auto connection = client::Connection::open(control_socket());
  if (!connection) {
    std::fprintf(stderr, "%s\n", connection.error().message.c_str());
    std::abort();
  }
  return std::move(*connection);
}

proto::Acquire::Reply RunningDaemon::acquire_slice(client::Connection& connection,
                                                   Bytes limit) const {
  proto::Acquire call;
  call.request.memory = SizeSpec{limit, 0};
  auto reply = connection.call(call);
  if (!reply) {
    std::fprintf(stderr, "%s\n", reply.error().message.c_str());
    std::abort();
  }
  return *reply;
}

proto::Acquire::Reply RunningDaemon::keep_slice(Bytes limit) {
  kept_.push_back(connect());
  return acquire_slice(kept_.back(), limit);
}

Bytes RunningDaemon::granted() const {
  const auto status = call(proto::Status{});
  if (!status || status->leases.size() != 1) return Bytes(UINT64_MAX);
  return status->leases[0].gpus[0].granted_bytes;
}

Child::Child(std::vector<std::string> arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  output_ = Fd(ends[0]);
  const Fd write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  int input[2];
  if (::pipe2(input, O_CLOEXEC) != 0) std::abort();
  const Fd read_end(input[0]);
  input_ = Fd(input[1]);
  ::posix_spawn_file_actions_adddup2(&actions, read_end.get(), STDIN_FILENO);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  if (::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) std::abort();
  ::posix_spawn_file_actions_destroy(&actions);
}

Child::~Child() { kill(); }

std::string Child::read_line() {
  std::string line;
  char c = 0;
  while (::read(output_.get(), &c, 1) == 1 && c != '\n') line += c;
  return line;
}

void Child::write_line(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(input_.get(), text.data(), text.size()) < 0) std::abort();
}

void Child::kill() {
  if (pid_ <= 0) return;
  (void)::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool Child::ended() {
  return eventually([this] {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  });
}

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    (void)::poll(nullptr, 0, 5);
  }
  return false;
}

}  // namespace gpurota::testing
