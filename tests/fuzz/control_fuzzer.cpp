// Any bytes on the control socket: split into messages, parsed as a call and as each kind of
// answer. An accepted message stays the same when written and read again; a refused one is answered
// with an error that a client can read.
#include "ipc/framer.h"
#include "proto/codec.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

namespace {

using namespace gpurota::proto;

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Method>
void check_reply(std::string_view text) {
  const auto answer = parse_reply<Method>(text);
  if (!answer) {
    require(!gpurota::proto::to_error(answer.error()).message.empty());
    return;
  }
  const auto again = parse_reply<Method>(reply_json<Method>(answer->reply, answer->continues));
  require(again && again->reply == answer->reply && again->continues == answer->continues);
}

void check_call(std::string_view text) {
  const auto call = parse_call(text);
  if (!call) {
    const auto answer = parse_reply<Status>(error_json(call.error().error));
    require(!answer && answer.error().name == call.error().error.name);
    return;
  }
  const std::string written = std::visit(
      [&]<class Method>(const Method& params) { return call_json<Method>(params, call->more); },
      call->params);
  const auto again = parse_call(written);
  require(again && again->params == call->params && again->more == call->more);
}

// The same messages result however the bytes are split.
void check_framing(std::string_view bytes) {
  constexpr std::size_t kMax = 64;
  gpurota::ipc::Framer whole(kMax), pieces(kMax);
  const bool fits = whole.feed(bytes).has_value();
  bool fits_too = true;
  for (std::size_t at = 0; at < bytes.size() && fits_too; at += 3) {
    fits_too = pieces.feed(bytes.substr(at, 3)).has_value();
  }
  require(fits == fits_too);
  while (auto message = whole.next()) {
    require(message->size() <= kMax);
    require(pieces.next() == message);
  }
  require(!pieces.next());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check_framing(input);
  check_call(input);
  check_reply<Status>(input);
  check_reply<Hold>(input);
  check_reply<Acquire>(input);
  check_reply<ListProcesses>(input);
  check_reply<Events>(input);
  check_reply<Report>(input);
  check_reply<Health>(input);
  check_reply<ListRequests>(input);
  check_reply<ListJobs>(input);
  check_reply<ServiceInfo>(input);
  return 0;
}
