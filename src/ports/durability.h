// Whether what was stored is on the disk.
//
// A change is in the store when the call that makes it returns: a kill -9 of the daemon does not
// lose the change. A loss of power may lose the change until the disk has it. The state thread does
// not wait for the disk. The client that asked for the change gets its answer once the disk has the
// change. State thread only.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace gpurota::ports {

class Durability {
 public:
  struct News {
    std::uint64_t upto = 0;      // the news is about the changes up to and including this number
    std::optional<Error> error;  // the disk may lack these changes; empty: the disk has them
  };

  virtual ~Durability() = default;

  // Changes are numbered from 1. made(): the last change that was made. told(): the last change
  // that on_news() has reported.
  virtual std::uint64_t made() const = 0;
  virtual std::uint64_t told() const = 0;
  // False while a worker moves the store's log into its database, which happens each minute. A
  // change that is made meanwhile is only in memory, and reads fail, so a caller that can wait
  // should wait. on_news() reports when is_open() is true again.
  virtual bool is_open() const = 0;
  // Sets the only listener; an empty function removes it. The listener is never called from within
  // a change.
  virtual void on_news(std::function<void(const News&)> listener) = 0;
};

}  // namespace gpurota::ports
