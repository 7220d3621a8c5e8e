// The answers of several machines: read, and as one JSON document. Their text is foreign. Pure.
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

// Parses the output of `gpurota --json` of a machine into the reply of which it was made; an error
// is one line that says what is wrong.
template <class Method>
Result<typename Method::Reply> parse_printed(std::string_view document) {
  auto answer = proto::parse_reply<Method>("{\"parameters\":" + std::string(document) + "}");
  if (answer) return std::move(answer->reply);
  return fail(
      Code::kIo,
      "what it prints is not the JSON of gpurota: does its shell print something of its own, "
      "or is its gpurota older?");
}

// The machines that have answered with a reply of `Method`; `answers` of the others become errors.
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

// {"hosts": [{"host": "gpu1", WHAT: {…}}, {"host": "gpu2", "error": "…"}]}: the documents as they
// came, so that fields which this program does not know stay.
std::string answers_json(std::string_view what, const std::vector<HostAnswer>& answers);

// "gpu2: no answer within 5 s": safe to print.
std::string trouble_line(const HostAnswer& answer);

}  // namespace gpurota::cli
