// The layouts that released libraries and daemons must keep: a change here is a new version.
#include "abi/page.h"
#include "abi/wire.h"

#include <gtest/gtest.h>

#include <cstddef>

TEST(Layout, ThePageFitsOnePageAndKeepsEachWriterToItsCacheLine) {
  EXPECT_LE(sizeof(gpurota_page), GPUROTA_PAGE_BYTES);
  EXPECT_EQ(sizeof(gpurota_page_grant), 64u);
  EXPECT_EQ(sizeof(gpurota_page_use), 64u);
  EXPECT_EQ(offsetof(gpurota_page, grant), 64u);
  EXPECT_EQ(offsetof(gpurota_page, use), 64u + 64u * GPUROTA_SLOTS);
  EXPECT_EQ(offsetof(gpurota_page, unhooked_names), 64u + 128u * GPUROTA_SLOTS);
  EXPECT_EQ(offsetof(gpurota_page, work), 64u + 128u * GPUROTA_SLOTS + 520u);
  EXPECT_EQ(offsetof(gpurota_page, waited_us) % 8, 0u);
  EXPECT_EQ(offsetof(gpurota_page_grant, limit_bytes), 16u);
  EXPECT_EQ(offsetof(gpurota_page_grant, available_bytes), 24u);
  EXPECT_EQ(offsetof(gpurota_page_grant, window), 32u);
}

TEST(Layout, MessagesHaveTheSizesOfVersion1) {
  EXPECT_EQ(sizeof(gpurota_msg_header), 8u);
  EXPECT_EQ(sizeof(gpurota_held), 32u);
  EXPECT_EQ(sizeof(gpurota_msg_hello), 8u + 24u + GPUROTA_TOKEN_CHARS + 8u + 32u * GPUROTA_SLOTS);
  EXPECT_EQ(sizeof(gpurota_msg_welcome), 32u);
  EXPECT_EQ(sizeof(gpurota_msg_grow), 40u);
  EXPECT_EQ(sizeof(gpurota_msg_grown), 32u);
  EXPECT_EQ(sizeof(gpurota_msg_return), 24u);
  EXPECT_EQ(sizeof(gpurota_msg_recall), 16u);
  EXPECT_EQ(sizeof(gpurota_msg_query), 16u);
  EXPECT_EQ(sizeof(gpurota_msg_info), 32u);
  EXPECT_EQ(sizeof(gpurota_msg_contexts), 16u);
  EXPECT_EQ(sizeof(gpurota_msg_processes), 16u + 4u * GPUROTA_WIRE_PIDS);
  EXPECT_LE(sizeof(gpurota_msg_hello), GPUROTA_WIRE_MAX);
  EXPECT_LE(sizeof(gpurota_msg_processes), GPUROTA_WIRE_MAX);
}

TEST(Layout, MessagesOfSwapLeasesKeepTheirReleasedSizes) {
  EXPECT_EQ(sizeof(gpurota_swap_memory), 24u);
  EXPECT_EQ(sizeof(gpurota_msg_swap_here), 16u + (24u + 8u) * GPUROTA_SLOTS + 16u);
  EXPECT_EQ(offsetof(gpurota_msg_swap_here, key), 16u + (24u + 8u) * GPUROTA_SLOTS);
  EXPECT_EQ(offsetof(gpurota_msg_automatic, lease), GPUROTA_AUTOMATIC_LEAST);
  EXPECT_EQ(offsetof(gpurota_msg_lease, why), GPUROTA_LEASE_LEAST);
  EXPECT_LE(sizeof(gpurota_msg_lease), GPUROTA_WIRE_MAX);
  EXPECT_EQ(offsetof(gpurota_msg_swap_here, hosted_bytes), GPUROTA_SWAP_HERE_LEAST);
  EXPECT_EQ(GPUROTA_SWAP_HERE_LEAST, 16u + 24u * GPUROTA_SLOTS);
  EXPECT_EQ(sizeof(gpurota_msg_swap_terms), 40u);
  EXPECT_EQ(offsetof(gpurota_msg_swap_terms, kept_bytes), GPUROTA_SWAP_TERMS_LEAST);
  EXPECT_EQ(sizeof(gpurota_msg_swap_grow), 24u);
  EXPECT_EQ(sizeof(gpurota_msg_swap_grown), 24u);
  EXPECT_EQ(sizeof(gpurota_msg_swap_shrink), 48u);
  EXPECT_EQ(offsetof(gpurota_msg_swap_shrink, hosted_bytes), GPUROTA_SWAP_SHRINK_LEAST);
  EXPECT_EQ(GPUROTA_SWAP_SHRINK_LEAST, 40u);
  EXPECT_EQ(sizeof(gpurota_msg_swap_gate), 16u);
  EXPECT_EQ(sizeof(gpurota_msg_swap_status), 32u);
  EXPECT_EQ(offsetof(gpurota_msg_swap_status, pinned_bytes), GPUROTA_SWAP_STATUS_LEAST);
  EXPECT_EQ(sizeof(gpurota_msg_swap_move), 24u);
  EXPECT_EQ(sizeof(gpurota_msg_swap_moved), 40u);
  EXPECT_LE(sizeof(gpurota_msg_swap_here), GPUROTA_WIRE_MAX);
}

TEST(Layout, MessagesAboutSharedMemoryKeepTheirReleasedSizes) {
  EXPECT_EQ(sizeof(gpurota_shared_name), 32u);
  EXPECT_EQ(sizeof(gpurota_msg_open), 40u);
  EXPECT_EQ(sizeof(gpurota_msg_opened), 16u);
  EXPECT_EQ(sizeof(gpurota_msg_shared), 56u);
  EXPECT_EQ(sizeof(gpurota_msg_holding), 40u);
  EXPECT_EQ(sizeof(gpurota_msg_counted), 24u);
}
