#include "kube/dra/quantity.h"

#include "base/text.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

namespace gpurota::kube {
namespace {

constexpr std::string_view kDigits = "0123456789";

std::optional<long double> factor_of(std::string_view suffix) {
  constexpr std::string_view kSigns = "KMGTPE";
  if (suffix.empty()) return 1;
  if (suffix == "m") return 1e-3L;
  if (suffix == "u") return 1e-6L;
  if (suffix == "n") return 1e-9L;
  const bool binary = suffix.size() == 2 && suffix[1] == 'i';
  if (!binary && suffix.size() != 1) return std::nullopt;
  const char sign = suffix[0] == 'k' && !binary ? 'K' : suffix[0];
  if (suffix[0] == 'K' && !binary) return std::nullopt;
  const std::size_t at = kSigns.find(sign);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pow(binary ? 1024.0L : 1000.0L, static_cast<int>(at) + 1);
}

// Parses "e9" or "E-3".
std::optional<long double> exponent_of(std::string_view text) {
  if (text.size() < 2 || text.size() > 4 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(1);
  const bool negative = text[0] == '-';
  if (negative || text[0] == '+') text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of(kDigits) != std::string_view::npos)
    return std::nullopt;
  int value = 0;
  for (const char digit : text) value = 10 * value + (digit - '0');
  return std::pow(10.0L, negative ? -value : value);
}

}  // namespace

Result<Bytes> parse_quantity(std::string_view text) {
  constexpr long double kMost = 9223372036854775807.0L;
  const auto wrong = [&] {
    return fail(Code::kInvalid,
                fmt::format("'{}' is not an amount: write 8Gi or 512Mi", display_text(text, 60)));
  };
  std::size_t at = 0;
  long double value = 0, place = 1;
  bool point = false, digit = false;
  for (; at < text.size() && at < 64; ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
    } else if (kDigits.find(c) != std::string_view::npos) {
      digit = true;
      value = 10 * value + (c - '0');
      if (point) place *= 10;
    } else {
      break;
    }
  }
  const std::string_view suffix = text.substr(at);
  auto factor = factor_of(suffix);
  if (!factor) factor = exponent_of(suffix);
  if (!digit || !factor) return wrong();
  const long double amount = std::ceil(value / place * *factor);
  if (amount > kMost) return wrong();
  return Bytes(static_cast<std::uint64_t>(amount));
}

std::string quantity_text(Bytes amount) {
  constexpr std::pair<int, const char*> kUnits[] = {{40, "Ti"}, {30, "Gi"}, {20, "Mi"}, {10, "Ki"}};
  const std::uint64_t count = amount.count();
  for (const auto& [bits, suffix] : kUnits) {
    const std::uint64_t unit = std::uint64_t{1} << bits;
    if (count > 0 && count % unit == 0) return fmt::format("{}{}", count / unit, suffix);
  }
  return std::to_string(count);
}

}  // namespace gpurota::kube
