// Amounts of memory: one type, one spelling in, one spelling out.
#pragma once

#include "base/result.h"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpurota {

// An amount of memory. Never negative; arithmetic saturates and never wraps (another tool's counter
// wrapped, and it showed "17 TB used").
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}

  constexpr std::uint64_t count() const { return count_; }
  constexpr bool is_zero() const { return count_ == 0; }
  constexpr auto operator<=>(const Bytes&) const = default;

  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    const std::uint64_t sum = a.count_ + b.count_;
    return Bytes(sum < a.count_ ? UINT64_MAX : sum);
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    return Bytes(a.count_ > b.count_ ? a.count_ - b.count_ : 0);
  }

 private:
  std::uint64_t count_ = 0;
};

constexpr Bytes kKiB{std::uint64_t{1} << 10};
constexpr Bytes kMiB{std::uint64_t{1} << 20};
constexpr Bytes kGiB{std::uint64_t{1} << 30};
constexpr Bytes mib(std::uint64_t n) { return Bytes(n << 20); }
constexpr Bytes gib(std::uint64_t n) { return Bytes(n << 30); }

// The value of --memory: an absolute amount, or a percentage of the GPU that is chosen later.
struct SizeSpec {
  Bytes bytes;      // meaningful when percent is 0
  int percent = 0;  // 1..100, or 0 for an absolute amount

  Bytes of(Bytes whole) const;  // resolves a percentage (rounded down to 1 MiB)
  bool operator==(const SizeSpec&) const = default;
};

// K M G T, KB…, KiB… are all binary, case does not matter, a bare number is bytes, and fractions
// are allowed with a unit ("1.5G"). Anything else (empty, negative, not a number, more than 2^63-1
// bytes, zero) is kInvalid, and the error has an example of what to write.
Result<Bytes> parse_bytes(std::string_view text);
// Like parse_bytes, or "N%" with N in 1..100.
Result<SizeSpec> parse_size_spec(std::string_view text);

// "8 GiB", "1.5 GiB", "518 MiB", "400 B": rounded to at most one decimal.
std::string to_string(Bytes amount);
// Like to_string above, for an amount shown beside another: with enough decimals to tell the two
// apart, unless they are equal ("2.04 GiB", beside 2 GiB).
std::string to_string(Bytes amount, Bytes beside);
// The number alone, in GiB, for columns of a table. "0" means zero bytes; a smaller amount than 1
// MiB is shown as 1 MiB.
std::string gib_text(Bytes amount, Bytes beside);

}  // namespace gpurota
