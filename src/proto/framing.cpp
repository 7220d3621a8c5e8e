#include "proto/framing.h"

namespace gpurota::proto {

Result<void> FrameReader::append(std::string_view bytes) {
  // Bytes already taken are dropped here, in one move, not at each message.
  if (start_ > 0) {
    buffer_.erase(0, start_);
    scanned_ -= start_;
    start_ = 0;
  }
  for (std::size_t from = 0; from <= bytes.size();) {
    const std::size_t nul = bytes.find('\0', from);
    const std::size_t end = nul == std::string_view::npos ? bytes.size() : nul;
    tail_ += end - from;
    if (tail_ > max_message_) {
      buffer_.append(bytes.substr(0, from));
      return fail(Code::kLimit,
                  "a message is longer than " + std::to_string(max_message_) + " bytes");
    }
    if (nul == std::string_view::npos) break;
    tail_ = 0;
    from = nul + 1;
  }
  buffer_.append(bytes);
  return {};
}

std::optional<std::string> FrameReader::next() {
  const std::size_t nul = buffer_.find('\0', scanned_);
  if (nul == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  std::string message = buffer_.substr(start_, nul - start_);
  start_ = scanned_ = nul + 1;
  return message;
}

}  // namespace gpurota::proto
