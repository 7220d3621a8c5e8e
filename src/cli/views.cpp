#include "cli/views.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace gpurota::cli {
namespace {

Cell state_cell(proto::GpuState state) {
  switch (state) {
    case proto::GpuState::kAvailable:
      return {"available", Colour::kGreen};
    case proto::GpuState::kInUse:
      return {"in use", Colour::kNone};
    case proto::GpuState::kUnreservedUse:
      return {"unreserved use", Colour::kYellow};
    case proto::GpuState::kDraining:
      return {"draining", Colour::kYellow};
    case proto::GpuState::kError:
      return {"error", Colour::kRed};
    case proto::GpuState::kUnknown:
      break;
  }
  return {"unknown", Colour::kYellow};
}

std::string since_text(WallTime since, WallTime now) {
  const auto at = [](WallTime time) {
    const std::time_t seconds =
        std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
    std::tm local{};
    (void)::localtime_r(&seconds, &local);
    return local;
  };
  const std::tm then = at(since), today = at(now);
  const bool same_day = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
  char text[64];
  const std::size_t size =
      std::strftime(text, sizeof text, same_day ? "%H:%M" : "%b %e %H:%M", &then);
  return std::string(text, size);
}

std::string amount(const std::optional<Bytes>& bytes, const char* none) {
  return bytes ? to_string(*bytes) : none;
}

// The command, then the note: what the owner recognises it by.
std::string purpose(const proto::Lease& lease) {
  std::string text = lease.command ? display_command(*lease.command, 120) : "";
  if (lease.note && !lease.note->empty()) {
    const std::string note = display_text(*lease.note, 80);
    text = text.empty() ? note : fmt::format("{} ({})", note, text);
  }
  return text;
}

// One row for each of a lease's GPUs; the first one has what all share.
void add_lease(Table& table, const proto::Lease& lease, WallTime now) {
  const bool ending = lease.state == proto::LeaseState::kEnding;
  std::vector<Cell> row = {
      {to_string(lease.lease_id), Colour::kNone},
      {lease.user, Colour::kNone},
      {"", Colour::kNone},
      {to_string(lease.share), Colour::kNone},
      {"", Colour::kNone},
      {"", Colour::kNone},
      {since_text(lease.since, now), Colour::kNone},
      {ending ? "ending" : purpose(lease), ending ? Colour::kYellow : Colour::kNone}};
  for (const proto::LeaseGpu& gpu : lease.gpus) {
    row[2].text = std::to_string(gpu.index);
    row[4].text = amount(gpu.limit_bytes, "whole");
    row[5].text = to_string(gpu.used_bytes);
    table.add(row);
    for (const std::size_t shared : {0, 1, 3, 6, 7}) row[shared].text.clear();
  }
}

}  // namespace

std::string status_text(const proto::Status::Reply& reply, const Look& look, WallTime now) {
  Table gpus({{"GPU", true},
              {"NAME", false, 12},
              {"STATE"},
              {"USED", true},
              {"RESERVED", true},
              {"SIZE", true},
              {"", false, 10}});
  for (const proto::Gpu& gpu : reply.gpus) {
    gpus.add({{std::to_string(gpu.index), Colour::kNone},
              {gpu.parent ? "  " + gpu.name : gpu.name, Colour::kNone},
              state_cell(gpu.state),
              {to_string(gpu.used_bytes), Colour::kNone},
              {to_string(gpu.reserved_bytes), Colour::kNone},
              {to_string(gpu.memory_bytes), Colour::kNone},
              {gpu.detail.value_or(""), Colour::kDim}});
  }
  if (gpus.empty()) return "no GPU ('gpurota doctor' says why)\n";
  Table leases({{"LEASE"},
                {"USER", false, 6},
                {"GPU", true},
                {"SHARE"},
                {"LIMIT", true},
                {"USED", true},
                {"SINCE"},
                {"COMMAND", false, 8}});
  for (const proto::Lease& lease : reply.leases) add_lease(leases, lease, now);
  std::string text = gpus.render(look);
  if (!leases.empty()) text += "\n" + leases.render(look);
  return text;
}

std::string ps_text(const proto::ListProcesses::Reply& reply, const Look& look) {
  if (reply.processes.empty()) return "no process on any GPU\n";
  Table table({{"GPU", true},
               {"PID", true},
               {"USER", false, 6},
               {"TYPE"},
               {"MEMORY", true},
               {"LEASE"},
               {"LIMITED"},
               {"COMMAND", false, 8}});
  for (const proto::Process& process : reply.processes) {
    table.add({{std::to_string(process.gpu), Colour::kNone},
               {process.pid ? std::to_string(*process.pid) : "-", Colour::kNone},
               {process.user.value_or("?"), Colour::kNone},
               {to_string(process.type), Colour::kNone},
               {amount(process.used_bytes, "?"), Colour::kNone},
               {process.lease_id ? to_string(*process.lease_id) : "-",
                process.lease_id ? Colour::kNone : Colour::kYellow},
               {process.tenant ? "yes" : "-", Colour::kNone},
               {process.command ? display_command(*process.command, 160) : "", Colour::kNone}});
  }
  return table.render(look);
}

std::string doctor_text(const std::vector<proto::Check>& checks, const Look& look) {
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
    text += fmt::format("{}  {}{}  {}\n", paint(word, colour, look), name,
                        std::string(widest - display_width(name), ' '),
                        display_text(check.summary, 300));
    if (check.remedy && !fine)
      text += fmt::format("         -> {}\n", display_text(*check.remedy, 400));
  }
  return text;
}

std::string lease_line(const proto::Lease& lease) {
  std::string gpus;
  for (const proto::LeaseGpu& gpu : lease.gpus) {
    if (!gpus.empty()) gpus += ", ";
    gpus += fmt::format("GPU {} ({})", gpu.index, amount(gpu.limit_bytes, "whole"));
  }
  return fmt::format("{} on {}", to_string(lease.lease_id), gpus);
}

}  // namespace gpurota::cli
