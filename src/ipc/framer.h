// The control socket's stream: messages that end with a NUL byte, in and out. Bytes only: no
// sockets, no JSON. Used by the daemon for each connection and by its clients.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpurota::ipc {

// Turns received bytes into whole messages. Each byte is examined once, in whatever pieces it
// arrives.
class Framer {
 public:
  // A message may have `max_message` bytes, its NUL not counted.
  explicit Framer(std::size_t max_message) : max_message_(max_message) {}

  // kLimit once a message is longer than allowed; every later call then fails too.
  Result<void> feed(std::string_view bytes);
  // The next whole message without its NUL, or nothing. Call until nothing after each feed().
  std::optional<std::string> next();
  // Whether next() would return a message.
  bool has_next() const { return buffered() > open_; }
  // Bytes of messages that next() has not returned.
  std::size_t buffered() const { return buffer_.size() - taken_; }

 private:
  std::size_t max_message_;
  std::string buffer_;
  std::size_t taken_ = 0;    // bytes at the front that next() has given out
  std::size_t scanned_ = 0;  // where next() continues to search for a NUL: none from taken_ to here
  std::size_t open_ = 0;     // bytes at the end that are the beginning of a message
  bool failed_ = false;
};

// Bytes waiting for a reader that is slower than we are.
class OutputBuffer {
 public:
  // At most `limit` bytes may wait.
  explicit OutputBuffer(std::size_t limit) : limit_(limit) {}

  // False if that would exceed the limit: nothing is appended, and the reader must be given up.
  bool append(std::string_view bytes);
  // The bytes to write next. Then call consume() with the number of bytes that were written.
  std::string_view pending() const { return std::string_view(buffer_).substr(written_); }
  void consume(std::size_t count);
  bool empty() const { return written_ == buffer_.size(); }

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t written_ = 0;
};

}  // namespace gpurota::ipc
