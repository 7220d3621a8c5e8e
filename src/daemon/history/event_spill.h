// A file for events that are neither shown to anybody nor in the store yet, so that they survive a
// kill -9 of the daemon. The file is in the state directory, and is appended to without waiting for
// the disk. The store has each event within a tenth of a second, and then the file is emptied. An
// event thus costs a system call, while its own transaction would cost a write to the disk. A loss
// of power loses these events, with or without the file. For the recorder; state thread only.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "ports/history.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::daemon {

// One line for each event: its fields in order, as strings with their lengths. Text that came from
// outside the daemon is written unchanged, whatever bytes it has, because its length says where it
// ends.
std::string encode_event(const ports::StoredEvent& event);
// Decodes the complete events. The last event may have been cut off: an incomplete rest is left in
// `text`.
std::vector<ports::StoredEvent> decode_events(std::string_view& text);

class EventSpill {
 public:
  // The bound of the file, which grows while the daemon cannot store events. Events beyond it are
  // not added.
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;

  // Makes the file (0600) if there is none.
  static Result<EventSpill> open(const std::string& path);

  // The events that the last daemon left. An incomplete event at the end is cut off, as it would
  // hide the events after it.
  Result<std::vector<ports::StoredEvent>> read();
  // Failures are not reported: the event will be in the store soon.
  void add(const ports::StoredEvent& event);
  // Call when all events are in the store.
  void clear();

 private:
  explicit EventSpill(Fd fd, std::size_t size) : fd_(std::move(fd)), size_(size) {}

  Fd fd_;
  std::size_t size_ = 0;
};

}  // namespace gpurota::daemon
