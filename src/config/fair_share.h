// Settings of the order of the queue: a part of config.h. Plain data.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace gpurota::config {

// [fair_share]: users who have used less come first (docs/design/fair-share.md).
struct FairShare {
  // How much of the machine a user, or the members of a group together, should have in relation to
  // others.
  struct Weight {
    int weight = 1;
    bool operator==(const Weight&) const = default;
  };

  bool enabled = false;                                      // false: first come, first served
  std::chrono::seconds half_life = std::chrono::hours(168);  // use this old counts half
  // Later requests never overtake a request that has waited for this long.
  std::chrono::seconds longest_wait = std::chrono::hours(24);
  std::map<std::string, Weight> users;
  std::map<std::string, Weight> groups;

  bool operator==(const FairShare&) const = default;
};

}  // namespace gpurota::config
