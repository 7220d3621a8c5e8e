#include "cli/hosts/answers.h"

#include "base/text.h"
#include "proto/documents.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

constexpr std::size_t kLongestTrouble = 300;

std::string trouble(const HostAnswer& answer) {
  return display_text(answer.text.error().message, kLongestTrouble);
}

}  // namespace

std::string answers_json(std::string_view what, const std::vector<HostAnswer>& answers) {
  std::vector<std::string> documents;
  for (const HostAnswer& each : answers) {
    const std::string host = proto::text_json(each.host);
    documents.push_back(
        each.text
            ? proto::joined_json({{"host", host}, {what, *each.text}})
            : proto::joined_json({{"host", host}, {"error", proto::text_json(trouble(each))}}));
  }
  return proto::listed_json("hosts", documents);
}

std::string trouble_line(const HostAnswer& answer) {
  return fmt::format("{}: {}", answer.host, trouble(answer));
}

}  // namespace gpurota::cli
