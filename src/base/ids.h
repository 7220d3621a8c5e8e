// Strong types for the ids of leases, requests, tenants and GPUs. No id is a bare string or
// integer.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace gpurota {

// `Tag` makes the type; two ids with different tags do not mix.
template <class Tag, class Value>
struct Id {
  Value value{};
  auto operator<=>(const Id&) const = default;  // NOLINT(modernize-use-nullptr): its zero
};

// "L1", "L2", … as shown to users; unique for the life of the store, never reused.
using LeaseId = Id<struct LeaseTag, std::uint64_t>;
// "R1", "R2", …: one request in the queue; unique for the life of the store.
using RequestId = Id<struct RequestTag, std::uint64_t>;
// One connection of one process; unique for the life of the daemon.
using TenantId = Id<struct TenantTag, std::uint64_t>;
// "GPU-…" or "MIG-…", spelled as in NVML. Internally a GPU has no other name; indices are for input
// and output.
using GpuUuid = Id<struct GpuTag, std::string>;

inline std::string to_string(LeaseId id) { return "L" + std::to_string(id.value); }
inline std::string to_string(RequestId id) { return "R" + std::to_string(id.value); }

}  // namespace gpurota

template <class Tag, class Value>
struct std::hash<gpurota::Id<Tag, Value>> {
  std::size_t operator()(const gpurota::Id<Tag, Value>& id) const noexcept {
    return std::hash<Value>{}(id.value);
  }
};
