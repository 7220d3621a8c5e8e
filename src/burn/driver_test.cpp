#include "burn/driver.h"

#include <gtest/gtest.h>

namespace gpurota::burn {
namespace {

std::vector<Gpu> three() {
  return {{0, 0, "GPU-aa110000-0000-0000-0000-000000000000", "A"},
          {1, 1, "GPU-aa220000-0000-0000-0000-000000000000", "B"},
          {2, 2, "GPU-bb000000-0000-0000-0000-000000000000", "C"}};
}

TEST(ChooseGpus, AreAllWithoutIds) { EXPECT_EQ(choose_gpus(three(), {})->size(), 3U); }

TEST(ChooseGpus, AreNamedByIndexAndByTheBeginningOfAUuid) {
  const auto gpus = choose_gpus(three(), {"2", "GPU-aa1", "2"});
  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus->size(), 2U);
  EXPECT_EQ(gpus->at(0).name, "A");
  EXPECT_EQ(gpus->at(1).name, "C");
}

TEST(ChooseGpus, OfAMigInstanceAreNamedWithItsPrefix) {
  EXPECT_EQ(choose_gpus(three(), {"MIG-bb"})->size(), 1U);
}

TEST(ChooseGpus, MissingOrAmbiguousGpuIsAnError) {
  EXPECT_EQ(choose_gpus(three(), {"3"}).error().code, Code::kNotFound);
  EXPECT_EQ(choose_gpus(three(), {"GPU-"}).error().code, Code::kNotFound);
  EXPECT_EQ(choose_gpus(three(), {"GPU-aa"}).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace gpurota::burn
