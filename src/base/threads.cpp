#include "base/threads.h"

#include <string>
#include <system_error>
#include <utility>

namespace gpurota {

Result<std::thread> start_thread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return fail(Code::kUnavailable, std::string("cannot start a thread: ") + error.what(),
                error.code().value());
  }
}

}  // namespace gpurota
