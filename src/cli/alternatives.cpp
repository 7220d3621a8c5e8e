#include "cli/alternatives.h"

#include "base/text.h"
#include "cli/time_text.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

// As --memory takes it.
std::string size_option(Bytes bytes) {
  const bool whole = bytes.count() % gib(1).count() == 0;
  return whole ? fmt::format("{}G", bytes.count() / gib(1).count())
               : fmt::format("{}M", bytes.count() / mib(1).count());
}

// "with --swap"; empty: this program does not know the change.
std::string change_text(const proto::Alternative& alternative) {
  switch (alternative.change) {
    case proto::AlternativeChange::kSeconds:
      return "with --timeout " + span_text(std::chrono::seconds(alternative.seconds.value_or(0)));
    case proto::AlternativeChange::kAnyGpu:
      return "without --gpu-ids";
    case proto::AlternativeChange::kMemory:
      return "with --memory " + size_option(alternative.memory_bytes.value_or(Bytes()));
    case proto::AlternativeChange::kSwap:
      return "with --swap";
    case proto::AlternativeChange::kGpus:
      return fmt::format("with --gpus {}", alternative.gpus.value_or(1));
    case proto::AlternativeChange::kUnknown:
      break;
  }
  return {};
}

std::string place_text(const proto::Alternative& alternative) {
  std::string labels;
  for (const std::string& label : alternative.labels) {
    labels += (labels.empty() ? "" : ",") + display_text(label, 20);
  }
  return labels.empty() ? "" : "on GPU " + labels;
}

}  // namespace

std::string alternatives_lines(const std::vector<proto::Alternative>& alternatives) {
  std::string text;
  for (const proto::Alternative& each : alternatives) {
    const std::string change = change_text(each);
    if (change.empty()) continue;
    text += fmt::format("  {} it could start now {}\n", change, place_text(each));
  }
  return text;
}

std::string alternatives_hint(const std::vector<proto::Alternative>& alternatives) {
  std::vector<std::string> changes;
  for (const proto::Alternative& each : alternatives) {
    const std::string change = change_text(each);
    if (!change.empty()) changes.push_back(fmt::format("{} ({})", change, place_text(each)));
  }
  std::string text;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const bool is_last = i + 1 == changes.size();
    text += (i == 0 ? "" : is_last ? " or " : ", ") + changes[i];
  }
  return text.empty() ? "" : "it could start now " + text;
}

std::vector<proto::Alternative> ask_alternatives(client::Connection& connection,
                                                 const proto::FindAlternatives& call) {
  auto reply = connection.call(call);
  return reply ? std::move(reply->alternatives) : std::vector<proto::Alternative>();
}

}  // namespace gpurota::cli
