// Questions from gRPC's threads to the state thread: their only access to state that only the state
// thread touches.
//
// ask() posts a function to the loop and waits for its result. The state thread answers from
// memory, so soon. When the plugin ends, all waiting stops.
#pragma once

#include "base/result.h"
#include "ports/event_loop.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace gpurota::kube {

class Questions {
 public:
  // `loop` must outlive this object.
  explicit Questions(ports::EventLoop& loop) : loop_(loop) {}

  // Call it on any thread but the state thread. `answer` must own what it uses. kUnavailable if the
  // plugin ends, kTimeout if the state thread is stuck.
  template <class Answer>
  Result<Answer> ask(std::function<Result<Answer>()> answer) {
    struct Shared {
      std::mutex mutex;
      std::condition_variable said;
      std::optional<Result<Answer>> result;
    };
    const auto shared = std::make_shared<Shared>();
    loop_.post([shared, answer = std::move(answer), ended = ended_] {
      if (*ended) return;
      auto result = answer();
      const std::lock_guard lock(shared->mutex);
      shared->result.emplace(std::move(result));
      shared->said.notify_all();
    });
    std::unique_lock lock(shared->mutex);
    for (auto waited = kPatience; !shared->result; waited -= kCheckEvery) {
      if (*ended_) return fail(Code::kUnavailable, "gpurota's plugin is stopping");
      if (waited <= kPatience.zero()) {
        return fail(Code::kTimeout, "gpurota's plugin does not answer: see its log");
      }
      shared->said.wait_for(lock, kCheckEvery);
    }
    return std::move(*shared->result);
  }
  // Call it on the state thread, once: from now on no posted function runs, and every waiting call
  // returns.
  void end() { *ended_ = true; }

 private:
  static constexpr std::chrono::milliseconds kPatience{10000}, kCheckEvery{100};

  ports::EventLoop& loop_;
  const std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace gpurota::kube
