#include "park/park_driver.h"

#include "base/threads.h"

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include <dlfcn.h>

namespace gpurota::park {
namespace {

// For calls that the driver answers at once.
constexpr std::chrono::seconds kShort{10};
// The driver keeps its own time limit; this is for a driver that does not.
constexpr std::chrono::seconds kBeyondLock{5};

// Makes the call in a thread of its own, as no call of the driver can be interrupted.
Answer answer_within(std::chrono::milliseconds patience, std::function<CUresult()> call) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    Answer answer;
  };
  const auto shared = std::make_shared<Shared>();
  auto thread = start_thread([shared, call = std::move(call)] {
    const CUresult result = call();
    const std::lock_guard lock(shared->mutex);
    shared->answer = result;
    shared->done.notify_one();
  });
  if (!thread) return CUDA_ERROR_OPERATING_SYSTEM;
  thread->detach();
  std::unique_lock lock(shared->mutex);
  shared->done.wait_for(lock, patience, [&] { return shared->answer.has_value(); });
  return shared->answer;
}

}  // namespace

bool ParkDriver::load(const std::string& file, std::chrono::milliseconds patience,
                      std::string* error) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    *error = "cannot load the driver: " + std::string(why != nullptr ? why : file);
    return false;
  }
  const auto find = [library](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  const bool found =
      find(init_, "cuInit") && find(error_name_, "cuGetErrorName") &&
      find(state_, "cuCheckpointProcessGetState") && find(lock_, "cuCheckpointProcessLock") &&
      find(checkpoint_, "cuCheckpointProcessCheckpoint") &&
      find(restore_, "cuCheckpointProcessRestore") && find(unlock_, "cuCheckpointProcessUnlock");
  if (!found) {
    *error = "the driver cannot park processes: it is older than 570";
    return false;
  }
  const Answer begun = answer_within(patience, [this] { return init_(0); });
  if (begun == CUDA_SUCCESS) return true;
  *error = "cuInit: " + name_of(begun);
  return false;
}

Answer ParkDriver::state(pid_t pid, CUprocessState* state) const {
  const auto found = std::make_shared<CUprocessState>(CU_PROCESS_STATE_RUNNING);
  const Answer answer =
      answer_within(kShort, [this, pid, found] { return state_(pid, found.get()); });
  if (answer == CUDA_SUCCESS) *state = *found;
  return answer;
}

Answer ParkDriver::lock(pid_t pid, std::chrono::milliseconds timeout) const {
  return answer_within(timeout + kBeyondLock, [this, pid, timeout] {
    CUcheckpointLockArgs args = {};
    args.timeoutMs = static_cast<unsigned>(timeout.count());
    return lock_(pid, &args);
  });
}

Answer ParkDriver::checkpoint(pid_t pid, std::chrono::milliseconds patience) const {
  return answer_within(patience, [this, pid] {
    CUcheckpointCheckpointArgs args = {};
    return checkpoint_(pid, &args);
  });
}

Answer ParkDriver::restore(pid_t pid, std::chrono::milliseconds patience) const {
  return answer_within(patience, [this, pid] {
    CUcheckpointRestoreArgs args = {};
    return restore_(pid, &args);
  });
}

Answer ParkDriver::unlock(pid_t pid) const {
  return answer_within(kShort, [this, pid] {
    CUcheckpointUnlockArgs args = {};
    return unlock_(pid, &args);
  });
}

std::string ParkDriver::name_of(const Answer& answer) const {
  if (!answer) return "timed out";
  const char* name = nullptr;
  if (error_name_ == nullptr || error_name_(*answer, &name) != CUDA_SUCCESS || name == nullptr) {
    return "error " + std::to_string(static_cast<int>(*answer));
  }
  constexpr const char* kPrefix = "CUDA_ERROR_";
  return std::strncmp(name, kPrefix, std::strlen(kPrefix)) == 0 ? name + std::strlen(kPrefix)
                                                                : name;
}

}  // namespace gpurota::park
