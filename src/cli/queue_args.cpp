#include "cli/queue_args.h"

#include "base/text.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

Result<Command> reserve_command(const Raw& raw) {
  ReserveOptions reserve;
  GPUROTA_TRY(read_wishes(raw, reserve));
  GPUROTA_ASSIGN_OR_RETURN(reserve.lasts, time_of("--for", raw.for_));
  reserve.take_over = raw.force;
  reserve.is_short = raw.short_;
  reserve.json = raw.json;
  if (reserve.json && reserve.is_short) {
    return fail(Code::kInvalid, "give --json or --short, not both");
  }
  return reserve;
}

Result<Command> cancel_command(const Raw& raw) {
  CancelOptions cancel;
  for (const std::string& word : raw.positional) {
    GPUROTA_ASSIGN_OR_RETURN(cancel.requests.emplace_back(), request_handle(word));
  }
  if (cancel.requests.empty()) {
    return fail(Code::kInvalid, "which request? For instance: gpurota cancel R7");
  }
  cancel.reason = raw.reason;
  return cancel;
}

Result<Command> explain_command(const Raw& raw) {
  ExplainOptions explain;
  explain.json = raw.json;
  if (raw.positional.empty()) return explain;
  const std::string& word = raw.positional.front();
  // A bare number is taken for a request: whoever asks waits more often.
  const auto request = request_handle(word);
  const auto lease = lease_handle(word);
  if (request && request->name.empty()) {
    explain.request = *request;
  } else if (lease && lease->name.empty()) {
    explain.lease = *lease;
  } else if (lease) {
    explain.name = lease->name;
  }
  if (lease || request) return explain;
  return tl::unexpected(neither_request_nor_lease(word));
}

Result<Command> drain_command(const std::string& name, const Raw& raw) {
  DrainOptions drain;
  drain.drain = name == "drain";
  GPUROTA_ASSIGN_OR_RETURN(drain.gpu_ids, split_ids(raw.positional));
  drain.reason = raw.reason;
  if (drain.gpu_ids.empty()) {
    return fail(Code::kInvalid, fmt::format("which GPU? For instance: gpurota {} 3", name));
  }
  return drain;
}

}  // namespace

bool is_queue_command(const std::string& name) {
  return name == "reserve" || name == "queue" || name == "cancel" || name == "explain" ||
         name == "limits" || name == "drain" || name == "undrain";
}

Result<Command> queue_command(const std::string& name, const Raw& raw) {
  if (name == "reserve") return reserve_command(raw);
  if (name == "queue") return QueueOptions{raw.json};
  if (name == "cancel") return cancel_command(raw);
  if (name == "explain") return explain_command(raw);
  if (name == "limits") return LimitsOptions{raw.user, raw.json};
  return drain_command(name, raw);
}

}  // namespace gpurota::cli
