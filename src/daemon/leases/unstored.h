// The set of jobs, fillers or ending leases whose last change could not be stored, because the disk
// was full. The change is in effect all the same. The user who changed it gets an error, and the
// change is written when there is room again. Used by Jobs, Fillers and LeaseManager, on the state
// thread. Unstored never touches the store itself.
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

  // Notes the result of writing, or removing, the entry with this id, and returns that result.
  Result<void> note(std::uint64_t id, Result<void> written);
  // Like note(), for changes without a caller who could get the error: the error is logged.
  void note_or_say(std::uint64_t id, const std::string& name, Result<void> written);

  // For the caller that has just changed the entry: an error if the change is not in the store.
  Result<void> heard_of(std::uint64_t id, const std::string& name) const;

  // Writes each entry; `write` notes the result. Stops at the first failure, because there is then
  // no room for other entries either.
  void write_again(const std::function<Result<void>(std::uint64_t id)>& write);

 private:
  std::string what_;
  std::map<std::uint64_t, Error> errors_;
};

}  // namespace gpurota::daemon
