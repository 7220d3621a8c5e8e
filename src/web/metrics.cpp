#include "web/metrics.h"

#include "base/text.h"
#include "proto/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace gpurota::web {
namespace {

// A label's value: made safe, with the three characters escaped that the format requires.
std::string label(const std::string& foreign, std::size_t most = 100) {
  std::string out;
  for (const char c : display_text(foreign, most)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

class Text {
 public:
  void begin(const char* name, const char* type, const char* help) {
    name_ = name;
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <class Value>
  void add(const std::string& labels, const Value& value) {
    out_ += labels.empty() ? fmt::format("{} {}\n", name_, value)
                           : fmt::format("{}{{{}}} {}\n", name_, labels, value);
  }
  template <class Value>
  void add_part(const char* suffix, const std::string& labels, const Value& value) {
    const std::string name = std::exchange(name_, name_ + suffix);
    add(labels, value);
    name_ = name;
  }
  template <class Value>
  void one(const char* name, const char* type, const char* help, const Value& value) {
    begin(name, type, help);
    add("", value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string name_;
  std::string out_;
};

std::string gpu_label(const proto::Gpu& gpu) {
  // MIG instances share the index of their GPU, so only the UUID distinguishes them.
  if (!gpu.parent) return fmt::format("gpu=\"{}\"", gpu.index);
  return fmt::format("gpu=\"{}\",mig_uuid=\"{}\"", gpu.index, label(gpu.uuid.value));
}

double seconds_between(WallTime from, WallTime to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

void add_gpu_amounts(Text& text, const std::vector<proto::Gpu>& gpus) {
  const auto amount = [&](const char* name, const char* help, Bytes proto::Gpu::*field) {
    text.begin(name, "gauge", help);
    for (const proto::Gpu& gpu : gpus) text.add(gpu_label(gpu), (gpu.*field).count());
  };
  amount("gpurota_gpu_memory_bytes", "Size of the GPU's memory; with unified memory the machine's.",
         &proto::Gpu::memory_bytes);
  text.begin(
      "gpurota_gpu_memory_used_bytes", "gauge",
      "Memory in use, of all processes: GPU memory as the driver reports it, or with unified "
      "memory the machine's; missing if nobody can say.");
  for (const proto::Gpu& gpu : gpus) {
    if (gpu.used_bytes) text.add(gpu_label(gpu), gpu.used_bytes->count());
  }
  amount("gpurota_gpu_memory_reserved_bytes", "Promised to leases.", &proto::Gpu::reserved_bytes);
  amount("gpurota_gpu_memory_unreserved_bytes",
         "Used without a lease, by processes or by memory that no listed process has.",
         &proto::Gpu::unreserved_bytes);
}

// Written only for a daemon that reports these values.
void add_gpu_room(Text& text, const std::vector<proto::Gpu>& gpus) {
  const auto amount = [&](const char* name, const char* help,
                          std::optional<Bytes> proto::Gpu::*field) {
    text.begin(name, "gauge", help);
    for (const proto::Gpu& gpu : gpus) {
      if (gpu.*field) text.add(gpu_label(gpu), (gpu.*field)->count());
    }
  };
  amount("gpurota_gpu_memory_available_bytes",
         "What a new lease with a memory limit and no time limit would be given at once.",
         &proto::Gpu::available_bytes);
  amount("gpurota_gpu_memory_swap_available_bytes",
         "What a new lease that takes turns would be given at once.",
         &proto::Gpu::swap_available_bytes);
  amount("gpurota_gpu_memory_hidden_bytes",
         "In use, and no listed process has it, beyond what is normal there.",
         &proto::Gpu::hidden_bytes);
}

void add_gpus(Text& text, const std::vector<proto::Gpu>& gpus) {
  text.begin("gpurota_gpu_info", "gauge", "What the GPU is; always 1.");
  for (const proto::Gpu& gpu : gpus) {
    text.add(fmt::format("{},uuid=\"{}\",name=\"{}\"", fmt::format("gpu=\"{}\"", gpu.index),
                         label(gpu.uuid.value), label(gpu.name)),
             1);
  }
  add_gpu_amounts(text, gpus);
  add_gpu_room(text, gpus);
  text.begin("gpurota_gpu_utilisation_ratio", "gauge",
             "Share of the last sample period in which a kernel ran; missing if the driver does "
             "not report it.");
  for (const proto::Gpu& gpu : gpus) {
    if (gpu.utilisation_percent) text.add(gpu_label(gpu), *gpu.utilisation_percent / 100.0);
  }
  text.begin("gpurota_gpu_leases", "gauge", "Leases on the GPU.");
  for (const proto::Gpu& gpu : gpus) text.add(gpu_label(gpu), gpu.leases.size());
  text.begin("gpurota_gpu_state", "gauge", "1 for the state that the GPU is in, 0 for the others.");
  for (const proto::Gpu& gpu : gpus) {
    for (const std::string_view state : proto::Words<proto::GpuState>::kAll) {
      text.add(fmt::format("{},state=\"{}\"", gpu_label(gpu), state),
               state == to_string(gpu.state) ? 1 : 0);
    }
  }
}

// For GPUs that take turns or could: the parents of MIG instances cannot.
void add_turns(Text& text, const proto::Status::Reply& status,
               const proto::ListTurns::Reply& turns) {
  const auto series = [&](const char* name, const char* type, const char* help, auto value_of_gpu) {
    text.begin(name, type, help);
    for (const proto::Gpu& gpu : status.gpus) {
      const auto found =
          std::find_if(turns.gpus.begin(), turns.gpus.end(),
                       [&](const proto::TurnGpu& candidate) { return candidate.uuid == gpu.uuid; });
      if (found != turns.gpus.end()) text.add(gpu_label(gpu), value_of_gpu(*found));
    }
  };
  series("gpurota_gpu_takes_turns", "gauge", "1 while its swap leases do not fit together.",
         [](const proto::TurnGpu& gpu) { return gpu.takes_turns ? 1 : 0; });
  series("gpurota_gpu_turn_handovers_total", "counter", "Turns passed from one lease to another.",
         [](const proto::TurnGpu& gpu) { return gpu.handovers.value_or(0); });
  series("gpurota_gpu_evictions_total", "counter",
         "Times that memory of a process was moved to host memory for another lease.",
         [](const proto::TurnGpu& gpu) { return gpu.evictions.value_or(0); });
  series("gpurota_gpu_evicted_bytes_total", "counter", "Bytes moved to host memory.",
         [](const proto::TurnGpu& gpu) { return gpu.evicted_bytes.value_or(Bytes()).count(); });
  series("gpurota_gpu_restored_bytes_total", "counter", "Bytes moved back from host memory.",
         [](const proto::TurnGpu& gpu) { return gpu.restored_bytes.value_or(Bytes()).count(); });
  text.one("gpurota_evicted_host_bytes", "gauge", "GPU memory that is in host memory now.",
           turns.host_out_bytes.count());
  text.one("gpurota_evicted_host_budget_bytes", "gauge", "Host memory that may be used for that.",
           turns.host_budget_bytes.count());
}

// How many of `items` have each word of an enum; includes all words, so that series do not appear
// and disappear.
template <class Enum, class Items, class WordOf>
void add_by_word(Text& text, const char* key, const Items& items, WordOf word_of_item) {
  std::map<std::string, std::uint64_t> counts;
  for (const char* word : proto::Words<Enum>::kAll) counts[word] = 0;
  for (const auto& item : items) counts[to_string(word_of_item(item))] += 1;
  for (const auto& [word, count] : counts) text.add(fmt::format("{}=\"{}\"", key, word), count);
}

// For each GPU, how many leases have a limit there, by who enforces it.
void add_enforcement(Text& text, const proto::Status::Reply& status) {
  text.begin(
      "gpurota_gpu_limits", "gauge",
      "Limits of leases on the GPU, by who enforces them: libgpurota alone, or the driver as "
      "well.");
  for (const proto::Gpu& gpu : status.gpus) {
    std::map<std::string, std::uint64_t> counts;
    for (const char* word : proto::Words<proto::Enforcer>::kAll) counts[word] = 0;
    for (const proto::Lease& lease : status.leases) {
      const bool is_here =
          std::any_of(lease.gpus.begin(), lease.gpus.end(),
                      [&gpu](const proto::LeaseGpu& share) { return share.uuid == gpu.uuid; });
      if (is_here && lease.enforced_by) ++counts[to_string(*lease.enforced_by)];
    }
    for (const auto& [word, count] : counts) {
      text.add(fmt::format("{},by=\"{}\"", gpu_label(gpu), word), count);
    }
  }
}

void add_leases(Text& text, const proto::Status::Reply& status) {
  text.begin("gpurota_leases", "gauge", "Current leases, by kind.");
  add_by_word<proto::LeaseKind>(text, "kind", status.leases,
                                [](const proto::Lease& lease) { return lease.kind; });
  text.begin("gpurota_leases_by_state", "gauge", "Current leases, by state.");
  add_by_word<proto::LeaseState>(text, "state", status.leases,
                                 [](const proto::Lease& lease) { return lease.state; });
  text.begin("gpurota_findings", "gauge", "Current uses that do not match the leases.");
  add_by_word<proto::FindingKind>(text, "kind", status.findings,
                                  [](const proto::Finding& finding) { return finding.kind; });
}

// The label of the user: "user=\"alice\"".
std::string user_label(const proto::Lease& lease) {
  return fmt::format("user=\"{}\"", label(lease.user));
}

void add_per_lease(Text& text, const std::vector<proto::Lease>& leases) {
  const auto labels = [](const proto::Lease& lease, const proto::LeaseGpu& share) {
    return fmt::format("lease=\"{}\",{},kind=\"{}\",gpu=\"{}\"", to_string(lease.lease_id),
                       user_label(lease), to_string(lease.kind),
                       label(share.label.value_or(std::to_string(share.index))));
  };
  const auto series = [&](const char* name, const char* help, auto bytes_of) {
    text.begin(name, "gauge", help);
    for (const proto::Lease& lease : leases) {
      for (const proto::LeaseGpu& share : lease.gpus) {
        if (const std::optional<Bytes> bytes = bytes_of(share)) {
          text.add(labels(lease, share), bytes->count());
        }
      }
    }
  };
  series("gpurota_lease_memory_used_bytes",
         "GPU memory that processes of the lease hold, as the driver reports it, or else "
         "libgpurota; missing if nobody can say.",
         [](const proto::LeaseGpu& share) { return share.used_bytes; });
  series("gpurota_lease_memory_limit_bytes", "The lease's limit; missing for a whole GPU.",
         [](const proto::LeaseGpu& share) { return share.limit_bytes; });
  text.begin("gpurota_lease_held_back_seconds", "gauge",
             "For how long one of the lease's programs, the one with the most, has held back work "
             "for interactive leases; missing if none has.");
  for (const proto::Lease& lease : leases) {
    if (lease.held_seconds.value_or(0) == 0) continue;
    text.add(fmt::format("lease=\"{}\",{},kind=\"{}\"", to_string(lease.lease_id),
                         user_label(lease), to_string(lease.kind)),
             *lease.held_seconds);
  }
}

// How the leases' work fared in the last minute. Leases of which nothing is known are missing.
void add_last_minutes(Text& text, const std::vector<proto::Lease>& leases) {
  const auto series = [&](const char* name, const char* help, auto percent_of) {
    text.begin(name, "gauge", help);
    for (const proto::Lease& lease : leases) {
      const std::optional<int> percent = percent_of(lease);
      if (!percent) continue;
      text.add(fmt::format("lease=\"{}\",{},kind=\"{}\"", to_string(lease.lease_id),
                           user_label(lease), to_string(lease.kind)),
               *percent / 100.0);
    }
  };
  series("gpurota_lease_held_back_ratio",
         "The part of the last minute for which work of the lease was held back, for interactive "
         "leases or until it was the lease's turn to compute.",
         [](const proto::Lease& lease) {
           return lease.last_minute ? std::optional(lease.last_minute->held_percent) : std::nullopt;
         });
  series("gpurota_lease_compute_promised_ratio",
         "The share of its GPU's compute time that the lease is promised.",
         [](const proto::Lease& lease) { return lease.compute_percent; });
  series("gpurota_lease_compute_ratio",
         "The part of its GPU's compute time that the lease got in the last minute; missing while "
         "the time is not divided.",
         [](const proto::Lease& lease) {
           return lease.last_minute ? lease.last_minute->got_percent : std::nullopt;
         });
}

// The sums of one container on one GPU.
struct PodSum {
  std::optional<std::uint64_t> used{0};  // empty: unknown
  std::uint64_t evicted = 0;
  std::optional<std::uint64_t> limit;
};

void add_to(PodSum& sum, const proto::LeaseGpu& share) {
  if (!share.used_bytes) sum.used.reset();
  if (sum.used) *sum.used += share.used_bytes->count();
  sum.evicted += share.moved_out_bytes.value_or(Bytes()).count();
  if (share.limit_bytes) sum.limit = sum.limit.value_or(0) + share.limit_bytes->count();
}

std::string pod_labels(const proto::Pod& pod, const proto::LeaseGpu& share) {
  constexpr std::size_t kLongest = 253;  // of a pod's name; a join would not find a cut name
  return fmt::format("namespace=\"{}\",pod=\"{}\",container=\"{}\",gpu=\"{}\"",
                     label(pod.namespace_, kLongest), label(pod.name, kLongest),
                     label(pod.container, kLongest),
                     label(share.label.value_or(std::to_string(share.index))));
}

// The label names are those of kube-state-metrics, so that both can be joined.
void add_per_pod(Text& text, const std::vector<proto::Lease>& leases) {
  std::map<std::string, PodSum> sums;
  std::size_t left_out = 0;
  for (const proto::Lease& lease : leases) {
    if (!lease.pod) continue;
    for (const proto::LeaseGpu& share : lease.gpus) {
      const std::string labels = pod_labels(*lease.pod, share);
      if (sums.size() >= kMostPodSeries && !sums.contains(labels)) {
        ++left_out;
      } else {
        add_to(sums[labels], share);
      }
    }
  }
  text.begin("gpurota_pod_memory_used_bytes", "gauge", "GPU memory that the container holds.");
  for (const auto& [labels, sum] : sums) {
    if (sum.used) text.add(labels, *sum.used);
  }
  text.begin("gpurota_pod_memory_evicted_bytes", "gauge",
             "GPU memory of the container that is in host memory, as others have their turn.");
  for (const auto& [labels, sum] : sums) text.add(labels, sum.evicted);
  text.begin("gpurota_pod_memory_limit_bytes", "gauge",
             "The container's limit; missing for a whole GPU.");
  for (const auto& [labels, sum] : sums) {
    if (sum.limit) text.add(labels, *sum.limit);
  }
  text.one("gpurota_pods_left_out", "gauge",
           "Containers on a GPU that have no series, as there are too many.", left_out);
}

void add_per_user(Text& text, const std::vector<proto::Lease>& leases) {
  struct Sum {
    std::uint64_t leases = 0;
    std::optional<std::uint64_t> used{0};  // empty: unknown
  };
  std::map<std::string, Sum> users;
  for (const proto::Lease& lease : leases) {
    Sum& sum = users[user_label(lease)];
    ++sum.leases;
    for (const proto::LeaseGpu& share : lease.gpus) {
      if (!share.used_bytes) sum.used.reset();
      if (sum.used) *sum.used += share.used_bytes->count();
    }
  }
  text.begin("gpurota_user_leases", "gauge", "Current leases of the user.");
  for (const auto& [user, sum] : users) text.add(user, sum.leases);
  text.begin("gpurota_user_memory_used_bytes", "gauge",
             "GPU memory that processes of the user's leases hold.");
  for (const auto& [user, sum] : users) {
    if (sum.used) text.add(user, *sum.used);
  }
}

void add_queue(Text& text, const std::vector<proto::Request>& requests, WallTime now) {
  double oldest = 0, sum = 0;
  int gpus = 0;
  for (const proto::Request& request : requests) {
    const double waited = seconds_between(request.since, now);
    oldest = std::max(oldest, waited);
    sum += waited;
    gpus += request.gpus;
  }
  text.one("gpurota_queue_requests", "gauge", "Waiting requests.", requests.size());
  text.one("gpurota_queue_gpus", "gauge", "GPUs that waiting requests ask for.", gpus);
  text.one("gpurota_queue_oldest_wait_seconds", "gauge",
           "How long the oldest waiting request has waited.", oldest);
  text.one("gpurota_queue_wait_seconds", "gauge",
           "Sum of the waiting times of all waiting requests.", sum);
}

void add_waits(Text& text, const proto::Waits& waits) {
  // A count without a bound has no series of its own, whatever the daemon sends.
  const std::size_t steps = std::min(waits.bounds_seconds.size(), waits.counts.size());
  const char* name = "gpurota_queue_waited_seconds";
  text.begin(name, "histogram", "Time in the queue of requests granted since the daemon started.");
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    count += waits.counts[i];
    text.add_part("_bucket", fmt::format("le=\"{}\"", waits.bounds_seconds[i]), count);
  }
  for (std::size_t i = steps; i < waits.counts.size(); ++i) count += waits.counts[i];
  text.add_part("_bucket", "le=\"+Inf\"", count);
  text.add_part("_sum", "", waits.seconds);
  text.add_part("_count", "", count);
}

void add_loop(Text& text, const proto::Health::Reply& health) {
  if (!health.loop_longest_us) return;  // an older daemon does not report it
  constexpr double kMicroseconds = 1e6;
  text.begin("gpurota_loop_longest_seconds", "gauge",
             "Longest round of the daemon's event loop, since it started and in the last minute.");
  text.add("window=\"start\"", static_cast<double>(*health.loop_longest_us) / kMicroseconds);
  text.add("window=\"minute\"",
           static_cast<double>(health.loop_longest_minute_us.value_or(0)) / kMicroseconds);
}

void add_daemon(Text& text, const Snapshot& snapshot) {
  text.begin("gpurota_build_info", "gauge", "Versions; always 1.");
  text.add(fmt::format("version=\"{}\",driver=\"{}\"", label(snapshot.info.version),
                       label(snapshot.info.driver_version.value_or(""))),
           1);
  text.one("gpurota_start_time_seconds", "gauge", "When the daemon started.",
           std::chrono::duration<double>(snapshot.health.since.time_since_epoch()).count());
  text.one("gpurota_driver_ok", "gauge", "Whether the driver answers.",
           snapshot.health.driver_error ? 0 : 1);
  text.one("gpurota_recovered_bytes_total", "counter",
           "GPU memory that was freed because processes of leases died or were stopped.",
           snapshot.health.recovered_bytes.count());
  if (snapshot.health.refusals) {
    text.one("gpurota_allocations_refused_total", "counter",
             "Allocations that programs were refused because of their limits.",
             *snapshot.health.refusals);
  }
  text.one("gpurota_store_ok", "gauge", "Whether leases can be stored.",
           snapshot.health.store_error ? 0 : 1);
  add_loop(text, snapshot.health);
  std::map<std::string, std::uint64_t> counts;
  for (const char* word : proto::Words<proto::EventType>::kAll) counts[word] = 0;
  for (const proto::EventCount& event : snapshot.health.events) {
    counts[to_string(event.type)] += event.count;
  }
  counts.erase("unknown");
  text.begin("gpurota_events_total", "counter",
             "Events since the daemon started: leases made, requests granted, calls and memory "
             "denied, findings begun.");
  for (const auto& [word, count] : counts) text.add(fmt::format("type=\"{}\"", word), count);
}

}  // namespace

std::string metrics_text(const std::optional<Snapshot>& snapshot, WallTime now, Extra extra) {
  Text text;
  text.one("gpurota_up", "gauge", "Whether the daemon answers.", snapshot ? 1 : 0);
  if (!snapshot) return text.take();
  add_daemon(text, *snapshot);
  text.one("gpurota_gpus", "gauge", "GPUs of the machine.", snapshot->status.gpus.size());
  add_gpus(text, snapshot->status.gpus);
  add_enforcement(text, snapshot->status);
  if (snapshot->turns) add_turns(text, snapshot->status, *snapshot->turns);
  add_leases(text, snapshot->status);
  if (extra.per_lease) {
    add_per_lease(text, snapshot->status.leases);
    add_last_minutes(text, snapshot->status.leases);
  }
  if (extra.per_pod) add_per_pod(text, snapshot->status.leases);
  if (extra.per_user) add_per_user(text, snapshot->status.leases);
  add_queue(text, snapshot->queue.requests, now);
  add_waits(text, snapshot->health.waits);
  return text.take();
}

std::string not_ready_because(const std::optional<Snapshot>& snapshot) {
  if (!snapshot) return "the daemon does not answer";
  if (snapshot->health.driver_error) {
    return "driver: " + display_text(*snapshot->health.driver_error);
  }
  if (snapshot->health.store_error) return "store: " + display_text(*snapshot->health.store_error);
  const auto& gpus = snapshot->status.gpus;
  const bool broken = !gpus.empty() && std::all_of(gpus.begin(), gpus.end(), [](const auto& gpu) {
    return gpu.state == proto::GpuState::kError;
  });
  return broken ? "every GPU is in error" : "";
}

}  // namespace gpurota::web
