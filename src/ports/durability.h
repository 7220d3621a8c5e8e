// Whether what was stored is on the disk.
//
// A change is in the store when the call that makes it returns: a kill -9 of the daemon does not
// take it. The loss of power may, until the disk has it; nobody is waited for meanwhile, and who
// asked for the change is told that it is done when the disk has it. State thread only.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace gpurota::ports {

class Durability {
 public:
  struct News {
    std::uint64_t upto = 0;      // the changes with this number and those before
    std::optional<Error> error;  // empty: the disk has them; else it may not
  };

  virtual ~Durability() = default;

  // Changes are numbered from 1. The last one that was made; the last one of which there has been
  // news.
  virtual std::uint64_t made() const = 0;
  virtual std::uint64_t told() const = 0;
  // False for as long as the disk takes to tidy the store up, now and then. A change that is made
  // meanwhile is only in memory, and what must be read fails: who can wait should. When it is true
  // again, there is news.
  virtual bool is_open() const = 0;
  // One listener; an empty one takes it away. Never called from within a change.
  virtual void on_news(std::function<void(const News&)> listener) = 0;
};

}  // namespace gpurota::ports
