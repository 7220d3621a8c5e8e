#include "core/lease.h"

#include <array>

namespace gpurota {
namespace {

constexpr std::array kKinds = {"run", "reservation", "job", "filler", "pod", "slurm"};

}  // namespace

const char* to_string(LeaseKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<LeaseKind> parse_lease_kind(std::string_view word) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (word == kKinds[i]) return static_cast<LeaseKind>(i);
  }
  return std::nullopt;
}

}  // namespace gpurota
