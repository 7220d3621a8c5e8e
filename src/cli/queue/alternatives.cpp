#include "cli/queue/alternatives.h"

#include "base/text.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

constexpr std::size_t kLongestRemedy = 200;

}  // namespace

std::string alternatives_lines(const std::vector<proto::Alternative>& alternatives) {
  std::string text;
  for (const proto::Alternative& each : alternatives) {
    if (!each.remedy) continue;
    std::string labels;
    for (const std::string& label : each.labels) {
      labels += (labels.empty() ? ", on GPU " : ",") + display_text(label, 20);
    }
    text += fmt::format("  {}{}\n", display_text(*each.remedy, kLongestRemedy), labels);
  }
  return text;
}

std::vector<proto::Alternative> ask_alternatives(client::Connection& connection,
                                                 const proto::FindAlternatives& call) {
  auto reply = connection.call(call);
  return reply ? std::move(reply->alternatives) : std::vector<proto::Alternative>();
}

}  // namespace gpurota::cli
