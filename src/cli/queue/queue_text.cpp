#include "cli/queue/queue_text.h"

#include "abi/env.h"
#include "base/text.h"
#include "cli/lease_variables.h"
#include "cli/queue/alternatives.h"
#include "cli/queue/calendar_text.h"
#include "cli/queue/waiting.h"
#include "cli/text/last_minute_text.h"
#include "cli/text/ps_doctor_text.h"
#include "cli/text/share_text.h"
#include "cli/text/time_text.h"
#include "cli/turns/turns_text.h"
#include "client/reason_text.h"
#include "proto/codec.h"
#include "proto/documents.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli {
namespace {

std::string indices_of(const proto::Lease& lease) {
  std::string text;
  for (const proto::LeaseGpu& gpu : lease.gpus) {
    // Programs identify a MIG instance only by its UUID.
    const bool is_mig = gpu.label && gpu.label->find(':') != std::string::npos;
    text += (text.empty() ? "" : ",") + (is_mig ? gpu.uuid.value : std::to_string(gpu.index));
  }
  return text;
}

std::vector<std::string> planned_names(const proto::Request& request) {
  std::vector<std::string> names;
  if (request.planned_labels) {
    for (const std::string& label : *request.planned_labels) {
      names.push_back(display_text(label, 20));
    }
    return names;
  }
  for (const int index : request.planned) names.push_back(std::to_string(index));
  return names;
}

// The text in quotes for a POSIX shell, whatever it contains.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// "R7", "R7 (train7)".
std::string id_of(const proto::Request& request) {
  const std::string id = to_string(request.request_id);
  return request.name ? fmt::format("{} ({})", id, display_text(*request.name, 64)) : id;
}

std::string explain_request(const proto::Request& request, uid_t reader, WallTime now) {
  std::string text = waiting_text(request, now, false) + "\n";
  if (const std::string place = place_in_full(request, reader); !place.empty()) {
    text += fmt::format("  {}\n", place);
  }
  text += fmt::format(
      "  requested by {} at {}: {} GPU{}, {}\n", person_text(request.user, request.as_name),
      clock_text(request.since, now), wish_text(request), request.gpus == 1 ? "" : "s",
      request.seconds ? "for " + duration_text(std::chrono::seconds(*request.seconds))
                      : "without a time limit");
  if (!request.planned.empty()) {
    std::string gpus;
    for (const std::string& name : planned_names(request)) {
      gpus += (gpus.empty() ? "" : ", ") + name;
    }
    text += fmt::format("  will get GPU {}, as things stand; what is idle of it is kept for it\n",
                        gpus);
  }
  text += request.expected ? fmt::format("  starts at {} at the latest, if nothing changes\n",
                                         clock_text(*request.expected, now))
                           : "  it is not known when it starts\n";
  return text;
}

// Says who enforces the limit, unless libgpurota enforces it alone, which is the usual case.
std::string enforcement_lines(const proto::Lease& lease) {
  std::string text;
  if (lease.not_by_driver) {
    const bool in_part =
        std::any_of(lease.gpus.begin(), lease.gpus.end(),
                    [](const proto::LeaseGpu& gpu) { return gpu.driver_limit_bytes.has_value(); });
    text += fmt::format("  its limit is enforced by the library{}: {}\n",
                        in_part ? ", and by the driver in part" : " alone",
                        display_text(*lease.not_by_driver, 200));
  } else if (lease.enforced_by == proto::Enforcer::kLibraryAndDriver) {
    text += fmt::format(
        "  its limit is enforced by the library and the driver, which lets {} have",
        lease.kind == proto::LeaseKind::kPod ? "all programs of its pod together" : "its programs");
    const char* separator = " ";
    for (const proto::LeaseGpu& gpu : lease.gpus) {
      if (!gpu.driver_limit_bytes) continue;
      text += fmt::format("{}{} of GPU {}", separator, to_string(*gpu.driver_limit_bytes),
                          label_of(gpu));
      separator = ", ";
    }
    text += "\n";
  }
  if (lease.limited_group) {
    text += fmt::format("  somebody else has set a limit of the driver, which counts: {}\n",
                        display_text(*lease.limited_group, 300));
  }
  return text;
}

std::string compute_lines(const proto::Lease& lease) {
  if (lease.gpus.empty()) return {};
  const std::string gpu = label_of(lease.gpus.front());
  std::string text;
  if (lease.compute_percent) {
    text += fmt::format(
        "  has at least {} % of the compute time of GPU {} while other slices have work there\n",
        *lease.compute_percent, gpu);
  }
  if (lease.compute_max_percent) {
    text += fmt::format("  has an upper bound of {} % of the compute time of GPU {}\n",
                        *lease.compute_max_percent, gpu);
  }
  if (const std::string bounded = bounded_text(lease); !bounded.empty()) {
    text += fmt::format("  its work waited for {} because of that upper bound\n", bounded);
  }
  if (const std::string got = got_text(lease); !got.empty()) {
    text += fmt::format("  its part of the compute time of GPU {}: {}\n", gpu, got);
  }
  return text;
}

// Says for whom the programs of a lease hold back their work, and for how long they have done so.
std::string latency_lines(const proto::Lease& lease) {
  std::string text;
  if (lease.latency == proto::LatencyClass::kInteractive) {
    text +=
        "  is interactive: other slices on its GPUs hold back work while its programs have work\n";
  }
  std::string whom;
  for (const LeaseId other : lease.held_back_for.value_or(std::vector<LeaseId>())) {
    whom += (whom.empty() ? "" : ", ") + to_string(other);
  }
  if (!whom.empty()) {
    text += fmt::format("  its programs hold back work while programs of {} have work\n", whom);
  }
  if (const std::int64_t held = lease.held_seconds.value_or(0); held > 0) {
    text += fmt::format("  its programs have held back work for {} so far\n",
                        duration_text(std::chrono::seconds(held)));
  }
  if (const std::string held = held_back_text(lease); !held.empty()) {
    text += fmt::format("  its work was held back for {}\n", held);
  }
  return text;
}

std::string explain_lease(const proto::Lease& lease, const std::vector<proto::Request>& requests,
                          WallTime now) {
  std::string text =
      fmt::format("{}: {} of {}, since {}\n", lease_line(lease), to_string(lease.kind),
                  person_text(lease.user, lease.as_name), clock_text(lease.since, now));
  if (lease.state == proto::LeaseState::kExpired) {
    text +=
        "  its time is over, but its programs still hold memory: they continue for as long as the "
        "site's expired_reservation allows\n";
  } else if (lease.state == proto::LeaseState::kEnding) {
    text += "  it is ending: its processes are being stopped, or their memory is not free yet\n";
  } else if (lease.ends) {
    text += fmt::format("  ends at {}\n", clock_text(*lease.ends, now));
  } else {
    text += "  ends with its command\n";
  }
  if (lease.parked == proto::ParkState::kParked) {
    text += fmt::format("  is parked: its processes are in host memory until 'gpurota unpark {}'\n",
                        to_string(lease.lease_id));
  } else if (lease.parked == proto::ParkState::kWaiting) {
    text += "  is parked, and brought back as soon as there is room for it\n";
    if (lease.park_wait) text += fmt::format("  {}\n", client::reason_text(*lease.park_wait, now));
  } else if (lease.parked) {
    text += "  its processes are on the way into host memory, or back to their GPU\n";
  }
  if (lease.park_trouble) text += fmt::format("  {}\n", display_text(*lease.park_trouble, 400));
  if (lease.leaves && lease.state != proto::LeaseState::kEnding) {
    text += fmt::format("  has its GPUs at least until {}, when a booking of them begins\n",
                        clock_text(*lease.leaves, now));
  }
  text += enforcement_lines(lease);
  text += latency_lines(lease);
  text += compute_lines(lease);
  for (const proto::Request& request : requests) {
    const std::vector<std::string> planned = planned_names(request);
    const bool here = std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](const auto& gpu) {
      return std::find(planned.begin(), planned.end(), label_of(gpu)) != planned.end();
    });
    if (here) {
      text += fmt::format("  {} of {} waits for it\n", to_string(request.request_id),
                          person_text(request.user, request.as_name));
    }
  }
  return text;
}

}  // namespace

