#include "daemon/tenants/tenant_page.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace gpurota::daemon {
namespace {

void name(gpurota_page& page, std::size_t i, const char* text) {
  std::strncpy(page.unhooked_name[i], text, GPUROTA_PAGE_NAME_BYTES);
}

TEST(TenantPage, NamesOfMissingHooksAreFunctionNamesOrNothing) {
  gpurota_page page{};
  page.unhooked_names = 6;
  name(page, 0, "cuMemAlloc_v9");
  name(page, 1, "\x1b[2Jcu");
  name(page, 2, "cu evil");
  name(page, 3, "");
  std::memset(page.unhooked_name[4], 'c', GPUROTA_PAGE_NAME_BYTES);  // no end
  name(page, 5, "cuNewThing");
  EXPECT_EQ(read_use(page, 0).unhooked_names,
            (std::vector<std::string>{"cuMemAlloc_v9", "cuNewThing"}));
}

TEST(TenantPage, NeverMoreNamesThanThereIsRoomFor) {
  gpurota_page page{};
  page.unhooked_names = UINT32_MAX;
  for (std::size_t i = 0; i < GPUROTA_PAGE_NAMES; ++i) name(page, i, "cuMemAlloc_v9");
  EXPECT_EQ(read_use(page, 0).unhooked_names.size(), GPUROTA_PAGE_NAMES);
}

TEST(TenantPage, ShortageIsCountedOnceForAllGpus) {
  gpurota_page page{};
  page.use[0].unhooked = 3;
  EXPECT_EQ(read_use(page, 0).unhooked, 3u);
  EXPECT_EQ(read_use(page, 1).unhooked, 3u);
}

void expect_sane(const TenantUse& use) {
  EXPECT_LE(use.used, kMostSaid);
  EXPECT_LE(use.headroom, kMostSaid);
  for (const std::uint64_t count : {use.allocations, use.refusals, use.unhooked}) {
    EXPECT_LE(count, kMostCounted);
  }
  EXPECT_LE(use.unhooked_names.size(), GPUROTA_PAGE_NAMES);
  for (const std::string& name : use.unhooked_names) EXPECT_TRUE(name.starts_with("cu")) << name;
}

TEST(TenantPage, PageFullOfOnesIsCappedAtValidValues) {
  gpurota_page page;
  std::memset(&page, 0xff, sizeof page);
  for (std::size_t slot = 0; slot < GPUROTA_SLOTS + 2; ++slot) expect_sane(read_use(page, slot));
  EXPECT_EQ(read_use(page, 0).allocations, kMostCounted);
  EXPECT_EQ(read_use(page, 0).used, kMostSaid);
}

TEST(TenantPage, RandomBytesAreCappedAtValidValues) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    gpurota_page page;
    auto* bytes = reinterpret_cast<unsigned char*>(&page);
    for (std::size_t i = 0; i < sizeof page; ++i) bytes[i] = static_cast<unsigned char>(random());
    for (std::size_t slot = 0; slot < GPUROTA_SLOTS; ++slot) expect_sane(read_use(page, slot));
  }
}

TEST(TenantPage, SumOfAllTenantsDoesNotOverflow) {
  EXPECT_GT(kMostCounted * 65536, kMostCounted);
  EXPECT_LT(kMostCounted * 65536, std::uint64_t{INT64_MAX});
}

}  // namespace
}  // namespace gpurota::daemon
