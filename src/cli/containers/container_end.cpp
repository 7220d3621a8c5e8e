#include "cli/containers/container_end.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

// The most time that a hanging engine may take.
constexpr std::chrono::seconds kEngineTakes{10};
constexpr std::chrono::milliseconds kTryAgain{20};

// Accepts only hexadecimal digits, which engines write. Anything else could be an option.
std::optional<std::string> read_id(const std::string& path) {
  std::string id;
  std::ifstream(path) >> id;
  const bool is_id = !id.empty() && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isxdigit(c) != 0;
  });
  return is_id ? std::optional(id) : std::nullopt;
}

void wait_for(pid_t pid) {
  const auto until = std::chrono::steady_clock::now() + kEngineTakes;
  while (::waitpid(pid, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= until) return;
    std::this_thread::sleep_for(kTryAgain);
  }
}

}  // namespace

Result<std::unique_ptr<ContainerEnd>> ContainerEnd::make(std::vector<std::string> engine,
                                                         std::string id_file) {
  if (!id_file.empty()) {
    const bool is_old = ::access(id_file.c_str(), F_OK) == 0;
    auto end =
        std::unique_ptr<ContainerEnd>(new ContainerEnd(std::move(engine), std::move(id_file), {}));
    end->is_old_ = is_old;
    return end;
  }
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool usable = runtime != nullptr && ::access(runtime, W_OK) == 0;
  std::string folder = std::string(usable ? runtime : "/tmp") + "/gpurota-container-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return fail_errno("cannot make " + folder, errno);
  id_file = folder + "/id";
  return std::unique_ptr<ContainerEnd>(
      new ContainerEnd(std::move(engine), std::move(id_file), std::move(folder)));
}

ContainerEnd::~ContainerEnd() {
  if (folder_.empty()) return;
  (void)::unlink(id_file_.c_str());
  (void)::rmdir(folder_.c_str());
}

void ContainerEnd::kill() const {
  if (is_old_) return;
  const auto id = read_id(id_file());
  if (!id) return;
  std::vector<std::string> words = engine_;
  words.insert(words.end(), {"kill", *id});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // Discards the engine's output: an error that the container has ended already is normal.
  posix_spawn_file_actions_t quiet;
  ::posix_spawn_file_actions_init(&quiet);
  for (int fd = 0; fd < 3; ++fd) {
    ::posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t pid = 0;
  if (::posix_spawnp(&pid, argv[0], &quiet, nullptr, argv.data(), environ) == 0) wait_for(pid);
  ::posix_spawn_file_actions_destroy(&quiet);
}

}  // namespace gpurota::cli