std::string wish_text(const proto::Request& request) {
  std::string text = request.gpu_ids ? fmt::format("{} named", request.gpu_ids->size())
                                     : std::to_string(request.gpus);
  if (request.memory) {
    text += request.memory->percent ? fmt::format(" x {}%", request.memory->percent)
                                    : " x " + to_string(request.memory->bytes);
  }
  if (request.gpu_type) text += " " + display_text(*request.gpu_type, 32);
  if (request.gpu_class) text += " of class " + display_text(*request.gpu_class, 32);
  if (request.min_memory_bytes) text += " of at least " + to_string(*request.min_memory_bytes);
  if (request.min_cc)
    text += fmt::format(" of cc {}.{}", *request.min_cc / 10, *request.min_cc % 10);
  if (request.swap.value_or(false)) text += " in turns";
  if (request.oversize.value_or(false)) text += ", oversize";
  if (request.latency == proto::LatencyClass::kInteractive) text += " interactive";
  if (request.compute_percent) text += fmt::format(", {}% compute", *request.compute_percent);
  if (request.compute_max_percent) {
    text += fmt::format(", at most {}% compute", *request.compute_max_percent);
  }
  return text;
}

std::string short_text(const proto::Lease& lease) { return indices_of(lease) + "\n"; }

std::string reservation_text(const proto::Lease& lease, WallTime now) {
  const std::string until =
      lease.ends ? fmt::format(", until {}", clock_text(*lease.ends, now)) : "";
  return fmt::format(
      "{0}{1}; gpurota release {2} gives it back, gpurota run --lease {2} -- … uses it",
      lease_line(lease), until, to_string(lease.lease_id));
}

