// Messages of the control protocol as text, in both directions. A peer's message is checked here
// and nowhere else: size, nesting, types and ranges. Pure; any thread; throws nothing.
//
// Every message is one JSON object without its terminating NUL: ipc/framer.h adds and removes the
// NUL. The daemon: parse_call, then reply_json or error_json. A client: call_json, then
// parse_reply. Outgoing text that is not UTF-8 has each invalid byte replaced by U+FFFD. An
// incoming message that is not UTF-8 is refused.
#pragma once

#include "proto/error.h"
#include "proto/methods.h"

#include <tl/expected.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace gpurota::proto {

// Larger than any real request, and small enough that refusing a hostile one costs nothing.
inline constexpr std::size_t kMaxCallBytes = std::size_t{64} << 10;
// The longest reply that a client accepts: 4096 leases with notes and commands fit.
inline constexpr std::size_t kMaxReplyBytes = std::size_t{64} << 20;
inline constexpr int kMaxDepth = 16;
inline constexpr std::size_t kMaxSessionBytes = 128;

struct Call {
  Params params;
  bool more = false;    // the caller accepts several replies
  bool oneway = false;  // the caller accepts none: neither a reply nor an error may be sent
  // The token of the web session that makes the call (docs/design/web-sessions.md); empty: none.
  std::string session{};
};

struct BadCall {
  WireError error;  // the answer to send, unless oneway
  bool oneway = false;
};

tl::expected<Call, BadCall> parse_call(std::string_view text);

// `continues`: another reply to the same call will follow; allowed only if the call has `more`.
template <class Method>
std::string reply_json(const typename Method::Reply& reply, bool continues = false);

// One item of a list in a reply, as reply_json() writes it, for answers that are made in pieces: an
// Event, a point or a series of History.
template <class Item>
std::string item_json(const Item& item);
// `text` with `items`, which are separated by commas, put into its first list of the name `list`.
// The list must be empty before.
std::string with_items(std::string text, std::string_view list, std::string_view items);

std::string error_json(const WireError& error);
// "NoGpu" for a message that error_json made; empty for any other.
std::string_view error_word(std::string_view message);

template <class Method>
std::string call_json(const Method& params, bool more = false, std::string_view session = {});

template <class Method>
struct Answer {
  typename Method::Reply reply;
  bool continues = false;
};

// The answer to a call of `Method`. The error is the daemon's, or kMalformed with the part of the
// answer that cannot be understood. A number that is too large or too small for its field becomes
// the nearest that fits. An optional field that cannot be read is empty. Neither is an error.
template <class Method>
tl::expected<Answer<Method>, WireError> parse_reply(std::string_view text);

// Only the reply's parameters, indented: what `--json` prints. Ends with a newline. Characters that
// could control a terminal or reorder its text are escaped, wherever the text is printed. The value
// stays the same.
template <class Method>
std::string document_json(const typename Method::Reply& reply);

// One event as one line, for programs that read a stream of events. Ends with a newline. Escaped
// like document_json.
std::string event_json(const Event& event);

// A notice for a program, as one line that ends with a newline. Escaped like document_json.
std::string notice_json(const Notice& notice);

// A command line that may be sent: at most kMaxCommandItems and kMaxCommandBytes, valid UTF-8; "…"
// replaces what was cut.
std::vector<std::string> sendable_command(const std::vector<std::string>& argv);

}  // namespace gpurota::proto
