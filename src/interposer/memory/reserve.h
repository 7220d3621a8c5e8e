// Taking from the headroom for an allocation, with all that is done before it is refused. Any
// thread; a refusal may take 200 ms.
#pragma once

#include "interposer/account/answer.h"
#include "interposer/account/flights.h"
#include "interposer/account/headroom.h"

#include <cstdint>

namespace gpurota::interposer {

// take(), and else asks the daemon, and else gets back what idle pools hold, and what others have
// under way and will not keep. `own`: the flight that it is for.
Answer reserve(int slot, int64_t bytes, Flight* own = nullptr);

}  // namespace gpurota::interposer
