// gpurotad: flags, adapters, the daemon, the loop.
#include "base/directory.h"
#include "base/lock_file.h"
#include "base/log.h"
#include "base/memory_reserve.h"
#include "base/standard_streams.h"
#include "config/loaded.h"
#include "config/names.h"
#include "containers/driver_files.h"
#include "daemon/daemon.h"
#include "daemon/history/steady_store.h"
#include "daemon/options.h"
#include "daemon/published_library.h"
#include "daemon/users/users.h"
#include "ipc/paths.h"
#include "ipc/runtime_dir.h"
#include "nvml/nvml_probe.h"
#include "proto/service.h"
#include "store/sqlite_series.h"
#include "store/sqlite_store.h"
#include "sys/clock.h"
#include "sys/device_memory.h"
#include "sys/journal.h"
#include "sys/passed_sockets.h"
#include "sys/sd_event_loop.h"
#include "sys/secret.h"
#include "sys/service.h"
#include "sys/system_accounts.h"
#include "sys/system_processes.h"
#include "sys/system_programs.h"
#include "sys/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

// How long to wait for the locks of an earlier daemon. A killed daemon keeps its locks until the
// kernel has removed the process, which takes longer if the driver is slow. If the earlier daemon
// still serves, the wait fails after this time.
constexpr std::chrono::milliseconds kPredecessorPatience{2000};

// Finds libgpurota.so relative to this program: where it is installed, else where it is built.
std::string find_preload() {
  char self[4096];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0) return {};
  const std::string path(self, static_cast<std::size_t>(size));
  const std::string prefix = path.substr(0, path.rfind('/')) + "/..";
  for (const char* place : {"/lib/" GPUROTA_MULTIARCH "/gpurota/libgpurota.so",
                            "/lib/gpurota/libgpurota.so", "/lib/libgpurota.so"}) {
    if (char* real = ::realpath((prefix + place).c_str(), nullptr)) {
      std::string found(real);
      std::free(real);
      return found;
    }
  }
  return {};
}

// A program of gpurota: beside this one, else in ../bin. Empty if it is not there.
std::string find_program(const std::string& name) {
  char self[4096];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0) return {};
  const std::string path(self, static_cast<std::size_t>(size));
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const char* way : {"/", "/../bin/"}) {
    std::string place = folder;
    place.append(way).append(name);
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return {};
}

// The path of systemd-run, if this process is a service of systemd and runs as root. Empty: jobs
// are not units.
std::string find_systemd_run() {
  if (!sys::is_service() || ::geteuid() != 0) return {};
  std::string_view folders = "/usr/bin:/bin";
  if (const char* path = std::getenv("PATH")) folders = path;
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    std::string file = std::string(folders.substr(0, end)) + "/systemd-run";
    if (file.front() == '/' && ::access(file.c_str(), X_OK) == 0) return file;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  log::warn("systemd-run is not installed: jobs are children of this daemon, in its sandbox");
  return {};
}

std::uint64_t read_descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

// Handles SIGTERM and SIGINT until Daemon::ask() has returned: a wait for the driver or the account
// database may hang, and there is nothing to clean up yet.
void end_at_once(int /*signal*/) {
  constexpr std::string_view kText = "gpurotad was told to stop before it served\n";
  (void)!::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(0);
}

// The terminate handler: memory ran out in the middle of a change, so the change cannot be
// finished. The next daemon continues from the store, which never has half of a change.
[[noreturn]] void end_for_want() {
  constexpr std::string_view kText =
      "gpurotad ends: something that it had begun needed more memory than there is; leases stay, "
      "and "
      "so do programs\n";
  (void)!::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(1);
}

std::string driver_root(const Options& options) {
  const std::string root = ipc::absolute(options.driver_root.value_or("/"));
  return root == "/" ? std::string() : root;
}

// Whenever the probe has no NVML, it searches for NVML below the driver's root again, because the
// driver may be installed later.
std::unique_ptr<ports::GpuProbe> make_probe(const std::string& root) {
  return std::make_unique<nvml::NvmlProbe>([root] {
    return nvml::load_nvml(root.empty() ? ""
                                        : containers::find_driver_library(root, nvml::kLibrary));
  });
}

