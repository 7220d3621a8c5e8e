#include "cli/command_names.h"

#include "cli/command_table.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace gpurota::cli {
namespace {

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

using Pair = std::pair<std::string_view, std::string_view>;

// What GPUMan, GPU Slice, canhazgpu, nvshare and others call it.
constexpr std::array<Pair, 13> kElsewhere = {{{"proclist", "ps"},
                                              {"top", "status --watch"},
                                              {"list", "status"},
                                              {"allocate", "reserve"},
                                              {"run-existing", "run --lease"},
                                              {"start", "job start"},
                                              {"stop", "job stop"},
                                              {"restart", "job restart"},
                                              {"remove", "job remove"},
                                              {"logs", "job logs"},
                                              {"config", "set"},
                                              {"admin", "doctor"},
                                              {"web", "gpurota-web"}}};
constexpr std::array<Pair, 16> kOptionsElsewhere = {{{"--duration", "--for"},
                                                     {"--ttl", "--for"},
                                                     {"-d", "--for"},
                                                     {"--user", "--as"},
                                                     {"-u", "--as"},
                                                     {"--tag", "--note"},
                                                     {"-n", "--note"},
                                                     {"-G", "--gpu-ids"},
                                                     {"--device", "--gpu-ids"},
                                                     {"--devices", "--gpu-ids"},
                                                     {"--limit", "--memory"},
                                                     {"-j", "--json"},
                                                     {"--set-tq", "--quantum"},
                                                     {"-T", "--quantum"},
                                                     {"--anti-thrash", "--turns"},
                                                     {"-S", "--turns"}}};

template <class Pairs>
std::string_view find_in(const Pairs& pairs, std::string_view word) {
  const auto at = std::find_if(pairs.begin(), pairs.end(),
                               [word](const Pair& pair) { return pair.first == word; });
  return at == pairs.end() ? std::string_view() : at->second;
}

}  // namespace

std::string_view command_for(std::string_view word) { return find_in(kElsewhere, word); }

std::string_view nearest_option(std::string_view option,
                                const std::vector<std::string_view>& names) {
  const std::string_view known = find_in(kOptionsElsewhere, option);
  if (!known.empty() && std::find(names.begin(), names.end(), known) != names.end()) return known;
  if (option.size() < 4 || option.size() > 24) return {};
  std::string_view slip, begun;
  int slipped = 0;
  bool one_way = true;  // "--mem" begins --memory, which begins --memory-threshold
  for (const std::string_view name : names) {
    if (name.starts_with(option)) {
      one_way = one_way && (name.starts_with(begun) || begun.starts_with(name));
      if (begun.empty() || name.size() < begun.size()) begun = name;
    } else if (slips(option, name) <= 2) {
      slip = name;
      ++slipped;
    }
  }
  if (!begun.empty()) return one_way ? begun : std::string_view();
  return slipped == 1 ? slip : std::string_view();
}

bool is_command(std::string_view name) {
  return name.find(' ') == std::string_view::npos && find_command(name) != nullptr;
}

std::string nearest_command(std::string_view word) {
  if (word.size() > 16) return {};
  const std::string low = lower(word);
  std::string found;
  for (const CommandRow& command : all_commands()) {
    const std::string_view name = command.name;
    if (name.find(' ') != std::string_view::npos) continue;
    // In a short word each letter counts: "ls" is not "ps".
    const std::size_t most = name.size() < 4 ? 0 : name.size() < 6 ? 1 : 2;
    if (slips(low, name) > most) continue;
    if (!found.empty()) return {};
    found = name;
  }
  return found;
}

}  // namespace gpurota::cli
