#include "sim/cuda/work.h"

#include "sim/cuda/thread_local.h"
#include "sim/state/machine.h"

#include <csignal>
#include <thread>

#include <pthread.h>

namespace gpurota::sim {
namespace {

// Host functions may block on each other, so waiting work gets a new thread up to this limit.
constexpr unsigned kMaxWorkers = 128;
GPUROTA_SIM_THREAD_LOCAL bool t_in_host_function = false;

}  // namespace

bool Engine::in_host_function() { return t_in_host_function; }
void Engine::set_in_host_function(bool inside) { t_in_host_function = inside; }

bool Engine::link(const WorkPtr& work, const std::vector<WorkPtr>& after) {
  for (const WorkPtr& before : after) {
    if (before == nullptr || before->is_done()) continue;
    before->followers_.push_back(work);
    ++work->waits_for_;
  }
  return work->waits_for_ == 0;
}

void Engine::submit(const WorkPtr& work, const std::vector<WorkPtr>& after) {
  bool runs_now = false;
  begin();
  {
    const std::lock_guard lock(mutex_);
    if (!link(work, after)) return;
    runs_now = work->body_ == nullptr;
    if (!runs_now) make_ready(work);
  }
  if (runs_now) execute(work);
}

CUresult Engine::run(const WorkPtr& work, const std::vector<WorkPtr>& after) {
  bool runs_now = false;
  begin();
  {
    const std::lock_guard lock(mutex_);
    runs_now = link(work, after);
  }
  if (runs_now) {
    execute(work);
  } else {
    wait(work);
  }
  return work->result();
}

void Engine::wait(const WorkPtr& work) {
  if (work == nullptr || work->is_done()) return;
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return work->is_done(); });
}

void Engine::make_ready(const WorkPtr& work) {
  queue_.push_back(work);
  if (idle_ < queue_.size() && workers_ < kMaxWorkers) {
    ++workers_;
    // The program's signals must go to the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    std::thread([this] { worker(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ready_.notify_one();
}

void Engine::execute(const WorkPtr& first) {
  std::vector<WorkPtr> todo{first};
  while (!todo.empty()) {
    const WorkPtr work = std::move(todo.back());
    todo.pop_back();
    if (work->body_) work->result_ = work->body_();
    const std::lock_guard lock(mutex_);
    work->body_ = nullptr;  // frees what the function holds, even if the work itself is kept
    work->finished_ns_ = now_ns();
    work->done_.store(true, std::memory_order_release);
    end();
    for (const WorkPtr& follower : work->followers_) {
      if (--follower->waits_for_ > 0) continue;
      if (follower->body_) {
        make_ready(follower);
      } else {
        todo.push_back(follower);
      }
    }
    work->followers_.clear();
    finished_.notify_all();
  }
}

void Engine::worker() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    ready_.wait(lock, [this] { return !queue_.empty(); });
    --idle_;
    const WorkPtr work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    execute(work);
    lock.lock();
  }
}

}  // namespace gpurota::sim
