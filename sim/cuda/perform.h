// Runs operations: the part that touches bytes. On worker threads, without the driver's lock.
#pragma once

#include "sim/cuda/driver.h"
#include "sim/cuda/operation.h"

namespace gpurota::sim {

// Checks that the addresses of an operation are allocated, before a stream gets it or (`in_graph`)
// it becomes a node of a graph, which brings its own memory. Does not touch memory.
CUresult validate(Driver& driver, const Operation& operation, bool in_graph);
CUresult perform(Driver& driver, Context& context, const Operation& operation);

}  // namespace gpurota::sim
