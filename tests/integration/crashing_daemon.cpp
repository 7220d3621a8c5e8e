// crashing_daemon DIRECTORY N before|after: a real daemon on a real store with one scripted GPU,
// which kills itself (SIGKILL) before or after its N-th write to the store. N = 0: never.
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/history/steady_store.h"
#include "store/sqlite_store.h"
#include "sys/clock.h"
#include "sys/sd_event_loop.h"
#include "sys/secret.h"
#include "sys/system_processes.h"
#include "testing/fake_gpu_probe.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/prctl.h>

namespace gpurota::testing {
namespace {

class CrashingStore final : public ports::Store {
 public:
  CrashingStore(ports::Store& store, int crash_at, bool after)
      : store_(store), left_(crash_at), after_(after) {}

 private:
  template <class Write>
  auto write(Write write) {
    const bool now = left_ > 0 && --left_ == 0;
    if (now && !after_) (void)::raise(SIGKILL);
    auto result = write();
    if (now) (void)::raise(SIGKILL);
    return result;
  }

 public:
  Result<std::vector<ports::StoredLease>> load_leases() override { return store_.load_leases(); }
  Result<std::vector<ports::StoredRequest>> load_requests() override {
    return store_.load_requests();
  }
  Result<std::vector<ports::StoredGpuState>> load_gpus() override { return store_.load_gpus(); }
  Result<void> save_lease(const ports::StoredLease& lease) override {
    return write([&] { return store_.save_lease(lease); });
  }
  Result<void> remove_lease(LeaseId id) override {
    return write([&] { return store_.remove_lease(id); });
  }
  Result<LeaseId> next_lease_id() override {
    return write([&] { return store_.next_lease_id(); });
  }
  Result<void> save_request(const ports::StoredRequest& request) override {
    return write([&] { return store_.save_request(request); });
  }
  Result<void> remove_request(RequestId id) override {
    return write([&] { return store_.remove_request(id); });
  }
  Result<RequestId> next_request_id() override {
    return write([&] { return store_.next_request_id(); });
  }
  Result<void> grant_request(RequestId id, const ports::StoredLease& lease) override {
    return write([&] { return store_.grant_request(id, lease); });
  }
  Result<void> save_gpu(const ports::StoredGpuState& gpu) override {
    return write([&] { return store_.save_gpu(gpu); });
  }

 private:
  ports::Store& store_;
  int left_;
  bool after_;
};

int serve(const std::string& directory, int crash_at, bool after) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  log::set_level(log::Level::kError);
  auto store = store::SqliteStore::open(directory);
  auto loop = sys::SdEventLoop::make();
  if (!store || !loop) return 1;
  daemon::SteadyStore steady(**loop, **store);
  CrashingStore crashing(steady, crash_at, after);
  sys::SystemProcesses processes(**loop);
  config::Loaded loaded;
  config::Config& config = loaded.config;
  config.watch_period = std::chrono::milliseconds(20);
  config.grace = std::chrono::milliseconds(200);
  config.reconnect_grace = std::chrono::milliseconds(0);
  const auto probe = [] {
    auto made = std::make_unique<FakeGpuProbe>();
    made->add_gpu(gib(24));
    return made;
  };
  daemon::Daemon::World world = {
      **loop,    probe,         crashing,
      processes, sys::wall_now, [] { return sys::random_hex(GPUROTA_TOKEN_CHARS).value_or(""); }};
  world.durability = &steady.durability();
  daemon::Daemon daemon(
      world, loaded, {directory + "/control.sock", directory + "/tenant.sock", "/libgpurota.so"});
  auto started = daemon.ask();
  if (started) started = daemon.start();
  if (!started) {
    std::fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  return (*loop)->run() ? 0 : 1;
}

}  // namespace
}  // namespace gpurota::testing

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  (void)std::signal(SIGPIPE, SIG_IGN);
  return gpurota::testing::serve(argv[1], std::atoi(argv[2]), std::strcmp(argv[3], "after") == 0);
}
