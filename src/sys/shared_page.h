// The page that the daemon shares with one tenant (abi/page.h): a sealed memfd and its mapping.
//
// The memfd cannot be resized, so no access of ours can fault, whatever the tenant does with its
// descriptor.
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

}  // namespace gpurota::sys
