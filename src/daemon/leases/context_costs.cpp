#include "daemon/leases/context_costs.h"

namespace gpurota::daemon {

void recall_context_costs(const GpuTable& gpus, const GpuStates& states, const std::string& driver,
                          lease::GrantBook& grants) {
  for (const GpuEntry& entry : gpus.entries()) {
    const ports::StoredGpuState& state = states.of(entry.info.uuid);
    if (state.context_cost.is_zero() || state.context_driver != driver) continue;
    grants.learn_context_cost(entry.info.uuid, state.context_cost);
  }
}

void remember_context_cost(const GpuUuid& gpu, const lease::GrantBook& grants,
                           const std::string& driver, GpuStates& states) {
  const Bytes cost = grants.context_cost(gpu);
  if (!cost.is_zero()) states.set_context_cost(gpu, cost, driver);
}

}  // namespace gpurota::daemon
