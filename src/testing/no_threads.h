// Makes a process unable to start threads, for tests. The test's thread.
#pragma once

#include <cstddef>
#include <limits>

#include <pthread.h>

namespace gpurota::testing {

// While the object lives no thread can start: its stack would not fit the address space.
class NoThreads {
 public:
  NoThreads() {
    (void)::pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    (void)::pthread_attr_init(&huge);
    (void)::pthread_attr_setstacksize(&huge, std::numeric_limits<std::size_t>::max() / 4);
    (void)::pthread_setattr_default_np(&huge);
    (void)::pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    (void)::pthread_setattr_default_np(&before_);
    (void)::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace gpurota::testing
