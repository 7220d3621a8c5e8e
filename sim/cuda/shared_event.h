// An event that several processes share (cuIpcGetEventHandle): two counters in a memory file, how
// often it was asked to be recorded and the last of these that is done. Any thread, without the
// driver's lock.
//
// Waiting polls, as the work of other processes cannot wake us; a process that ends in the middle
// of its work has done it.
#pragma once

#include "base/fd.h"

#include <cstdint>
#include <memory>

namespace gpurota::sim {

class SharedEvent {
 public:
  // Null if there is no memory for it, or the file is none of ours.
  static std::shared_ptr<SharedEvent> create();
  static std::shared_ptr<SharedEvent> open(Fd file);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  int fd() const { return file_.get(); }
  // A record has been given to a stream: its number, for done() when its turn has come.
  std::uint64_t begin();
  void done(std::uint64_t number);
  // The latest record; 0: there was none.
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