std::string export_text(const std::vector<proto::Variable>& variables,
                        const std::vector<std::string>& cleared) {
  std::string unset, exported;
  for (const std::string& name : cleared) {
    const bool given = std::any_of(variables.begin(), variables.end(),
                                   [&](const proto::Variable& v) { return v.name == name; });
    if (!given) unset += " " + name;
  }
  for (const proto::Variable& variable : variables) {
    exported += fmt::format(" {}={}", variable.name, quoted(variable.value));
  }
  return (unset.empty() ? "" : "unset" + unset + "; ") + "export" + exported + "\n";
}

std::string export_text(const proto::Acquire::Reply& reply, const char* const* inherited) {
  std::vector<proto::Variable> variables = reply.environment;
  std::vector<std::string> cleared = lease_variables();
  const auto before = find_variable(inherited, "LD_PRELOAD");
  const std::string others = before ? without_library(*before).value_or("") : "";
  if (reply.preload) {
    variables.push_back({"LD_PRELOAD", *reply.preload + (others.empty() ? "" : ":" + others)});
  } else if (before && others != *before && find_variable(inherited, GPUROTA_ENV_LEASE)) {
    // Removes the library of the shell's last lease.
    if (others.empty()) cleared.emplace_back("LD_PRELOAD");
    if (!others.empty()) variables.push_back({"LD_PRELOAD", others});
  }
  return export_text(variables, cleared);
}

std::string queue_text(const proto::ListRequests::Reply& reply, const Layout& layout,
                       WallTime now) {
  return hosts_queue_text(std::vector<OfHost<proto::ListRequests>>{{"", &reply}}, layout, now);
}

std::string hosts_queue_text(const std::vector<OfHost<proto::ListRequests>>& hosts,
                             const Layout& layout, WallTime now) {
  Table table({{"HOST"},
               {"", true},
               {"REQUEST"},
               {"USER", false, 6},
               {"GPUS"},
               {"FREE", true},
               {"SINCE"},
               {"EXPECTED"},
               {"WHY", false, 12}});
  for (const auto& each : hosts) {
    for (const proto::Request& request : each.reply->requests) {
      std::string why = client::reason_with_remedy(request, now);
      if (const std::string place = place_text(request); !place.empty()) why += "; " + place;
      table.add({{each.host, Colour::kNone},
                 {std::to_string(request.position), Colour::kNone},
                 {id_of(request), Colour::kNone},
                 {person_text(request.user, request.as_name), Colour::kNone},
                 {wish_text(request), Colour::kNone},
                 {fmt::format("{}", request.free), Colour::kNone},
                 {clock_text(request.since, now), Colour::kNone},
                 {request.expected ? clock_text(*request.expected, now) : "?", Colour::kNone},
                 {why, Colour::kDim}});
    }
  }
  const bool is_named = hosts.size() > 1 || (!hosts.empty() && !hosts.front().host.empty());
  if (table.empty()) return is_named ? "the queues are empty\n" : "the queue is empty\n";
  if (!is_named) table.drop(0);
  return table.render(layout);
}

