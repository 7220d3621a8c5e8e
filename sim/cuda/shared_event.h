// An event that several processes share (cuIpcGetEventHandle): two counters in a memory file. One
// counts the records asked for; the other is the number of the last finished record. Any thread,
// without the driver's lock.
//
// Waiting polls, because another process cannot wake this one. The work of a process that has ended
// counts as done.
#pragma once

#include "base/fd.h"

#include <cstdint>
#include <memory>

namespace gpurota::sim {

class SharedEvent {
 public:
  // Null if there is no memory for the event, or the file is not one of ours.
  static std::shared_ptr<SharedEvent> create();
  static std::shared_ptr<SharedEvent> open(Fd file);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  int fd() const { return file_.get(); }
  // Starts a record that was given to a stream, and returns the record's number. Call done() with
  // the number when the stream reaches the record.
  std::uint64_t begin();
  void done(std::uint64_t number);
  // The number of the latest record; 0: none.
  std::uint64_t latest() const;
  bool is_done(std::uint64_t number) const;
  void wait(std::uint64_t number) const;

 private:
  struct State;
  SharedEvent(Fd file, State* state) : file_(std::move(file)), state_(state) {}

  Fd file_;
  State* state_;
};

}  // namespace gpurota::sim
