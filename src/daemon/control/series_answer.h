// The answer to History: figures over time, made a piece at a time. State thread only.
#pragma once

#include "base/result.h"
#include "daemon/control/control_server.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/history/series_keeper.h"
#include "proto/methods.h"

#include <memory>

namespace gpurota::daemon {

// kInvalid: times or a number of points that make no sense, or too many series. `gpus` and `keeper`
// must outlive the answer.
Result<std::shared_ptr<LongAnswer>> make_series_answer(const proto::History& call,
                                                       const GpuTable& gpus,
                                                       const SeriesKeeper& keeper, WallTime now);

// "power", …: the bits of ClockLimit that are set.
std::vector<std::string> clock_limit_words(std::uint64_t limits);

}  // namespace gpurota::daemon
