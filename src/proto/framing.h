// Splits a byte stream into messages: each ends with a NUL byte. One per connection; no I/O here.
//
// The reader appends what it received and takes messages until there is none. A message that grows
// past the limit makes append fail; the connection is of no use then and should be closed.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpurota::proto {

class FrameReader {
 public:
  explicit FrameReader(std::size_t max_message) : max_message_(max_message) {}

  // kLimit once a message is longer than the limit. Complete messages before it can still be taken.
  Result<void> append(std::string_view bytes);
  // The next complete message without its NUL.
  std::optional<std::string> next();
  // Received, not yet taken: what a connection costs now.
  std::size_t pending() const { return buffer_.size() - start_; }

 private:
  std::size_t max_message_;
  std::string buffer_;
  std::size_t start_ = 0;    // of the next message
  std::size_t scanned_ = 0;  // no NUL in [start_, scanned_)
  std::size_t tail_ = 0;     // bytes since the last NUL
};

// The message as it is sent.
inline std::string framed(std::string json) {
  json.push_back('\0');
  return json;
}

}  // namespace gpurota::proto
