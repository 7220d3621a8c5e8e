#include "cli/command_names.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

namespace gpurota::cli {
namespace {

constexpr std::array<std::string_view, 22> kNames = {
    "run",    "reserve", "status", "queue",   "cancel", "explain", "ps",    "release",
    "update", "events",  "report", "version", "turns",  "set",     "drain", "undrain",
    "doctor", "reload",  "help",   "job",     "filler", "burn"};

std::string lower(std::string_view word) {
  std::string low(word);
  for (char& c : low) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return low;
}

// How many letters were left out, added, changed, or swapped with their neighbour.
std::size_t slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

bool is_command(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string nearest_command(std::string_view word) {
  if (word.size() > 16) return {};
  const std::string low = lower(word);
  std::string found;
  for (const std::string_view name : kNames) {
    // In a short word each letter counts: "ls" is not "ps".
    const std::size_t most = name.size() < 4 ? 0 : name.size() < 6 ? 1 : 2;
    if (slips(low, name) > most) continue;
    if (!found.empty()) return {};
    found = name;
  }
  return found;
}

}  // namespace gpurota::cli
