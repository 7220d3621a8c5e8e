#include "cli/text/ps_doctor_text.h"

#include "base/text.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli {
namespace {

std::string label_or_index(const std::optional<std::string>& label, int index) {
  return label ? display_text(*label, 20) : std::to_string(index);
}

std::string amount(const std::optional<Bytes>& bytes, const char* none) {
  return bytes ? to_string(*bytes) : none;
}

}  // namespace

namespace {

std::string count(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : "-";
}

// Whether libgpurota limits the process, and if not, why.
Cell limited_cell(const proto::Process& process) {
  if (process.tenant) return {"yes", Colour::kNone};
  if (!process.library) return {"-", Colour::kNone};
  switch (*process.library) {
    case proto::LibraryState::kAbsent:
      return {"not loaded", Colour::kYellow};
    case proto::LibraryState::kSilent:
      return {"no", Colour::kRed};
    case proto::LibraryState::kAway:
      return {"away", Colour::kYellow};
    case proto::LibraryState::kUnknown:
      break;
  }
  return {"not known", Colour::kYellow};
}

// Programs that are not limited: only gpurota's developers can fix that.
std::string not_limited_lines(const proto::ListProcesses::Reply& reply) {
  std::string text;
  for (const proto::Process& process : reply.processes) {
    if (process.library != proto::LibraryState::kSilent || !process.pid) continue;
    text += fmt::format(
        "libgpurota is loaded in process {} but does not limit it: please report this, with what "
        "GPUROTA_DEBUG=1 prints\n",
        *process.pid);
  }
  return text;
}

// Calls that libgpurota had to let pass: nobody notices them otherwise until memory is missing.
std::string unhooked_lines(const proto::ListProcesses::Reply& reply) {
  std::string text;
  for (const proto::Process& process : reply.processes) {
    if (process.unhooked.value_or(0) == 0 || !process.pid) continue;
    std::string names;
    for (const std::string& name : process.unhooked_names.value_or(std::vector<std::string>())) {
      names += (names.empty() ? "" : ", ") + display_text(name, 64);
    }
    text +=
        fmt::format("{} uses driver functions newer than this gpurota: {}\n", *process.pid, names);
  }
  return text;
}

// The owner of a program that is held back would otherwise look for the reason in the program.
std::string held_lines(const proto::ListProcesses::Reply& reply) {
  std::string text;
  for (const proto::Process& process : reply.processes) {
    if (!process.pid) continue;
    if (const std::int64_t held = process.held_seconds.value_or(0); held > 0) {
      text += fmt::format("{} has held back work for {} s so far, for interactive leases\n",
                          *process.pid, held);
    }
    if (const std::int64_t waited = process.share_wait_seconds.value_or(0); waited > 0) {
      text += fmt::format("{} has waited for {} s so far until its lease could compute\n",
                          *process.pid, waited);
    }
  }
  return text;
}

}  // namespace

std::string container_text(const proto::Container& container) {
  constexpr std::size_t kShort = 12;
  std::string text = std::string(to_string(container.engine));
  if (container.name) return display_text(text + " " + *container.name, 80);
  if (!container.container_id.empty()) text += " " + container.container_id.substr(0, kShort);
  if (container.pod) text += " pod " + *container.pod;
  return display_text(text, 80);
}

std::string ps_text(const proto::ListProcesses::Reply& reply, const Layout& layout) {
  if (reply.processes.empty()) return "no process on any GPU\n";
  constexpr std::size_t kContainer = 9;
  Table table({{"GPU", true},
               {"PID", true},
               {"USER", false, 6},
               {"TYPE"},
               {"MEMORY", true},
               {"LEASE"},
               {"LIMITED"},
               {"ALLOCS", true},
               {"REFUSED", true},
               {"CONTAINER"},
               {"COMMAND", false, 8}});
  for (const proto::Process& process : reply.processes) {
    table.add({{label_or_index(process.gpu_label, process.gpu), Colour::kNone},
               {process.pid ? std::to_string(*process.pid) : "-", Colour::kNone},
               {process.user.value_or("?"), Colour::kNone},
               {to_string(process.type), Colour::kNone},
               {amount(process.used_bytes, "?"), Colour::kNone},
               {process.lease_id ? to_string(*process.lease_id) : "-",
                process.lease_id ? Colour::kNone : Colour::kYellow},
               limited_cell(process),
               {count(process.allocations), Colour::kNone},
               {count(process.refusals),
                process.refusals.value_or(0) > 0 ? Colour::kYellow : Colour::kNone},
               {process.container ? container_text(*process.container) : "", Colour::kNone},
               {process.command ? display_command(*process.command, 160) : "", Colour::kNone}});
  }
  if (!table.has_text(kContainer)) table.drop(kContainer);
  return table.render(layout) + not_limited_lines(reply) + unhooked_lines(reply) +
         held_lines(reply);
}

