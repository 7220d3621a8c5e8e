#include "series/row.h"

#include <gtest/gtest.h>

namespace gpurota::series {
namespace {

Entry a_gpu() {
  Entry entry;
  entry.subject = subject_of(GpuUuid{"GPU-1"});
  entry.seconds = 10;
  entry.values[kLoad] = 990;
  entry.values[kMemory] = 81920;
  entry.values[kHolder] = 12;
  return entry;
}

TEST(Row, ReadsBackWrittenColumns) {
  Entry lease;
  lease.subject = subject_of(LeaseId{12});
  lease.values[kUsed] = 0;
  EXPECT_EQ(decode(encode({a_gpu(), lease})), (std::vector<Entry>{a_gpu(), lease}));
  EXPECT_TRUE(decode("").empty());
}

TEST(Row, BoundsAColumn) {
  Entry entry = a_gpu();
  entry.values.fill(UINT64_MAX - 1);
  const auto back = decode(encode({entry}));
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].values[kLoad], 1000u);
  EXPECT_EQ(encode({entry}).size() + 1, most_bytes(Kind::kGpu));  // 300 seconds take a byte more
}

TEST(Row, SkipsUnwantedColumns) {
  const std::string row = encode({a_gpu(), {.subject = subject_of(LeaseId{3})}});
  const auto leases =
      decode(row, [](const Subject& subject) { return subject.kind == Kind::kLease; });
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].subject, subject_of(LeaseId{3}));
}

TEST(Row, RowOfANewerVersionIsReadAsFarAsItIsKnown) {
  std::string row = encode({a_gpu()});
  row[1] = static_cast<char>(row[1] + 3);  // three more columns
  row += "\x05\x06\x07";
  row += std::string("\x09\x08", 2) + "12345678";  // a kind that we do not know
  row += encode({a_gpu()});
  EXPECT_EQ(decode(row), (std::vector<Entry>{a_gpu(), a_gpu()}));
}

TEST(Row, DamagedColumnEndsTheRow) {
  const std::string row = encode({a_gpu()});
  for (std::size_t size = 0; size < row.size(); ++size) {
    EXPECT_TRUE(decode(row.substr(0, size)).empty()) << size;
  }
  for (std::size_t at = 0; at < row.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = row;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_LE(decode(damaged).size(), 1u);
    }
  }
}

}  // namespace
}  // namespace gpurota::series
