#include "cli/site/doctor_local.h"

#include "base/text.h"
#include "base/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

using proto::Check;
using proto::CheckStatus;

constexpr std::string_view kLibrary = "/libgpurota.so";
constexpr std::string_view kDeleted = " (deleted)";
constexpr std::size_t kMostShown = 8;
// The least memory that a program with an InfiniBand adapter registers.
constexpr Bytes kLeastLocked = gib(1);

// Shared by the caller and the thread that searches, which may outlive the caller.
struct Search {
  std::mutex mutex;
  std::condition_variable done;
  bool over = false;
  std::vector<pid_t> found;
};

std::optional<pid_t> pid_in(const std::string& name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

// Without root only the user's own processes can be read.
std::vector<pid_t> find_stale() {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    const auto pid = pid_in(at->path().filename().string());
    if (!pid) continue;
    std::ifstream file(at->path() / "maps");
    std::stringstream maps;
    maps << file.rdbuf();
    if (parse_stale_library(maps.view())) found.push_back(*pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string list_of(const std::vector<pid_t>& pids, const char* between) {
  const std::size_t shown = std::min(pids.size(), kMostShown);
  return fmt::format("{}",
                     fmt::join(pids.begin(), pids.begin() + static_cast<long>(shown), between));
}

}  // namespace

std::vector<Check> check_shell(const ShellEnvironment& environment,
                               const std::optional<std::string>& library) {
  std::vector<Check> checks;
  const std::string lease = display_text(environment.lease, 20);
  if (!environment.lease.empty()) {
    checks.push_back(
        {"environment", CheckStatus::kWarning, fmt::format("this shell runs under lease {}", lease),
         "a 'gpurota run' in this shell runs in that lease, unless its options ask for "
         "GPUs of its own"});
  }
  const bool loads = environment.preload.find(kLibrary.substr(1)) != std::string::npos;
  if (!environment.token.empty() && !loads) {
    checks.push_back(
        {"environment", CheckStatus::kError,
         fmt::format(
             "LD_PRELOAD has been changed under lease {}: programs that are started here are "
             "without a limit",
             lease),
         fmt::format("export LD_PRELOAD={}${{LD_PRELOAD:+:$LD_PRELOAD}}",
                     library.value_or("…/libgpurota.so"))});
  } else if (!environment.preload.empty() && !loads) {
    checks.push_back({"environment", CheckStatus::kWarning,
                      fmt::format("LD_PRELOAD is set: {}", display_text(environment.preload, 200)),
                      "libgpurota is loaded before it; if that is another CUDA interposer: unset "
                      "LD_PRELOAD"});
  }
  return checks;
}

std::optional<Check> check_socket_owner(const std::string& socket, uid_t owner,
                                        std::optional<uid_t> daemon, uid_t own) {
  if (daemon && *daemon != owner) {
    return Check{"control socket", CheckStatus::kError,
                 fmt::format("{} belongs to user {}, and the gpurotad behind it is user {}'s",
                             socket, owner, *daemon),
                 "systemctl restart gpurotad.socket gpurotad"};
  }
  if (owner == 0 || owner == own) return std::nullopt;
  return Check{
      "control socket", CheckStatus::kWarning,
      fmt::format("{} belongs to user {}: its gpurotad is neither the machine's nor yours, "
                  "and hears your commands",
                  socket, owner),
      "unset GPUROTA_RUNTIME_DIR"};
}

Check check_next_start(const config::Loaded& loaded, const std::string& file, bool group,
                       std::optional<std::size_t> changes) {
  const std::string name = "next start";
  if (!loaded.mistakes.empty()) {
    const std::size_t others = loaded.mistake_count() - 1;
    return {name, CheckStatus::kError,
            fmt::format("gpurotad will not start: {}{}", to_string(loaded.mistakes.front()),
                        others == 0 ? "" : fmt::format(" (and {} more)", others)),
            "put it right, and run 'gpurota reload'; 'gpurota config check' shows all mistakes"};
  }
  if (!group) {
    return {name, CheckStatus::kError,
            fmt::format("gpurotad will not start: group: there is no group '{}'",
                        display_text(loaded.config.group, 60)),
            fmt::format("groupadd {}, or change the line", display_text(loaded.config.group, 60))};
  }
  if (changes.value_or(0) > 0) {
    return {name, CheckStatus::kWarning,
            fmt::format("{} setting{} in {} {} not in effect yet", *changes,
                        *changes == 1 ? "" : "s", display_text(file), *changes == 1 ? "is" : "are"),
            "'gpurota config diff' shows them, 'gpurota reload' takes them over"};
  }
  return {name, CheckStatus::kOk, "the configuration can be read", std::nullopt};
}

Check check_locked_memory(std::optional<Bytes> limit, bool has_rdma) {
  if (!limit) return {"locked memory", CheckStatus::kOk, "unlimited", std::nullopt};
  const std::string summary = fmt::format("at most {} (ulimit -l)", to_string(*limit));
  if (!has_rdma || *limit >= kLeastLocked) {
    return {"locked memory", CheckStatus::kOk, summary, std::nullopt};
  }
  return {"locked memory", CheckStatus::kWarning,
          summary + ": too little for NCCL and MPI over the InfiniBand adapter of this machine",
          "as root: echo '* - memlock unlimited' >/etc/security/limits.d/memlock.conf; then log in "
          "again"};
}

std::optional<std::string> parse_stale_library(std::string_view maps) {
  while (!maps.empty()) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    std::string_view line = maps.substr(0, end);
    maps.remove_prefix(std::min(end + 1, maps.size()));
    if (!line.ends_with(kDeleted)) continue;
    line.remove_suffix(kDeleted.size());
    // When a rename has put a new file in the place of a mapped library, the old library is still
    // listed as libgpurota.so. During the replacement the old library is listed under a temporary
    // name for a moment: such a line does not count.
    const std::size_t begin = line.find('/');
    if (begin != line.npos && line.ends_with(kLibrary)) return std::string(line.substr(begin));
  }
  return std::nullopt;
}

std::optional<std::vector<pid_t>> read_stale_programs(std::chrono::milliseconds patience) {
  const auto search = std::make_shared<Search>();
  auto thread = start_thread([search] {
    std::vector<pid_t> found = find_stale();
    const std::lock_guard lock(search->mutex);
    search->found = std::move(found);
    search->over = true;
    search->done.notify_all();
  });
  if (!thread) return std::nullopt;
  thread->detach();  // the thread may hang for longer than this program runs
  std::unique_lock lock(search->mutex);
  if (!search->done.wait_for(lock, patience, [&] { return search->over; })) return std::nullopt;
  return search->found;
}

std::optional<Check> check_stale_programs(const std::optional<std::vector<pid_t>>& programs) {
  if (!programs) {
    return Check{"library in use", CheckStatus::kWarning,
                 "cannot check programs: reading /proc/PID/maps of one of them does not end",
                 "ps -eo pid,stat,args | grep ' D'"};
  }
  if (programs->empty()) return std::nullopt;
  const char* const more = programs->size() > kMostShown ? " and others" : "";
  return Check{"library in use", CheckStatus::kWarning,
               fmt::format("{} run{} with a libgpurota.so that has been replaced since: {}{}",
                           programs->size() == 1 ? "a program" : "programs",
                           programs->size() == 1 ? "s" : "", list_of(*programs, ", "), more),
               fmt::format("they continue; start them again to have the new one: ps -fp {}",
                           list_of(*programs, ","))};
}

}  // namespace gpurota::cli
