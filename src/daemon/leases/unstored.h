// The set of jobs or fillers whose last change could not be stored, because the disk was full. Each
// continues as it is, the user who changed it is told so, and it is written when there is room
// again. Used by Jobs and Fillers, on the state thread. Unstored never touches the store itself.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace gpurota::daemon {

class Unstored {
 public:
  // `what`: "job", for the log.
  explicit Unstored(std::string what) : what_(std::move(what)) {}

  // Notes the result of writing, or removing, the one with this id, and returns it.
  Result<void> note(std::uint64_t id, Result<void> written);
  // The same where there is nobody to tell: an error goes to the log.
  void note_or_say(std::uint64_t id, const std::string& name, Result<void> written);

  // For the caller that has just changed it: an error if the change is not in the store.
  Result<void> heard_of(std::uint64_t id, const std::string& name) const;

  // Writes each of them; `write` notes the result. Stops at the first that fails: the next has no
  // more room.
  void write_again(const std::function<Result<void>(std::uint64_t id)>& write);

 private:
  std::string what_;
  std::map<std::uint64_t, Error> errors_;
};

}  // namespace gpurota::daemon
