#include "kube/api/pod_events.h"

#include <fmt/format.h>

#include <utility>

namespace gpurota::kube {
namespace {

std::string gpu_text(const proto::LeaseGpu& share) {
  return share.label.value_or(std::to_string(share.index));
}

// The GPU whose turn the lease waits for; nullptr if none. A lease that cannot have the turn now
// (for example, no host memory for the others) has no place in the queue, but its memory is
// evicted.
const proto::LeaseGpu* find_waiting(const proto::Lease* lease) {
  if (lease == nullptr) return nullptr;
  for (const proto::LeaseGpu& share : lease->gpus) {
    const bool is_out =
        share.turn == "waiting" && !share.moved_out_bytes.value_or(Bytes()).is_zero();
    if (share.turn && (is_out || share.turn_position.value_or(0) > 0)) return &share;
  }
  return nullptr;
}

std::string waiting_text(const proto::LeaseGpu& share) {
  const int place_in_line = share.turn_position.value_or(0);
  if (place_in_line < 1) return fmt::format("Waits for its turn on GPU {}", gpu_text(share));
  const int before = place_in_line - 1;
  const std::string place =
      before == 0 ? "it is next"
                  : fmt::format("{} {} before it", before, before == 1 ? "is" : "are");
  return fmt::format("Waits for its turn on GPU {}; {}", gpu_text(share), place);
}

std::string over_limit_text(const SeenPod& pod) {
  const proto::Finding& found = *pod.over_limit;
  const Bytes used = found.used_bytes.value_or(Bytes());  // known, because it is above the limit
  for (const proto::LeaseGpu& share : pod.lease->gpus) {
    if (share.uuid != found.gpu_uuid || !share.limit_bytes) continue;
    return fmt::format("Holds {} of GPU {} and may hold {}", to_string(used, *share.limit_bytes),
                       gpu_text(share), to_string(*share.limit_bytes));
  }
  return fmt::format("Holds {} of a GPU, more than it may", to_string(used));
}

}  // namespace

bool PodEvents::is_news(Matter& matter, bool holds, Duration patience, TimePoint now) {
  if (!holds) {
    matter.since.reset();
    return false;
  }
  if (!matter.since) matter.since = now;
  const bool was_said = matter.told && *matter.told >= *matter.since;
  const bool is_paused = matter.told && now - *matter.told < kPause;
  if (was_said || is_paused || now - *matter.since < patience) return false;
  matter.told = now;
  return true;
}

bool PodEvents::has_lost_lease(Matters& matters, const SeenPod& pod, TimePoint now) {
  if (!matters.lease) matters.lease = pod.first_lease;
  if (pod.lease == nullptr) {
    const bool is_gone = matters.lease && !pod.is_ending;
    return is_news(matters.lost, is_gone, kLossPatience, now);
  }
  const auto before = std::exchange(matters.lease, pod.lease->lease_id);
  const bool is_other = before && *before != pod.lease->lease_id;
  const bool news = is_other && is_news(matters.lost, true, Duration(), now);
  matters.lost.since.reset();
  return news;
}

std::vector<PodEvent> PodEvents::observe(const std::vector<SeenPod>& pods, TimePoint now) {
  if (now - window_ > kPause) {
    window_ = now;
    told_in_window_ = 0;
  }
  std::vector<PodEvent> events;
  const auto tell = [&](const SeenPod& pod, bool is_warning, const char* reason,
                        std::string message) {
    if (++told_in_window_ <= kMost) {
      events.push_back({pod.ref, is_warning, reason, std::move(message)});
    }
  };
  std::map<std::string, Matters> still;
  for (const SeenPod& pod : pods) {
    const std::string key = pod.key + " " + pod.ref.uid;
    Matters& matters = still[key] = pods_[key];
    const proto::LeaseGpu* const waiting = find_waiting(pod.lease);
    if (is_news(matters.waits, waiting != nullptr, kPatience, now)) {
      tell(pod, false, "WaitingForGpuTurn", waiting_text(*waiting));
    }
    const bool is_over = pod.lease != nullptr && pod.over_limit != nullptr;
    if (is_news(matters.over_limit, is_over, Duration(), now)) {
      tell(pod, true, "GpuMemoryOverLimit", over_limit_text(pod));
    }
    if (has_lost_lease(matters, pod, now)) {
      tell(pod, true, "GpuLeaseEnded",
           fmt::format("Its lease was ended, and its programs on the GPU with it; it {}",
                       pod.lease != nullptr ? "has another lease now" : without_));
    }
  }
  pods_ = std::move(still);
  return events;
}

}  // namespace gpurota::kube
