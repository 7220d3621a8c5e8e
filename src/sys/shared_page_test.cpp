#include "sys/shared_page.h"

#include <gtest/gtest.h>

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

TEST(SharedPage, IsSeenThroughItsDescriptor) {
  auto page = SharedPage::make();
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ((*page)->magic, GPUROTA_PAGE_MAGIC);
  EXPECT_EQ((*page)->slots, 0u);
  void* other =
      ::mmap(nullptr, GPUROTA_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page->fd(), 0);
  ASSERT_NE(other, MAP_FAILED);
  page->close_fd();
  static_cast<gpurota_page*>(other)->use[3].used_bytes = 42;
  EXPECT_EQ((*page)->use[3].used_bytes, 42u);
  ::munmap(other, GPUROTA_PAGE_BYTES);
}

TEST(SharedPage, CannotBeResizedByATenantToMakeTheDaemonFault) {
  const auto page = SharedPage::make();
  ASSERT_TRUE(page);
  EXPECT_NE(::ftruncate(page->fd(), 0), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(::ftruncate(page->fd(), 8192), 0);
  EXPECT_NE(::fcntl(page->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0) << "nor made read-only";
  EXPECT_TRUE(::fcntl(page->fd(), F_GETFD) & FD_CLOEXEC);
}

TEST(SharedPage, MovesWithItsMapping) {
  auto first = SharedPage::make();
  auto second = SharedPage::make();
  (*first)->slots = 1;
  (*second)->slots = 2;
  *first = std::move(*second);
  EXPECT_EQ((*first)->slots, 2u);
  const SharedPage third(std::move(*first));
  EXPECT_EQ(third->slots, 2u);
}

}  // namespace
}  // namespace gpurota::sys