Result<Daemon::Places> places_of(const ipc::Paths& paths, const Options& options) {
  Daemon::Places places;
  places.control_socket = ipc::control_socket(paths.runtime_dir);
  places.tenant_socket = ipc::tenant_socket(paths.runtime_dir);
  places.audit_directory = paths.state_dir + "/audit";
  places.preload = options.preload ? ipc::absolute(*options.preload) : find_preload();
  places.runtime_dir = paths.runtime_dir;
  places.roster = paths.runtime_dir + "/tenants";
  places.driver_limits = paths.runtime_dir + "/driver-limits";
  places.jobs = paths.state_dir + "/jobs";
  places.fillers = paths.state_dir + "/fillers";
  places.event_spill = paths.state_dir + "/events.unstored";
  places.config_file = paths.config_file;
  places.driver_root = driver_root(options);
  places.device_memory = paths.state_dir + "/device-files";
  places.systemd_run = find_systemd_run();
  places.keeper = find_program("gpurota-keeper");
  places.gpurota = find_program("gpurota");
  places.park = find_program("gpurota-park");
  if (!places.driver_root.empty()) {
    places.driver_library = containers::find_driver_library(places.driver_root, "libcuda.so.1");
  }
  if (options.preload && ::access(places.preload.c_str(), R_OK) != 0) {
    return fail_errno("cannot give programs the library of --preload, " + places.preload, errno);
  }
  const bool root = ::geteuid() == 0;
  places.socket_mode = root ? 0666 : 0600;
  return places;
}

// Publishes libgpurota.so if --publish-library is given. Call with the store open: the store's lock
// excludes another daemon, whose programs would load the library.
Result<void> publish(const Options& options, const config::Config& config, Daemon::Places& places) {
  if (!options.publish_library) return {};
  if (config.access.strict) {
    return fail(Code::kInvalid,
                "access.strict is not for a gpurotad in a container (--publish-library): it is for "
                "accounts of the machine");
  }
  GPUROTA_ASSIGN_OR_RETURN(
      places.preload, publish_library(places.preload, ipc::absolute(*options.publish_library)));
  return {};
}

config::Loaded load_config(const Options& options, const ipc::Paths& paths) {
  return config::load(paths.config_file, options.config.has_value());
}

// Prints which users and groups of the configuration the machine does not know. An unknown `group`
// is an error.
Result<void> check_config(const config::Loaded& loaded, const std::string& file) {
  sys::SystemAccounts accounts;
  if (!loaded.config.group.empty()) {
    GPUROTA_TRY(Users::read_socket_group(accounts, loaded.config.group));
  }
  const auto unknown = Users::read_unknown(accounts, config::named_accounts(loaded, ::geteuid()));
  for (const config::Problem& problem : unknown) {
    std::fprintf(stderr, "%s\n", to_string(problem).c_str());
  }
  std::printf("%s: %s\n", file.c_str(),
              loaded.files.empty() ? "is not there, every setting has its default" : "ok");
  return {};
}

// Keeps the write-ahead log of the database short, because changes that are only in the log are
// lost with it.
class StoreSettler {
 public:
  StoreSettler(ports::EventLoop& loop, SteadyStore& store) : loop_(loop), store_(store) { wait(); }

 private:
  static constexpr Duration kPeriod = std::chrono::minutes(1);

  void wait() {
    timer_ = loop_.add_timer(loop_.now() + kPeriod, ports::Urgency::kHousekeeping, [this] {
      store_.settle();
      wait();
    });
  }

  ports::EventLoop& loop_;
  SteadyStore& store_;
  ports::EventLoop::SourcePtr timer_;
};

// Warns of directories in a folder of another user, who can replace them. Not an error: in a
// container or a user namespace the folders above often belong to an unknown user.
void warn_of_shared_places(const ipc::Paths& paths) {
  const std::string config = paths.config_file.substr(0, paths.config_file.rfind('/'));
  for (const std::string& folder : {paths.runtime_dir, paths.state_dir, config}) {
    const auto own = check_own_place(folder);
    if (own || own.error().code != Code::kDenied) continue;
    log::warn("another user can replace a directory of this daemon",
              {{"directory", folder}, {"reason", own.error().message}});
  }
}

