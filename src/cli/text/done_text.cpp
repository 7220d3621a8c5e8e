#include "cli/text/done_text.h"

#include "base/size_word.h"
#include "base/text.h"
#include "cli/text/ps_doctor_text.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gpurota::cli {
namespace {

// Long enough to recognize a note or a command.
constexpr std::size_t kColumns = 40;

using Pair = std::pair<std::string_view, std::string_view>;
constexpr std::array<Pair, 6> kDone = {{{"start", "started"},
                                        {"stop", "stopped"},
                                        {"restart", "restarted"},
                                        {"remove", "removed"},
                                        {"pause", "paused"},
                                        {"resume", "resumed"}}};

std::string text_of(const SizeSpec& size) {
  return size.percent > 0 ? fmt::format("{}%", size.percent) : to_string(size.bytes);
}

}  // namespace

std::string gpus_text(const std::vector<std::string>& ids) {
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : ",") + display_text(id, kColumns);
  return "GPU " + text;
}

std::string gpus_text(const proto::Lease& lease) {
  std::vector<std::string> labels;
  for (const proto::LeaseGpu& gpu : lease.gpus) labels.push_back(label_of(gpu));
  return gpus_text(labels);
}

std::string got_text(const proto::Lease& lease, std::optional<std::chrono::seconds> waited) {
  std::string text = fmt::format("got {} as {}", gpus_text(lease), to_string(lease.lease_id));
  if (lease.name) text += fmt::format(" ({})", display_text(*lease.name, kColumns));
  if (waited) text += " after " + duration_text(*waited);
  return text;
}

std::string recognizable(const proto::Lease& lease, uid_t reader) {
  const std::string owner =
      lease.uid == reader ? "" : fmt::format(" of {}", display_text(lease.user, kColumns));
  std::string text = to_string(lease.lease_id) + owner + " (" + gpus_text(lease);
  if (lease.name) text += ", " + display_text(*lease.name, kColumns);
  if (lease.note && !lease.note->empty()) {
    text += fmt::format(", \"{}\"", display_text(*lease.note, kColumns));
  } else if (lease.command && !lease.command->empty()) {
    text += ", " + display_command(*lease.command, kColumns);
  }
  return text + ")";
}

std::string updated_text(const proto::Lease& lease, WallTime now) {
  std::string text = "updated " + lease_line(lease);
  if (lease.ends) text += ", until " + clock_text(*lease.ends, now);
  if (lease.priority.value_or(0) != 0) text += fmt::format(", priority {}", *lease.priority);
  if (lease.warn_seconds) {
    text += fmt::format(", SIG{} {} before its end", lease.warn_signal.value_or(""),
                        duration_text(std::chrono::seconds(*lease.warn_seconds)));
  }
  if (lease.note && !lease.note->empty()) {
    text += fmt::format(", \"{}\"", display_text(*lease.note, kColumns));
  }
  return text;
}

std::string held_beyond_text(const proto::Lease& lease, const proto::Lease& before) {
  for (const proto::LeaseGpu& gpu : lease.gpus) {
    if (!gpu.limit_bytes || !gpu.used_bytes || *gpu.used_bytes <= *gpu.limit_bytes) continue;
    std::string text = fmt::format(
        "{0} holds {1} of GPU {2}, more than its new limit of {3}. What it holds stays until it is "
        "freed, and new allocations are refused",
        to_string(lease.lease_id), to_string(*gpu.used_bytes, *gpu.limit_bytes), label_of(gpu),
        to_string(*gpu.limit_bytes, *gpu.used_bytes));
    for (const proto::LeaseGpu& old : before.gpus) {
      if (old.uuid != gpu.uuid || !old.limit_bytes || *old.limit_bytes <= *gpu.limit_bytes)
        continue;
      text += fmt::format("; to go back: gpurota update {} --memory {}", to_string(lease.lease_id),
                          size_word(*old.limit_bytes));
    }
    return text;
  }
  return {};
}

std::string set_text(const SetOptions& options) {
  std::string text;
  const auto add = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  if (options.reset) text = "back to the configuration";
  if (options.capacity) add("capacity", text_of(*options.capacity));
  if (options.quantum) add("quantum", display_text(*options.quantum, kColumns));
  if (options.turns) add("turns", display_text(*options.turns, kColumns));
  return fmt::format("set {}: {}", gpus_text(options.gpu_ids), text);
}

std::string controlled_text(std::string_view what, std::string_view action, std::string_view name) {
  const auto* const known = std::find_if(kDone.begin(), kDone.end(),
                                         [&](const Pair& each) { return each.first == action; });
  const std::string_view did = known == kDone.end() ? action : known->second;
  return fmt::format("{} {} {}", did, what, display_text(name, 64));
}

}  // namespace gpurota::cli
