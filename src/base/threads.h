// The one place where threads begin: a system that has no more of them is an error here, not an
// exception. tools/check_threads.py sees to it that there is no other. Any thread.
#pragma once

#include "base/result.h"

#include <functional>
#include <thread>

namespace gpurota {

// kUnavailable if there is none to be had; `body` has not run then.
Result<std::thread> start_thread(std::function<void()> body);

}  // namespace gpurota