Result<void> serve(const Options& options, const ipc::Paths& paths, const config::Loaded& loaded) {
  const config::Config& config = loaded.config;
  for (const int signal : {SIGTERM, SIGINT}) (void)std::signal(signal, end_at_once);
  GPUROTA_ASSIGN_OR_RETURN(Daemon::Places places, places_of(paths, options));
  GPUROTA_ASSIGN_OR_RETURN(std::vector<Fd> passed,
                           sys::take_passed_sockets({places.control_socket, places.tenant_socket}));
  places.control_listener = passed[0].release();
  places.tenant_listener = passed[1].release();
  const bool shared = ::geteuid() == 0 || !config.group.empty();
  GPUROTA_ASSIGN_OR_RETURN(
      const ipc::RuntimeDir runtime,
      ipc::RuntimeDir::make(paths.runtime_dir, shared ? 0755 : 0700, kPredecessorPatience));
  GPUROTA_ASSIGN_OR_RETURN(const auto loop, sys::SdEventLoop::make());
  GPUROTA_ASSIGN_OR_RETURN(const auto database,
                           store::SqliteStore::open(paths.state_dir, kPredecessorPatience));
  warn_of_shared_places(paths);
  GPUROTA_TRY(publish(options, config, places));
  SteadyStore store(*loop, *database);
  StoreSettler settler(*loop, store);
  sys::SystemProcesses processes(*loop);
  GPUROTA_TRY(processes.read_machine());
  Daemon::World world = {
      *loop,
      [root = places.driver_root] { return make_probe(root); },
      store,
      processes,
      sys::wall_now,
      [] { return sys::random_hex(GPUROTA_TOKEN_CHARS).value_or(std::string()); },
      std::make_shared<sys::SystemAccounts>(),
      [&] { return load_config(options, paths); }};
  sys::SystemPrograms runner(*loop, std::make_shared<sys::SystemAccounts>(), places.systemd_run);
  world.runner = &runner;
  world.history = &store;
  world.series = std::make_shared<store::SqliteSeries>(paths.state_dir + "/history.db");
  world.programs = &store;
  world.durability = &store.durability();
  world.descriptors = read_descriptor_limit();
  world.longest_rounds = [&loop = *loop] { return loop.longest_rounds(); };
  Daemon daemon(world, loaded, places);
  GPUROTA_ASSIGN_OR_RETURN(const auto on_hangup,
                           loop->on_signal(SIGHUP, [&daemon] { (void)daemon.reload(); }));
  GPUROTA_TRY(daemon.ask());
  const auto stop = [&loop, &daemon] { daemon.finish([&loop] { loop->stop(); }); };
  GPUROTA_ASSIGN_OR_RETURN(const auto on_term, loop->on_signal(SIGTERM, stop));
  GPUROTA_ASSIGN_OR_RETURN(const auto on_int, loop->on_signal(SIGINT, stop));
  GPUROTA_TRY(daemon.start());
  GPUROTA_TRY(loop->enable_watchdog());
  log::info("gpurotad serves", {{"version", proto::version()},
                                {"socket", places.control_socket},
                                {"listens", places.control_listener < 0 ? "itself" : "systemd"}});
  sys::notify_ready();
  GPUROTA_TRY(loop->run());
  sys::notify_stopping();
  log::info("gpurotad stops; leases stay, programs keep what they have");
  return {};
}

// Undoes the changes of access.strict, for a machine where no daemon will run any more.
Result<void> restore_devices(const std::string& root, const std::string& state_dir) {
  const std::string memory = state_dir + "/device-files";
  if (::access(memory.c_str(), F_OK) != 0) return {};
  auto lock = lock_file(state_dir + "/state.lock", kPredecessorPatience);
  if (!lock && lock.error().code == Code::kLimit) {
    return fail(Code::kLimit,
                "a gpurotad runs, which looks after the device files: stop it first, or set "
                "access.strict = false and run 'gpurota reload'");
  }
  if (!lock) return tl::unexpected<Error>(std::move(lock).error());
  GPUROTA_ASSIGN_OR_RETURN(const auto loop, sys::SdEventLoop::make());
  GPUROTA_ASSIGN_OR_RETURN(auto files,
                           sys::read_device_memory(memory, sys::SystemProcesses(*loop).boot_id()));
  const auto problems = sys::restore_device_files(root, files);
  if (!problems.empty()) return fail(Code::kIo, problems.begin()->second);
  return sys::remove_device_memory(memory);
}

Result<void> run(const Options& options) {
  ipc::Paths paths = ipc::daemon_paths(ipc::read_environment());
  if (options.runtime_dir) paths.runtime_dir = ipc::absolute(*options.runtime_dir);
  if (options.state_dir) paths.state_dir = ipc::absolute(*options.state_dir);
  if (options.config) paths.config_file = ipc::absolute(*options.config);
  if (options.restore_devices) return restore_devices(driver_root(options), paths.state_dir);
  const config::Loaded loaded = load_config(options, paths);
  if (loaded.mistake_count() > 0) return fail(Code::kInvalid, config::mistakes_text(loaded));
  if (options.check_config) return check_config(loaded, paths.config_file);
  return serve(options, paths, loaded);
}

}  // namespace
}  // namespace gpurota::daemon

int main(int argc, char** argv) {
  using namespace gpurota;
  occupy_closed_streams();
  memory_reserve::install();
  std::set_terminate(daemon::end_for_want);
  const auto options = daemon::parse_options({argv + (argc > 0), argv + argc});
  if (!options) {
    std::fprintf(stderr, "gpurotad: %s\n", options.error().message.c_str());
    return 2;
  }
  if (!options->print.empty()) return std::fputs(options->print.c_str(), stdout) < 0;
  log::set_level(options->log_level);
  if (sys::stderr_is_journal()) log::set_sink(sys::journal_sink());
  // With SIGXFSZ ignored, a write beyond the limit on file size fails, like one to a full disk.
  for (const int signal : {SIGPIPE, SIGXFSZ}) (void)std::signal(signal, SIG_IGN);
  const auto done = daemon::run(*options);
  if (!done) std::fprintf(stderr, "gpurotad: %s\n", done.error().message.c_str());
  // Skip destructors: those of the driver's library would wait for the call that hangs in it.
  if (sys::Worker::left_behind() > 0) ::_exit(done ? 0 : 1);
  return done ? 0 : 1;
}
