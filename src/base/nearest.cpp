#include "base/nearest.h"

#include <algorithm>

namespace gpurota {
namespace {

constexpr std::size_t kLongest = 64;

// The most slips that a match may have. Short names are strict: "ls" does not match "ps", but "rn"
// lacks a letter and matches.
std::size_t most_slips(std::string_view word, std::string_view name) {
  const std::size_t letters = name.size() - std::min(name.find_first_not_of('-'), name.size());
  if (letters < 4) return word.size() == name.size() ? 0 : 1;
  return letters < 6 ? 1 : 2;
}

bool may_be_near(std::string_view word, std::string_view name) {
  const std::size_t apart =
      word.size() > name.size() ? word.size() - name.size() : name.size() - word.size();
  return apart <= most_slips(word, name);
}

}  // namespace

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

std::vector<std::string_view> nearest_names(std::string_view word,
                                            const std::vector<std::string_view>& names) {
  std::vector<std::string_view> found;
  if (word.size() > kLongest) return found;
  std::size_t fewest = word.size() + 1;
  for (const std::string_view name : names) {
    if (!may_be_near(word, name)) continue;
    const std::size_t count = slips(word, name);
    if (count > most_slips(word, name) || count > fewest) continue;
    if (count < fewest) found.clear();
    fewest = count;
    found.push_back(name);
  }
  return found;
}

std::vector<std::string_view> begun_names(std::string_view word,
                                          const std::vector<std::string_view>& names) {
  std::vector<std::string_view> found;
  for (const std::string_view name : names) {
    if (name.starts_with(word)) found.push_back(name);
  }
  const std::vector<std::string_view> all = found;
  std::erase_if(found, [&all](std::string_view name) {
    return std::any_of(all.begin(), all.end(), [name](std::string_view other) {
      return other != name && name.starts_with(other);
    });
  });
  return found;
}

std::vector<std::string_view> meant_names(std::string_view word,
                                          const std::vector<std::string_view>& names) {
  constexpr std::size_t kShortestMeant = 4, kLongestMeant = 24, kMost = 4;
  if (word.size() < kShortestMeant || word.size() > kLongestMeant) return {};
  auto meant = begun_names(word, names);
  if (meant.empty()) meant = nearest_names(word, names);
  if (meant.size() > kMost) meant.clear();
  return meant;
}

std::string did_you_mean(const std::vector<std::string_view>& meant, std::string_view quote) {
  std::string text;
  for (const std::string_view each : meant) {
    text += text.empty() ? ": did you mean " : " or ";
    text.append(quote).append(each).append(quote);
  }
  return text.empty() ? text : text + "?";
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  const auto found = nearest_names(word, std::vector<std::string_view>(names.begin(), names.end()));
  return found.size() == 1 ? std::string(found.front()) : std::string();
}

}  // namespace gpurota
