// Settings of the order of the queue: a part of config.h. Plain data.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace gpurota::config {

// [fair_share]: whoever has used less goes first (docs/design/fair-share.md).
struct FairShare {
  // How much of the machine a user, or the members of a group together, are meant to have beside
  // others.
  struct Weight {
    int weight = 1;
    bool operator==(const Weight&) const = default;
  };

  bool enabled = false;                                      // false: first come, first served
  std::chrono::seconds half_life = std::chrono::hours(168);  // use that old counts half
  // A request that has waited for so long is passed by no later one.
  std::chrono::seconds longest_wait = std::chrono::hours(24);
  std::map<std::string, Weight> users;
  std::map<std::string, Weight> groups;

  bool operator==(const FairShare&) const = default;
};

}  // namespace gpurota::config
