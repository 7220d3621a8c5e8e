#include "daemon/watch/library_reader.h"

#include "daemon/leases/container_folder.h"

namespace gpurota::daemon {
namespace {

// A process is read again after this time, as it may load libraries or execute another program.
constexpr Duration kReadAgain = std::chrono::seconds(1);
// An older reading is not used.
constexpr Duration kStale = std::chrono::seconds(5);

}  // namespace

LibraryReader::LibraryReader(ports::EventLoop& loop, std::string tenant_socket, Read read)
    : loop_(loop),
      tenant_socket_(std::move(tenant_socket)),
      read_(std::move(read)),
      workers_(loop, "maps", "the maps") {}

watch::Library LibraryReader::state_of(const watch::SeenProcess& process, bool asks) {
  if (!process.uid || process.start_ticks == 0) return watch::Library::kUnknown;
  const auto before = known_.find(process.pid);
  if (before != known_.end() && before->second.start_ticks != process.start_ticks) {
    known_.erase(before);
  }
  Known& known = known_[process.pid];
  known.start_ticks = process.start_ticks;
  const TimePoint now = loop_.now();
  const bool old = !known.asked || now - *known.asked >= kReadAgain;
  if (!known.reading && old) read(process.pid, *process.uid, known);
  if (!known.image || now - known.taken >= kStale) return watch::Library::kUnknown;
  return judge(*known.image, process.lease.has_value(), asks);
}

void LibraryReader::read(pid_t pid, uid_t uid, Known& known) {
  known.asked = loop_.now();
  known.reading = workers_.run(
      uid, [read = read_, pid, start = known.start_ticks] { return read(pid, start); },
      [this, pid, start = known.start_ticks](std::optional<sys::ProcessImage> image) {
        take(pid, start, std::move(image));
      });
}

void LibraryReader::take(pid_t pid, std::uint64_t start_ticks,
                         std::optional<sys::ProcessImage> image) {
  const auto known = known_.find(pid);
  if (known == known_.end() || known->second.start_ticks != start_ticks) return;
  known->second.reading = false;
  known->second.taken = *known->second.asked;
  known->second.image = std::move(image);
}

watch::Library LibraryReader::judge(const sys::ProcessImage& image, bool in_lease,
                                    bool asks) const {
  if (image.page) return watch::Library::kAway;
  // If the process has not loaded libcuda.so, the pid from NVML may be that of another process, or
  // the process uses the driver without libcuda.so.
  if (!image.library || !image.driver) return watch::Library::kAbsent;
  // The process has overwritten its environment: assume the variables that its parents in this
  // lease had.
  if (in_lease && !image.has_environment) return watch::Library::kSilent;
  if (in_lease && asks && image.lease.empty()) return watch::Library::kSilent;
  const bool ours =
      image.socket == tenant_socket_ || image.socket == container_socket(tenant_socket_);
  const bool told = !image.lease.empty() && ours;
  return told ? watch::Library::kSilent : watch::Library::kAbsent;
}

void LibraryReader::keep_only(const std::set<pid_t>& listed) {
  std::erase_if(known_, [&](const auto& entry) { return !listed.contains(entry.first); });
  workers_.tidy();
}

}  // namespace gpurota::daemon
