// The only place that starts threads: if the system has no more of them, that is an error, not an
// exception. tools/check_threads.py enforces that. Any thread.
#pragma once

#include "base/result.h"

#include <functional>
#include <thread>

namespace gpurota {

// kUnavailable if no thread can be started; `body` then never runs.
Result<std::thread> start_thread(std::function<void()> body);

}  // namespace gpurota
