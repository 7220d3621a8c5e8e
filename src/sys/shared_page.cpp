#include "sys/shared_page.h"

#include "abi/wire.h"

#include <fmt/format.h>

#include <cerrno>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

// Linux 6.3, newer than Debian 12's headers: the page can never become executable.
constexpr unsigned kMfdNoexecSeal = 0x0008U;
#ifndef F_SEAL_FUTURE_WRITE  // Linux 5.1, in glibc since 2.31
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

Fd make_memfd(const char* name) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  Fd fd(::memfd_create(name, kFlags | kMfdNoexecSeal));
  if (!fd && errno == EINVAL) fd = Fd(::memfd_create(name, kFlags));
  return fd;
}

// A memfd of one page that cannot be resized. `seals`: more seals.
Result<Fd> make_page(const char* name, int seals) {
  Fd fd = make_memfd(name);
  if (!fd) return fail_errno("cannot make a shared page", errno);
  if (::ftruncate(fd.get(), GPUROTA_PAGE_BYTES) != 0) {
    return fail_errno("cannot size a shared page", errno);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | seals) != 0) {
    return fail_errno("cannot seal a shared page", errno);
  }
  return fd;
}

}  // namespace

Result<SharedPage> SharedPage::make() {
  GPUROTA_ASSIGN_OR_RETURN(Fd fd, make_page(GPUROTA_PAGE_MEMFD, F_SEAL_SEAL));
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

void wake_waiters(std::uint32_t& word) {
  (void)::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Without the mode, another user could open the page for writing through /proc/self/fd.
Result<BurstPage> BurstPage::make(std::uint32_t first) {
  GPUROTA_ASSIGN_OR_RETURN(Fd fd, make_page(GPUROTA_BURSTS_MEMFD, 0));
  if (::pwrite(fd.get(), &first, sizeof(first), 0) != sizeof(first)) {
    return fail_errno("cannot write to a shared page", errno);
  }
  if (::fchmod(fd.get(), S_IRUSR) != 0) return fail_errno("cannot protect a shared page", errno);
  return BurstPage(std::move(fd));
}

Result<Fd> BurstPage::seal() {
  if (::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    return fail_errno("cannot seal a shared page", errno);
  }
  Fd fd(::open(fmt::format("/proc/self/fd/{}", fd_.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno("cannot open a shared page", errno);
  return fd;
}

}  // namespace gpurota::sys
