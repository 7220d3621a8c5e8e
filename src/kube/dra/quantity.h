// Amounts in Kubernetes' notation: "8Gi", "1500M", "2e9". Pure.
#pragma once

#include "base/bytes.h"

#include <string>
#include <string_view>

namespace gpurota::kube {

// A fraction of a byte is rounded up. kInvalid: not an amount, negative, or more than 2^63-1 bytes.
Result<Bytes> parse_quantity(std::string_view text);
// With the largest of Ki, Mi, Gi and Ti that is exact; Kubernetes uses the same form.
std::string quantity_text(Bytes amount);

}  // namespace gpurota::kube
