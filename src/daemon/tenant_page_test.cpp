#include "daemon/tenant_page.h"

#include <gtest/gtest.h>

#include <cstring>

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

TEST(TenantPage, WhatIsMissingIsCountedOnceForAllGpus) {
  gpurota_page page{};
  page.use[0].unhooked = 3;
  EXPECT_EQ(read_use(page, 0).unhooked, 3u);
  EXPECT_EQ(read_use(page, 1).unhooked, 3u);
}

}  // namespace
}  // namespace gpurota::daemon
