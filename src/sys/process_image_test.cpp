#include "sys/process_image.h"

#include "abi/page.h"
#include "base/proc_stat.h"
#include "sys/shared_page.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace gpurota::sys {
namespace {

using namespace std::string_view_literals;

ProcessImage mapped(std::string_view line) {
  ProcessImage image;
  note_mapping(line, image);
  return image;
}

TEST(ProcessImage, KnowsTheLibraryAndTheDriverByTheirCode) {
  EXPECT_TRUE(mapped("7f00-7f10 r-xp 00001000 fe:01 42    /usr/local/lib/libgpurota.so").library);
  EXPECT_TRUE(mapped("7f00-7f10 r-xp 00001000 fe:01 42    /usr/lib/libcuda.so.580.1").driver);
  EXPECT_FALSE(mapped("7f00-7f10 r--p 00000000 fe:01 42    /usr/local/lib/libgpurota.so").library)
      << "a file that is read is not loaded";
  EXPECT_FALSE(mapped("7f00-7f10 r-xp 00001000 fe:01 42    /usr/lib/libcudart.so.12").driver);
  EXPECT_FALSE(mapped("7f00-7f10 r-xp 00001000 fe:01 42    /opt/libgpurota.so/other.so").library);
}

TEST(ProcessImage, ALibraryThatWasReplacedIsStillTheLibrary) {
  EXPECT_TRUE(
      mapped("7f00-7f10 r-xp 00001000 fe:01 42    /opt/my libs/libgpurota.so (deleted)").library);
}

TEST(ProcessImage, APageOfADaemonIsKnownByItsName) {
  EXPECT_TRUE(mapped("7f00-7f10 rw-s 00000000 00:01 9    /memfd:gpurota-page (deleted)").page);
  EXPECT_FALSE(mapped("7f00-7f10 rw-s 00000000 00:01 9    /memfd:gpurota-pages (deleted)").page);
}

TEST(ProcessImage, IgnoresMalformedLinesAndLinesWithoutAPath) {
  for (const char* line : {"", "/", "x /", "7f00-7f10 rw-p 00000000 00:00 0", "[stack]"}) {
    const ProcessImage image = mapped(line);
    EXPECT_FALSE(image.library || image.driver || image.page) << line;
  }
}

TEST(ProcessImage, TheEnvironmentSaysWhichLeaseOnWhichSocket) {
  ProcessImage image;
  note_environment("PATH=/bin\0GPUROTA_LEASE=L7\0GPUROTA_SOCKET=/run/gpurota/tenant.sock\0"sv,
                   image);
  EXPECT_TRUE(image.has_environment);
  EXPECT_EQ(image.lease, "L7");
  EXPECT_EQ(image.socket, "/run/gpurota/tenant.sock");
}

TEST(ProcessImage, OverwrittenEnvironmentIsNotKnown) {
  ProcessImage image;
  note_environment("VLLM::EngineCore rank 3\0\0\0\0\0\0"sv, image);
  EXPECT_FALSE(image.has_environment);
}

TEST(ProcessImage, IsReadOnlyOfTheSameLivingProcess) {
  const std::uint64_t start = read_proc_stat(::getpid())->start_ticks;
  const auto before = read_process_image(::getpid(), start);
  ASSERT_TRUE(before);
  EXPECT_TRUE(before->has_environment);
  EXPECT_FALSE(before->page);
  const auto page = SharedPage::make();
  ASSERT_TRUE(page);
  EXPECT_TRUE(read_process_image(::getpid(), start)->page);
  EXPECT_FALSE(read_process_image(::getpid(), start + 1)) << "another one that had the pid";
  EXPECT_FALSE(read_process_image(0x3ffffff, 1));
}

}  // namespace
}  // namespace gpurota::sys
