#include "base/bytes.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace gpurota {
namespace {

// Wide enough that no step of parsing can overflow.
using Wide = unsigned __int128;

constexpr Wide kLargest = INT64_MAX;
constexpr std::string_view kExample = "write for example 8G, 1.5GiB, 512M or a number of bytes";
constexpr std::string_view kExampleShare =
    "write for example 8G, 1.5GiB, 512M, 50% or a number of bytes";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

tl::unexpected<Error> bad_size(std::string_view text, std::string_view why,
                               std::string_view example) {
  return fail(Code::kInvalid,
              fmt::format("'{}' is not a size: {}; {}", display_text(text, 40), why, example));
}

// "", "b", "k", "kb", "kib", … "tib" as a shift; -1 for anything else.
int unit_shift(std::string_view unit) {
  constexpr std::string_view kPrefixes = "kmgt";
  std::string low;
  for (char c : unit) low += lower(c);
  if (low.empty() || low == "b") return 0;
  const std::size_t power = kPrefixes.find(low[0]);
  if (power == std::string_view::npos) return -1;
  const std::string rest = low.substr(1);
  if (!rest.empty() && rest != "b" && rest != "ib" && rest != "i") return -1;
  return 10 * static_cast<int>(power + 1);
}

// Removes digits from the front of `text` and adds them to `value`, which stops growing far above
// kLargest.
std::size_t take_digits(std::string_view* text, Wide* value, Wide ceiling) {
  std::size_t taken = 0;
  while (taken < text->size() && is_digit((*text)[taken])) {
    if (*value <= ceiling) *value = *value * 10 + static_cast<unsigned>((*text)[taken] - '0');
    ++taken;
  }
  text->remove_prefix(taken);
  return taken;
}

// Removes ".5" from the front; its value is numerator / denominator. Digits after the 18th are
// dropped: they are less than one byte in any unit.
bool take_fraction(std::string_view* text, Wide* numerator, Wide* denominator) {
  text->remove_prefix(1);
  std::size_t digits = 0;
  for (; digits < text->size() && is_digit((*text)[digits]); ++digits) {
    if (digits >= 18) continue;
    *numerator = *numerator * 10 + static_cast<unsigned>((*text)[digits] - '0');
    *denominator *= 10;
  }
  text->remove_prefix(digits);
  return digits > 0;
}

Result<Bytes> parse_amount(std::string_view text, std::string_view example) {
  std::string_view rest = text;
  if (rest.empty()) return bad_size(text, "it is empty", example);
  if (rest[0] == '-') return bad_size(text, "it is negative", example);

  Wide whole = 0;
  if (take_digits(&rest, &whole, kLargest) == 0) {
    return bad_size(text, "it does not start with a number", example);
  }
  Wide numerator = 0;
  Wide denominator = 1;
  const bool fraction = !rest.empty() && rest[0] == '.';
  if (fraction && !take_fraction(&rest, &numerator, &denominator)) {
    return bad_size(text, "there are no digits after the point", example);
  }
  const bool spaced = !rest.empty() && rest[0] == ' ';
  if (spaced) rest.remove_prefix(1);
  const int shift = unit_shift(rest);
  if (shift < 0 || (spaced && rest.empty())) {
    return bad_size(text, "the unit is none of K, M, G, T", example);
  }
  if (fraction && rest.empty()) return bad_size(text, "a fraction needs a unit", example);

  if (whole > kLargest >> shift) return bad_size(text, "it is too large", example);
  const Wide total = (whole << shift) + (numerator << shift) / denominator;
  if (total > kLargest) return bad_size(text, "it is too large", example);
  if (total == 0) return bad_size(text, "it is less than one byte", example);
  return Bytes(static_cast<std::uint64_t>(total));
}

}  // namespace

Bytes SizeSpec::of(Bytes whole) const {
  if (percent == 0) return bytes;
  const Wide share = static_cast<Wide>(whole.count()) * static_cast<unsigned>(percent) / 100;
  return Bytes(static_cast<std::uint64_t>(share) & ~(kMiB.count() - 1));
}

Result<Bytes> parse_bytes(std::string_view text) { return parse_amount(text, kExample); }

Result<SizeSpec> parse_size_spec(std::string_view text) {
  if (text.empty() || text.back() != '%') {
    GPUROTA_ASSIGN_OR_RETURN(const Bytes bytes, parse_amount(text, kExampleShare));
    return SizeSpec{bytes, 0};
  }
  std::string_view digits = text.substr(0, text.size() - 1);
  Wide percent = 0;
  const bool number = take_digits(&digits, &percent, 100) > 0 && digits.empty();
  if (!number || percent < 1 || percent > 100) {
    return bad_size(text, "a share is a whole number from 1% to 100%", kExampleShare);
  }
  return SizeSpec{Bytes(), static_cast<int>(percent)};
}

namespace {

constexpr std::array<std::string_view, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
constexpr std::size_t kGiBUnit = 3;
constexpr int kMostDecimals = 9;

// `amount` in `unit`, rounded to the nearest, without trailing zeros.
std::string number_in(Bytes amount, std::size_t unit, int decimals) {
  const Wide size = Wide{1} << (10 * unit);
  Wide scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const Wide rounded = (static_cast<Wide>(amount.count()) * scale + size / 2) / size;
  const auto whole = static_cast<std::uint64_t>(rounded / scale);
  auto fraction = static_cast<std::uint64_t>(rounded % scale);
  if (fraction == 0) return fmt::format("{}", whole);
  while (fraction % 10 == 0) {
    fraction /= 10;
    --decimals;
  }
  return fmt::format("{}.{:0{}}", whole, fraction, decimals);
}

// The unit in which `amount` is shown with at most one decimal. The next larger unit if rounding
// reaches 1024: 1023.96 MiB is shown as "1 GiB", not "1024 MiB".
std::size_t unit_of(Bytes amount) {
  std::size_t unit = 0;
  Wide tenths = static_cast<Wide>(amount.count()) * 10;
  while (unit + 1 < kUnits.size() && tenths >= 10240) {
    ++unit;
    const Wide size = Wide{1} << (10 * unit);
    tenths = (static_cast<Wide>(amount.count()) * 10 + size / 2) / size;
  }
  return unit;
}

// The number of decimals, at least one, that shows the two amounts as different.
int decimals_apart(Bytes a, Bytes b, std::size_t unit) {
  int decimals = 1;
  while (a != b && decimals < kMostDecimals &&
         number_in(a, unit, decimals) == number_in(b, unit, decimals)) {
    ++decimals;
  }
  return decimals;
}

}  // namespace

std::string to_string(Bytes amount) { return to_string(amount, amount); }

std::string to_string(Bytes amount, Bytes beside) {
  const std::size_t unit = unit_of(amount);
  const int decimals = unit == unit_of(beside) ? decimals_apart(amount, beside, unit) : 1;
  return fmt::format("{} {}", number_in(amount, unit, decimals), kUnits[unit]);
}

std::string gib_text(Bytes amount, Bytes beside) {
  const Bytes shown = amount.is_zero() ? amount : std::max(amount, kMiB);
  const int decimals =
      std::max(decimals_apart(shown, beside, kGiBUnit), decimals_apart(shown, Bytes(), kGiBUnit));
  return number_in(shown, kGiBUnit, decimals);
}

}  // namespace gpurota
