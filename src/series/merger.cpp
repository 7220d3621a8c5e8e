#include "series/merger.h"

#include <algorithm>
#include <cmath>

namespace gpurota::series {
namespace {

std::uint64_t merged(Rule rule, std::uint64_t before, std::uint64_t value) {
  if (before == kNone) return value;
  switch (rule) {
    case Rule::kMost:
      return std::max(before, value);
    case Rule::kBits:
      return before | value;
    case Rule::kSum:
      return before + value;
    case Rule::kMean:
    case Rule::kLast:
      break;
  }
  return value;
}

}  // namespace

void Merger::add(const Entry& entry) {
  Sum& sum = sums_[entry.subject];
  sum.seconds += entry.seconds;
  const auto rules = rules_of(entry.subject.kind);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::uint64_t value = entry.values[i];
    if (value == kNone) continue;
    sum.values[i] = merged(rules[i].rule, sum.values[i], value);
    const double weight = std::max<double>(entry.seconds, 1);
    sum.weighted[i] += static_cast<double>(value) * weight;
    sum.weights[i] += weight;
  }
}

std::vector<Entry> Merger::take(std::uint32_t most_seconds) {
  std::vector<Entry> entries;
  for (const auto& [subject, sum] : sums_) {
    Entry entry;
    entry.subject = subject;
    entry.seconds = static_cast<std::uint32_t>(std::min<std::uint64_t>(sum.seconds, most_seconds));
    entry.values = sum.values;
    const auto rules = rules_of(subject.kind);
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (rules[i].rule != Rule::kMean || sum.weights[i] <= 0) continue;
      entry.values[i] = static_cast<std::uint64_t>(std::llround(sum.weighted[i] / sum.weights[i]));
    }
    entries.push_back(entry);
  }
  sums_.clear();
  return entries;
}

}  // namespace gpurota::series
