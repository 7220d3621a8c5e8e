// Messages of the control protocol as text, in both directions. A peer's message is checked here
// and nowhere else: size, nesting, types and ranges. Pure; any thread; throws nothing.
//
// Every message is one JSON object without its terminating NUL: ipc/framer.h adds and removes that.
// The daemon: parse_call, then reply_json or error_json. A client: call_json, then parse_reply.
// Text that is not UTF-8 goes out with each invalid byte replaced by U+FFFD, and comes in never:
// a message that is not UTF-8 is refused.
#pragma once

#include "proto/error.h"
#include "proto/methods.h"

#include <tl/expected.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace gpurota::proto {

// Larger than any real request; small enough that a hostile one costs nothing to refuse.
inline constexpr std::size_t kMaxCallBytes = std::size_t{64} << 10;
// The longest reply that a client accepts: 4096 leases with notes and commands fit.
inline constexpr std::size_t kMaxReplyBytes = std::size_t{64} << 20;
inline constexpr int kMaxDepth = 16;
inline constexpr std::size_t kMaxSessionBytes = 128;

struct Call {
  Params params;
  bool more = false;    // the caller takes several replies
  bool oneway = false;  // the caller takes none: neither a reply nor an error may be sent
  // The token of the web session that it is made by (docs/design/web-sessions.md); empty: by none.
  std::string session{};
};

struct BadCall {
  WireError error;  // to be answered with, unless oneway
  bool oneway = false;
};

tl::expected<Call, BadCall> parse_call(std::string_view text);

// `continues`: another reply to the same call will follow; only to a call with `more`.
template <class Method>
std::string reply_json(const typename Method::Reply& reply, bool continues = false);

// One item of a list of a reply as reply_json() has it, for answers that are made a piece at a
// time: an Event, a point or a series of History.
template <class Item>
std::string item_json(const Item& item);
// `text` with these items, with commas between, in its first list of this name, which is empty
// there.
std::string with_items(std::string text, std::string_view list, std::string_view items);

std::string error_json(const WireError& error);
// "NoGpu" of a message that error_json made; empty for any other.
std::string_view error_word(std::string_view message);

template <class Method>
std::string call_json(const Method& params, bool more = false, std::string_view session = {});

template <class Method>
struct Answer {
  typename Method::Reply reply;
  bool continues = false;
};

// The answer to a call of `Method`. The error is the one the daemon sent, or, for an answer that
// cannot be understood, one of name kMalformed that says which part. A number that its field has no
// room for is the nearest that fits, and a field that need not be there and cannot be read is
// empty: neither is an error.
template <class Method>
tl::expected<Answer<Method>, WireError> parse_reply(std::string_view text);

// Only the reply's parameters, indented: what `--json` prints. Ends with a newline. Characters that
// could drive a terminal or reorder text on it are escaped: the same value, wherever it is printed.
template <class Method>
std::string document_json(const typename Method::Reply& reply);

// One event as one line, for programs that read a stream of them. Ends with a newline. Escaped as
// document_json is.
std::string event_json(const Event& event);

// A notice for a program, as one line that ends with a newline. Escaped as document_json is.
std::string notice_json(const Notice& notice);

// A command line as it may be sent: at most kMaxCommandItems and kMaxCommandBytes, valid UTF-8;
// what was cut is replaced by "…".
std::vector<std::string> sendable_command(const std::vector<std::string>& argv);

}  // namespace gpurota::proto
