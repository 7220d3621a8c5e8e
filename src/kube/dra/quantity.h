// Amounts as Kubernetes writes them: "8Gi", "1500M", "2e9". Pure.
#pragma once

#include "base/bytes.h"

#include <string>
#include <string_view>

namespace gpurota::kube {

// Fractions of a byte count as one. kInvalid for what is none, is negative, or is more than 2^63-1
// bytes.
Result<Bytes> parse_quantity(std::string_view text);
// With the largest of Ki, Mi, Gi and Ti that keeps it exact, as Kubernetes writes it back.
std::string quantity_text(Bytes amount);

}  // namespace gpurota::kube
