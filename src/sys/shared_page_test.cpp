#include "sys/shared_page.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

// A mapping of a page, or MAP_FAILED.
void* map(int fd, int access) {
  return ::mmap(nullptr, GPUROTA_PAGE_BYTES, access, MAP_SHARED, fd, 0);
}

// The descriptor's file, opened again as a process that has the descriptor could.
Fd reopen(int fd, int flags) {
  return Fd(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), flags | O_CLOEXEC));
}

TEST(BurstPage, ReadersSeeWhatTheProcessWritesThatMappedItBeforeTheSeal) {
  auto page = BurstPage::make(4);
  ASSERT_TRUE(page) << page.error().message;
  void* const written = map(page->fd(), PROT_READ | PROT_WRITE);
  ASSERT_NE(written, MAP_FAILED);
  const auto to_read = page->seal();
  ASSERT_TRUE(to_read) << to_read.error().message;
  const void* const read = map(to_read->get(), PROT_READ);
  ASSERT_NE(read, MAP_FAILED);
  *static_cast<volatile std::uint32_t*>(written) = 7;
  EXPECT_EQ(*static_cast<const volatile std::uint32_t*>(read), 7u);
}

// As the user that owns the page: the mode alone does not stop that user.
TEST(BurstPage, NobodyCanWriteOrMapItForWritingAfterTheSeal) {
  auto page = BurstPage::make(4);
  ASSERT_TRUE(page);
  const auto to_read = page->seal();
  ASSERT_TRUE(to_read);
  const std::uint32_t word = 1;
  EXPECT_EQ(::pwrite(page->fd(), &word, sizeof word, 0), -1);
  EXPECT_EQ(map(page->fd(), PROT_READ | PROT_WRITE), MAP_FAILED);
  EXPECT_EQ(map(to_read->get(), PROT_READ | PROT_WRITE), MAP_FAILED);
  void* const read_only = map(to_read->get(), PROT_READ);
  ASSERT_NE(read_only, MAP_FAILED);
  EXPECT_NE(::mprotect(read_only, GPUROTA_PAGE_BYTES, PROT_READ | PROT_WRITE), 0);
  if (const Fd again = reopen(to_read->get(), O_RDWR)) {
    EXPECT_EQ(map(again.get(), PROT_READ | PROT_WRITE), MAP_FAILED);
    EXPECT_EQ(::pwrite(again.get(), &word, sizeof word, 0), -1);
  }
  EXPECT_NE(::ftruncate(page->fd(), 0), 0);
}

TEST(BurstPage, AnotherUserCannotOpenItForWriting) {
  const auto page = BurstPage::make(4);
  ASSERT_TRUE(page);
  struct stat info = {};
  ASSERT_EQ(::fstat(page->fd(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0400u);
}

}  // namespace
}  // namespace gpurota::sys
