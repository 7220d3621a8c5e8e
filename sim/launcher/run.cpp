#include "sim/launcher/run.h"

#include "base/close_from.h"
#include "base/fd.h"
#include "sim/launcher/failure.h"
#include "sim/launcher/machine_file.h"
#include "sim/state/machine.h"

#include <fmt/format.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::sim {
namespace {

constexpr unsigned kCheckEveryUs = 200'000;

Result<std::string> make_directory() {
  const char* base = ::getenv("TMPDIR");
  std::string path = fmt::format("{}/gpurota-sim-XXXXXX", base != nullptr && *base ? base : "/tmp");
  if (::mkdtemp(path.data()) == nullptr) return fail_errno("cannot make " + path, errno);
  return path;
}

Result<void> make_machine(const std::string& machine, const std::string& dir) {
  GPUROTA_ASSIGN_OR_RETURN(const std::string file, find_machine(machine));
  const auto config = std::make_unique<MachineState>();
  GPUROTA_TRY(read_machine_file(file, config.get()));
  std::string error;
  if (!Machine::create(dir, *config, &error)) return fail(Code::kIo, error);
  return {};
}

// Makes the machine in `dir` unless there is one. When two processes name the same new directory at
// the same time, one makes the machine and the other finds it.
Result<void> make_machine_in(const std::string& machine, const std::string& dir) {
  if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) {
    return fail_errno("cannot make " + dir, errno);
  }
  const Fd lock(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return fail_errno("cannot open " + dir, errno);
  (void)::flock(lock.get(), LOCK_EX);
  if (Machine::open(dir)) return {};
  if (machine.empty()) {
    return fail(Code::kNotFound, "there is no machine in " + dir + ": name one to make it there");
  }
  return make_machine(machine, dir);
}

Result<void> make_machine_once(const std::string& machine, const std::string& dir, bool for_all) {
  if (!for_all) return make_machine_in(machine, dir);
  // Reset the umask for the machine's files only: the command keeps its own.
  const mode_t before = ::umask(0);
  auto made = make_machine_in(machine, dir);
  (void)::umask(before);
  return made;
}

void remove_machine(const std::string& dir) {
  for (const char* name : {"/state", "/state.new", "/locks", "/pids", "/alive"}) {
    (void)::unlink((dir + name).c_str());
  }
  (void)::rmdir(dir.c_str());
}

void prepend(const char* variable, const std::string& value) {
  const char* before = ::getenv(variable);
  const std::string joined = before != nullptr && *before ? value + ":" + before : value;
  ::setenv(variable, joined.c_str(), 1);
}

// Whether a shell would find the command. execvp reports EACCES even if the only trouble is that a
// folder of PATH cannot be searched for lack of permission; a shell then reports "not found".
bool is_on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return true;
  const char* path = ::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  for (;;) {
    const std::size_t colon = rest.find(':');
    struct stat info {};
    if (::stat((std::string(rest.substr(0, colon)) + "/" + name).c_str(), &info) == 0) return true;
    if (colon == std::string_view::npos) return false;
    rest.remove_prefix(colon + 1);
  }
}

// The folder of the simulated libraries: beside the program in a build tree, else where they are
// installed.
std::string library_directory() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  std::string here(self, length > 0 ? static_cast<std::size_t>(length) : 0);
  if (!here.empty()) here.erase(here.rfind('/'));
  for (const std::string& candidate : {here + "/lib", here + "/" GPUROTA_SIM_LIBDIR_FROM_BIN}) {
    if (::access((candidate + "/libcuda.so.1").c_str(), R_OK) == 0) return candidate;
  }
  return GPUROTA_SIM_LIBDIR;
}

// Runs beside the command, in its own session. Waits until no process holds `alive` (every child of
// the command inherits it) and no process has a slot, then removes the machine.
[[noreturn]] void tend(const std::string& dir, int alive) {
  ::setsid();
  ::close(alive);  // inherited by the fork too
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) (void)::dup2(null, fd);
  if (::chdir("/") != 0) ::_exit(1);
  close_from(3);
  const int mine = ::open((dir + "/alive").c_str(), O_RDWR | O_CLOEXEC);
  while (mine >= 0 && ::flock(mine, LOCK_EX) != 0 && errno == EINTR) {
  }
  const auto machine = Machine::open(dir);
  while (machine && machine->population() > 0) ::usleep(kCheckEveryUs);
  remove_machine(dir);
  ::_exit(0);
}

// Forks twice, so that the command never has a child that it did not start.
bool start_tender(const std::string& dir, int alive) {
  const pid_t between = ::fork();
  if (between < 0) return false;
  if (between == 0) {
    const pid_t tender = ::fork();
    if (tender == 0) tend(dir, alive);
    ::_exit(tender < 0 ? 1 : 0);
  }
  int status = 0;
  while (::waitpid(between, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

// A descriptor that every child of the command inherits; its number is above those that programs
// use.
int hold_alive(const std::string& dir) {
  const Fd low(::open((dir + "/alive").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!low || ::flock(low.get(), LOCK_SH) != 0) return -1;
  const int high = ::fcntl(low.get(), F_DUPFD, 200);
  return high >= 0 ? high : ::fcntl(low.get(), F_DUPFD, 10);
}

}  // namespace

int run_command(const std::string& machine, const std::string& dir, bool for_all, char** command) {
  std::string where = dir;
  if (dir.empty()) {
    auto made = make_directory();
    if (!made) return failed(made.error().message);
    where = *made;
    if (auto result = make_machine(machine, where); !result) {
      remove_machine(where);
      return failed(result.error().message);
    }
    const int alive = hold_alive(where);
    if (alive < 0 || !start_tender(where, alive)) {
      remove_machine(where);
      return failed("cannot watch over " + where);
    }
  } else if (auto result = make_machine_once(machine, where, for_all); !result) {
    return failed(result.error().message);
  }
  char absolute[PATH_MAX];
  ::setenv("GPUROTA_SIM_DIR",
           ::realpath(where.c_str(), absolute) != nullptr ? absolute : where.c_str(), 1);
  prepend("LD_LIBRARY_PATH", library_directory());
  ::execvp(command[0], command);
  const int error = errno;
  (void)failed(fmt::format("cannot run {}: {}", command[0], std::strerror(error)));
  return error == ENOENT || (error == EACCES && !is_on_path(command[0])) ? 127 : 126;
}

}  // namespace gpurota::sim
