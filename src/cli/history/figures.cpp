// gpurota history.
#include "cli/args/program_commands.h"
#include "cli/args/since.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/history/figure_sums.h"
#include "cli/history/figures_text.h"
#include "cli/history/history_graphs.h"
#include "cli/text/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string_view>

namespace gpurota::cli {
namespace {

// How far back figures are kept: in all, and for each second. The longest steps lack the newest
// figures.
constexpr auto kKept =
    std::to_array<std::chrono::minutes>({std::chrono::hours(24 * 90), std::chrono::minutes(15)});
constexpr std::int64_t kMostPoints = 1000;  // per series, from the daemon

// Whether the terminal can probably show blocks of different heights. False for the Linux console,
// because its fonts lack such blocks. Also false if TERM is empty or "dumb", which tells nothing
// about the terminal.
bool has_block_characters() {
  const char* const name = std::getenv("TERM");
  const std::string_view term = name == nullptr ? "" : name;
  return term != "" && term != "linux" && term != "dumb";
}

Result<proto::History> history_call(const HistoryOptions& options) {
  proto::History call;
  if (options.since) {
    GPUROTA_ASSIGN_OR_RETURN(call.since, parse_since("--since", *options.since, now()));
  }
  if (!options.gpu_ids.empty()) call.gpu_ids = options.gpu_ids;
  if (options.lease) {
    call.lease_ids = {{*options.lease}};
    call.gpu_ids = std::vector<std::string>();
  }
  return call;
}

// Whether the lease exists now. If a current lease has no figures, it has just begun.
Result<bool> is_current(client::Connection& connection, LeaseId id) {
  GPUROTA_ASSIGN_OR_RETURN(const auto status, connection.call(proto::Status{}));
  return std::any_of(status.leases.begin(), status.leases.end(),
                     [id](const proto::Lease& lease) { return lease.lease_id == id; });
}

// For a lease without figures in the requested time: the time since which the lease has figures;
// empty: the lease has just begun. kNotFound: there is no such lease.
Result<std::optional<WallTime>> first_figures(client::Connection& connection, LeaseId id) {
  for (const auto& kept : kKept) {
    proto::History all;
    all.gpu_ids = std::vector<std::string>();
    all.lease_ids = {{id}};
    all.since = now() - kept;
    all.points = kMostPoints;
    GPUROTA_ASSIGN_OR_RETURN(const auto known, connection.call(all));
    if (has_points(known)) return known.leases.front().points.front().time;
  }
  GPUROTA_ASSIGN_OR_RETURN(const bool current, is_current(connection, id));
  if (current) return std::nullopt;
  return fail(Code::kNotFound,
              fmt::format("there are no figures of a lease {}: 'gpurota status' lists the current "
                          "leases, 'gpurota events' those that have ended",
                          to_string(id)));
}

std::string earlier_text(LeaseId id, const proto::History::Reply& reply, WallTime first) {
  return fmt::format("{}: the first figures of {} are of {} (--since \"{}\")\n",
                     no_points_line(reply), to_string(id), full_time(first),
                     local_time(first, "%Y-%m-%d %H:%M"));
}

GpuSizes gpu_sizes(client::Connection& connection) {
  GpuSizes sizes;
  const auto status = connection.call(proto::Status{});
  if (!status) return sizes;
  for (const proto::Gpu& gpu : status->gpus) sizes[gpu.uuid.value] = gpu.memory_bytes;
  return sizes;
}

}  // namespace

int history(const Context& context, const HistoryOptions& options) {
  auto call = history_call(options);
  if (!call) return misused(call.error());
  Layout style = terminal_layout();
  const std::size_t columns = options.json || options.steps ? 0 : graph_columns(style.width);
  if (columns > 0) {
    call->points = std::min(static_cast<std::int64_t>(columns), kMostPoints);
  }
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto reply = connection->call(*call);
  if (!reply) return failed(reply.error());
  if (options.lease && !has_points(*reply)) {
    const auto first = first_figures(*connection, *options.lease);
    if (!first) return failed(first.error());
    if (*first && !options.json) return shown(earlier_text(*options.lease, *reply, **first));
  }
  if (options.json) return shown(proto::document_json<proto::History>(*reply));
  if (options.steps) return shown(steps_text(*reply, style));
  if (columns == 0) return shown(figures_text(*reply, style));
  style.ascii = style.ascii || !has_block_characters();
  return shown(graphs_text(*reply, style, gpu_sizes(*connection)));
}

}  // namespace gpurota::cli
