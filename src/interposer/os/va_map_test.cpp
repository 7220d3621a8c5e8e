#include "interposer/os/va_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gpurota::interposer {
namespace {

TEST(VaMap, AgreesWithStdMap) {
  VaMap<std::uint64_t> map{};
  std::map<std::uint64_t, std::uint64_t> model;
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t key = (random() % 3000 + 1) << 21;
    if (random() % 2 == 0) {
      *map.put(key) = model[key] = random();
    } else {
      std::uint64_t value = 0;
      ASSERT_EQ(map.take(key, &value), model.contains(key));
      if (model.contains(key)) {
        ASSERT_EQ(value, model[key]);
      }
      model.erase(key);
    }
    ASSERT_EQ(map.size(), model.size());
  }
  for (const auto& [key, value] : model) {
    ASSERT_NE(map.find(key), nullptr);
    EXPECT_EQ(*map.find(key), value);
  }
}

TEST(VaMap, RemovesAllThatMatch) {
  VaMap<int> map{};
  for (std::uint64_t key = 1; key <= 5000; ++key) *map.put(key * 512) = static_cast<int>(key % 3);
  int gone = 0;
  map.remove_if([](int value) { return value == 0; }, [&](std::uint64_t, int) { ++gone; });
  EXPECT_EQ(gone, 1666);
  EXPECT_EQ(map.size(), 3334u);
  map.for_each([](std::uint64_t, int value) { EXPECT_NE(value, 0); });
}

}  // namespace
}  // namespace gpurota::interposer
