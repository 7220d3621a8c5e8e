// Events that are told to nobody and in no store yet, kept where a kill -9 of the daemon does not
// take them: a file in the state directory, appended to and not waited for. The store has each of
// them within a tenth of a second, and then the file is emptied; so it costs a system call where a
// transaction of its own would cost a write to the disk. Of the recorder; state thread only. Events
// that a power cut takes are lost, as they always are.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "ports/history.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::daemon {

// Strings with their lengths, a line for each event, in the order of the fields; foreign bytes as
// they are.
std::string encode_event(const ports::StoredEvent& event);
// Decodes the events that are whole: the last one may have been cut. The rest that is not whole is
// left in `text`.
std::vector<ports::StoredEvent> decode_events(std::string_view& text);

class EventSpill {
 public:
  // A daemon that cannot store makes this grow: then there is no more in it.
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;

  // Makes the file (0600) if there is none.
  static Result<EventSpill> open(const std::string& path);

  // The events that the last daemon left. Part of an event, which would hide what comes after it,
  // is cut off.
  Result<std::vector<ports::StoredEvent>> read();
  // Failure is not told: the event is on its way to the store.
  void add(const ports::StoredEvent& event);
  // All of them are in the store.
  void clear();

 private:
  explicit EventSpill(Fd fd, std::size_t size) : fd_(std::move(fd)), size_(size) {}

  Fd fd_;
  std::size_t size_ = 0;
};

}  // namespace gpurota::daemon