std::string doctor_text(const std::vector<proto::Check>& checks, const Layout& layout) {
  std::size_t widest = 0;
  for (const proto::Check& check : checks) {
    widest = std::max(widest, display_width(display_text(check.name, 40)));
  }
  std::string text;
  for (const proto::Check& check : checks) {
    const bool error = check.status == proto::CheckStatus::kError;
    const bool fine = check.status == proto::CheckStatus::kOk;
    const Colour colour = error ? Colour::kRed : fine ? Colour::kGreen : Colour::kYellow;
    const std::string word = fmt::format("{:<7}", to_string(check.status));
    const std::string name = display_text(check.name, 40);
    text += fmt::format("{}  {}{}  {}\n", paint(word, colour, layout), name,
                        std::string(widest - display_width(name), ' '),
                        display_text(check.summary, 300));
    if (check.remedy && !fine)
      text += fmt::format("         -> {}\n", display_text(*check.remedy, 400));
  }
  return text;
}

std::string label_of(const proto::Gpu& gpu) { return label_or_index(gpu.label, gpu.index); }
std::string person_text(const std::string& user, const std::optional<std::string>& as_name) {
  const std::string shown = display_text(user, 32);
  return as_name ? fmt::format("{} ({})", shown, display_text(*as_name, 32)) : shown;
}

std::string label_of(const proto::LeaseGpu& gpu) { return label_or_index(gpu.label, gpu.index); }

std::string lease_line(const proto::Lease& lease) {
  std::string gpus;
  for (const proto::LeaseGpu& gpu : lease.gpus) {
    if (!gpus.empty()) gpus += ", ";
    const std::string hosted = gpu.oversize_bytes ? fmt::format(", {} of it in host memory",
                                                                to_string(*gpu.oversize_bytes))
                                                  : "";
    const std::string name = gpu.index < 0 ? "lost GPU " + gpu.uuid.value : "GPU " + label_of(gpu);
    gpus += fmt::format("{} ({}{})", name, amount(gpu.limit_bytes, "whole"), hosted);
  }
  if (lease.share == proto::Share::kSwap) gpus += ", in turns";
  if (lease.latency == proto::LatencyClass::kInteractive) gpus += ", interactive";
  if (lease.compute_percent) {
    gpus += fmt::format(", {}% of its compute time", *lease.compute_percent);
  }
  if (lease.compute_max_percent) {
    gpus += fmt::format(", at most {}% of its compute time", *lease.compute_max_percent);
  }
  if (lease.parked) gpus += fmt::format(", {}", to_string(*lease.parked));
  const std::string name = lease.name ? fmt::format(" ({})", display_text(*lease.name, 64)) : "";
  return fmt::format("{}{} on {}", to_string(lease.lease_id), name, gpus);
}

std::string oversize_warning(const proto::Lease& lease) {
  for (const proto::LeaseGpu& gpu : lease.gpus) {
    if (!gpu.oversize_bytes) continue;
    return fmt::format(
        "{} is oversize: of its {} on GPU {}, {} lie in host memory, which the GPU reaches over "
        "the bus, far more slowly than its own memory; the last allocations go there",
        to_string(lease.lease_id), amount(gpu.limit_bytes, "memory"), label_of(gpu),
        to_string(*gpu.oversize_bytes));
  }
  return {};
}

}  // namespace gpurota::cli
