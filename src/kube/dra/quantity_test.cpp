#include "kube/dra/quantity.h"

#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

TEST(Quantity, IsReadAsKubernetesWritesIt) {
  EXPECT_EQ(parse_quantity("8Gi"), gib(8));
  EXPECT_EQ(parse_quantity("1500M"), Bytes(1500000000));
  EXPECT_EQ(parse_quantity("1.5Gi"), mib(1536));
  EXPECT_EQ(parse_quantity("2e9"), Bytes(2000000000));
  EXPECT_EQ(parse_quantity("1500m"), Bytes(2)) << "a fraction of a byte counts as one";
  EXPECT_EQ(parse_quantity("123"), Bytes(123));
  EXPECT_EQ(parse_quantity("4k"), Bytes(4000));
}

TEST(Quantity, InvalidTextIsRefused) {
  for (const char* text : {"", "Gi", "-1", "8GiB", "8 Gi", "1e", "9223372036854775808", "8Zi",
                           "1.2.3", "K", "4K", "0x10"}) {
    EXPECT_FALSE(parse_quantity(text)) << text;
  }
}

TEST(Quantity, IsWrittenWithTheLargestUnitThatKeepsItExact) {
  EXPECT_EQ(quantity_text(gib(8)), "8Gi");
  EXPECT_EQ(quantity_text(mib(1536)), "1536Mi");
  EXPECT_EQ(quantity_text(gib(2048)), "2Ti");
  EXPECT_EQ(quantity_text(Bytes(1025)), "1025");
  EXPECT_EQ(quantity_text(Bytes()), "0");
}

}  // namespace
}  // namespace gpurota::kube
