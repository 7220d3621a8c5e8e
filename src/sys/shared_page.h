// The page that the daemon shares with one tenant (abi/page.h): a sealed memfd and its mapping.
//
// Nobody can resize it, so no access of ours can fault whatever the tenant does with its
// descriptor.
#pragma once

#include "abi/page.h"
#include "base/fd.h"
#include "base/result.h"

namespace gpurota::sys {

class SharedPage {
 public:
  // With magic, version and size set, everything else zero.
  static Result<SharedPage> make();

  SharedPage(SharedPage&& other) noexcept;
  SharedPage& operator=(SharedPage&& other) noexcept;
  ~SharedPage();

  // Shared with another process that writes at any time: relaxed atomic accesses only.
  gpurota_page& operator*() const { return *page_; }
  gpurota_page* operator->() const { return page_; }
  // To be sent to the tenant; the mapping stays when it is closed.
  int fd() const { return fd_.get(); }
  void close_fd() { fd_.reset(); }

 private:
  SharedPage(Fd fd, gpurota_page* page) : fd_(std::move(fd)), page_(page) {}

  Fd fd_;
  gpurota_page* page_ = nullptr;
};

}  // namespace gpurota::sys