Result<Explained> explained(const Explanation& what, const std::vector<proto::Request>& requests,
                            const proto::Status::Reply& status,
                            const proto::ListTurns::Reply& turns) {
  const bool all = !what.request && !what.lease;
  Explained chosen;
  for (const proto::Request& request : requests) {
    if (all ? request.uid == what.uid : request.request_id == what.request) {
      chosen.requests.requests.push_back(request);
    }
  }
  std::vector<proto::Lease>& leases = chosen.status.leases;
  for (const proto::Lease& lease : status.leases) {
    if (all ? lease.uid == what.uid : lease.lease_id == what.lease) leases.push_back(lease);
  }
  for (const proto::TurnGpu& gpu : turns.gpus) {
    const bool here = std::any_of(leases.begin(), leases.end(), [&gpu](const proto::Lease& lease) {
      return std::any_of(gpu.leases.begin(), gpu.leases.end(),
                         [&lease](const auto& turn) { return turn.lease_id == lease.lease_id; });
    });
    if (here) chosen.turns.gpus.push_back(gpu);
  }
  if (what.request && chosen.requests.requests.empty()) {
    return fail(Code::kNotFound,
                fmt::format("there is no request {}: it has been served, cancelled, "
                            "or its command has been interrupted",
                            to_string(*what.request)));
  }
  if (what.lease && leases.empty()) {
    return fail(Code::kNotFound,
                fmt::format("there is no lease {}: 'gpurota status' lists the current ones",
                            to_string(*what.lease)));
  }
  return chosen;
}

std::string explained_json(const Explained& what) {
  return proto::joined_json(
      {{"requests", proto::document_json<proto::ListRequests>(what.requests), "requests"},
       {"leases", proto::document_json<proto::Status>(what.status), "leases"},
       {"bookings", proto::document_json<proto::Status>(what.status), "bookings"},
       {"turns", proto::document_json<proto::ListTurns>(what.turns), "gpus"},
       {"alternatives", proto::document_json<proto::FindAlternatives>(what.alternatives),
        "alternatives"}});
}

std::string explain_text(const Explained& what, const std::vector<proto::Request>& requests,
                         uid_t reader, WallTime now) {
  std::string text;
  for (const proto::Request& request : what.requests.requests) {
    std::vector<proto::Alternative> own = what.alternatives.alternatives;
    std::erase_if(own, [&request](const proto::Alternative& each) {
      return each.request_id != request.request_id;
    });
    text += explain_request(request, reader, now) + alternatives_lines(own);
  }
  for (const proto::Lease& lease : what.status.leases) {
    text += explain_lease(lease, requests, now);
    // A parked lease waits for no turn.
    if (!lease.parked) text += explain_turns(what.turns, lease.lease_id, now);
  }
  for (const proto::Booking& each : what.status.bookings.value_or(std::vector<proto::Booking>())) {
    text += explain_booking(each, now);
  }
  return text.empty() ? "you have no lease and wait for nothing\n" : text;
}

std::string ended_text(LeaseId lease, const std::vector<proto::Event>& events, WallTime now) {
  const proto::Event* last = nullptr;
  for (const proto::Event& event : events) {
    const bool ends =
        event.type == proto::EventType::kLeaseEnding || event.type == proto::EventType::kLeaseGone;
    // Prefers the event with the reason of the end (kLeaseEnding) to the event that the lease is
    // gone.
    if (ends && (!last || last->type != proto::EventType::kLeaseEnding)) last = &event;
  }
  if (!last) return {};
  // The message has the form "LEASE WHAT-HAPPENED: REASON".
  const std::size_t colon = last->message.find(": ");
  const std::string why =
      colon == std::string::npos ? last->message : last->message.substr(colon + 2);
  return fmt::format("{} is over since {}: {}\n", to_string(lease), clock_text(last->time, now),
                     display_text(why, 300));
}

}  // namespace gpurota::cli
