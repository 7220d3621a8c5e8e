#include "sys/shared_page.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

// Linux 6.3, newer than Debian 12's headers: the page can never become executable.
constexpr unsigned kMfdNoexecSeal = 0x0008U;

Fd make_memfd() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  Fd fd(::memfd_create(GPUROTA_PAGE_MEMFD, kFlags | kMfdNoexecSeal));
  if (!fd && errno == EINVAL) fd = Fd(::memfd_create(GPUROTA_PAGE_MEMFD, kFlags));
  return fd;
}

}  // namespace

Result<SharedPage> SharedPage::make() {
  Fd fd = make_memfd();
  if (!fd) return fail_errno("cannot make a shared page", errno);
  if (::ftruncate(fd.get(), GPUROTA_PAGE_BYTES) != 0) {
    return fail_errno("cannot size a shared page", errno);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail_errno("cannot seal a shared page", errno);
  }
  void* address =
      ::mmap(nullptr, GPUROTA_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return fail_errno("cannot map a shared page", errno);
  auto* page = static_cast<gpurota_page*>(address);
  page->magic = GPUROTA_PAGE_MAGIC;
  page->version = GPUROTA_PAGE_VERSION;
  page->size = sizeof(gpurota_page);
  return SharedPage(std::move(fd), page);
}

SharedPage::SharedPage(SharedPage&& other) noexcept
    : fd_(std::move(other.fd_)), page_(std::exchange(other.page_, nullptr)) {}

SharedPage& SharedPage::operator=(SharedPage&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(page_, other.page_);
  return *this;
}

SharedPage::~SharedPage() {
  if (page_ != nullptr) (void)::munmap(page_, GPUROTA_PAGE_BYTES);
}

}  // namespace gpurota::sys
