#include "ipc/framer.h"

#include <fmt/core.h>

#include <algorithm>

namespace gpurota::ipc {
namespace {

// The room that an empty buffer keeps for the next message.
constexpr std::size_t kKeptRoom = 4096;

// Drops the used front of a buffer when no more bytes remain than were used, so that each byte is
// moved at most once on average.
void compact(std::string& buffer, std::size_t& used) {
  if (used < buffer.size() - used) return;
  buffer.erase(0, used);
  used = 0;
}

}  // namespace

Result<void> Framer::feed(std::string_view bytes) {
  for (std::size_t at = 0; !failed_ && at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', at), bytes.size());
    open_ += end - at;
    failed_ = open_ > max_message_;
    if (end < bytes.size()) open_ = 0;
    at = end + 1;
  }
  if (failed_) {
    return fail(Code::kLimit, fmt::format("a message is longer than {} bytes", max_message_));
  }
  buffer_.append(bytes);
  return {};
}

std::optional<std::string> Framer::next() {
  if (failed_) return std::nullopt;
  const std::size_t end = buffer_.find('\0', scanned_);
  if (end == buffer_.npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  std::string message = buffer_.substr(taken_, end - taken_);
  taken_ = end + 1;
  compact(buffer_, taken_);
  if (buffer_.empty() && buffer_.capacity() > kKeptRoom) std::string().swap(buffer_);
  scanned_ = taken_;
  return message;
}

bool OutputBuffer::append(std::string_view bytes) {
  if (bytes.size() > limit_ || pending().size() > limit_ - bytes.size()) return false;
  buffer_.append(bytes);
  return true;
}

void OutputBuffer::consume(std::size_t count) {
  written_ = std::min(written_ + count, buffer_.size());
  compact(buffer_, written_);
  // Frees the room of a large answer: a thousand connections that kept such room would take a lot
  // of memory.
  if (buffer_.empty() && buffer_.capacity() > kKeptRoom) std::string().swap(buffer_);
}

}  // namespace gpurota::ipc
