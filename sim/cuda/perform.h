// Carries operations out: the part that touches bytes. On worker threads, without the driver's
// lock.
#pragma once

#include "sim/cuda/driver.h"
#include "sim/cuda/operation.h"

namespace gpurota::sim {

// Before it is given to a stream, or (`in_graph`) becomes a node of a graph, which brings memory of
// its own: that the addresses are somebody's. Does not touch memory.
CUresult validate(Driver& driver, const Operation& operation, bool in_graph);
CUresult perform(Driver& driver, Context& context, const Operation& operation);

}  // namespace gpurota::sim
