#include "base/preload.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

namespace gpurota {
namespace {

TEST(Preload, UnloadableLibraryIsReported) {
  const testing::TempDir dir;
  const std::string there = dir.file("libgpurota.so"), spaced = dir.file("a b.so");
  for (const std::string& file : {there, spaced}) testing::write_file(file, "library");
  EXPECT_EQ(preload_problem(there), "");
  EXPECT_NE(preload_problem(spaced).find("space"), std::string::npos);
  EXPECT_NE(preload_problem(there + ":" + there).find("colon"), std::string::npos);
  EXPECT_EQ(preload_problem(dir.file("missing.so")), "No such file or directory");
}

}  // namespace
}  // namespace gpurota
