// The answers of several machines: parsed, and as one JSON document. Their text is untrusted. Pure.
#pragma once

#include "cli/args/of_host.h"
#include "cli/hosts/ask.h"
#include "proto/codec.h"
#include "proto/methods.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpurota::cli {

// Parses a machine's output of `gpurota --json` back into the reply. An error is one line that says
// what is wrong.
template <class Method>
Result<typename Method::Reply> parse_printed(std::string_view document) {
  auto answer = proto::parse_reply<Method>("{\"parameters\":" + std::string(document) + "}");
  if (answer) return std::move(answer->reply);
  return fail(
      Code::kIo,
      "what it prints is not the JSON of gpurota: does its shell print something of its own, "
      "or is its gpurota older?");
}

// The machines that answered with a reply of `Method`; the other `answers` become errors.
template <class Method>
std::vector<std::pair<std::string, typename Method::Reply>> parse_all(
    std::vector<HostAnswer>& answers) {
  std::vector<std::pair<std::string, typename Method::Reply>> replies;
  for (HostAnswer& each : answers) {
    if (!each.text) continue;
    auto reply = parse_printed<Method>(*each.text);
    if (reply) {
      replies.emplace_back(each.host, std::move(*reply));
    } else {
      each.text = tl::unexpected(reply.error());
    }
  }
  return replies;
}

template <class Method>
std::vector<OfHost<Method>> views_of(
    const std::vector<std::pair<std::string, typename Method::Reply>>& replies) {
  std::vector<OfHost<Method>> views;
  for (const auto& [host, reply] : replies) views.push_back({host, &reply});
  return views;
}

// {"hosts": [{"host": "gpu1", WHAT: {…}}, {"host": "gpu2", "error": "…"}]}: the documents
// unchanged, so that fields unknown to this program are kept.
std::string answers_json(std::string_view what, const std::vector<HostAnswer>& answers);

// "gpu2: no answer within 5 s": safe to print.
std::string trouble_line(const HostAnswer& answer);

}  // namespace gpurota::cli
