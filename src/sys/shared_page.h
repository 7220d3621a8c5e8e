// The page that the daemon shares with one tenant (abi/page.h), a sealed memfd and its mapping; and
// the page by which one tenant tells others when it has work (abi/wire_latency.h).
//
// The memfds cannot be resized, so no access can fault, whatever a tenant does with its descriptor.
#pragma once

#include "abi/page.h"
#include "base/fd.h"
#include "base/result.h"

namespace gpurota::sys {

class SharedPage {
 public:
  // Makes a page with magic, version and size set, and everything else zero.
  static Result<SharedPage> make();

  SharedPage(SharedPage&& other) noexcept;
  SharedPage& operator=(SharedPage&& other) noexcept;
  ~SharedPage();

  // Another process writes to the page at any time: use relaxed atomic accesses only.
  gpurota_page& operator*() const { return *page_; }
  gpurota_page* operator->() const { return page_; }
  // The descriptor to send to the tenant; the mapping stays when it is closed.
  int fd() const { return fd_.get(); }
  void close_fd() { fd_.reset(); }

 private:
  SharedPage(Fd fd, gpurota_page* page) : fd_(std::move(fd)), page_(page) {}

  Fd fd_;
  gpurota_page* page_ = nullptr;
};

// Wakes all processes that wait for this word of a shared page to change (a futex).
void wake_waiters(std::uint32_t& word);

// A page that one process writes and others read. The daemon does not map it.
class BurstPage {
 public:
  // `first`: what its word begins with.
  static Result<BurstPage> make(std::uint32_t first);

  // For the process that writes.
  int fd() const { return fd_.get(); }
  // Call once the writing process has mapped the page. From then on, nobody can write to the page
  // or map it for writing, and the existing mapping stays. Returns a descriptor for those that
  // read. Fails before Linux 5.1.
  Result<Fd> seal();

 private:
  explicit BurstPage(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
};

}  // namespace gpurota::sys
