#include "core/gpu.h"

#include <gtest/gtest.h>

namespace gpurota {
namespace {

TEST(GpuUuid, IsReadAsTheBytesThatCudaGives) {
  const auto bytes = uuid_bytes(GpuUuid{"GPU-00112233-4455-6677-8899-aabbccddeeff"});
  ASSERT_TRUE(bytes);
  EXPECT_EQ((*bytes)[0], 0x00);
  EXPECT_EQ((*bytes)[1], 0x11);
  EXPECT_EQ((*bytes)[15], 0xff);
  EXPECT_TRUE(uuid_bytes(GpuUuid{"MIG-00112233-4455-6677-8899-AABBCCDDEEFF"}));
}

TEST(GpuUuid, RefusesInvalidUuids) {
  for (const char* text :
       {"", "GPU-", "GPU-0011", "00112233-4455-6677-8899-aabbccddeeff",
        "GPU-00112233-4455-6677-8899-aabbccddeefg", "GPU-00112233-4455-6677-8899-aabbccddeeff00"}) {
    EXPECT_FALSE(uuid_bytes(GpuUuid{text})) << text;
  }
}

TEST(MemoryInUse, IsTheDriversFigureOrTheMachines) {
  GpuInfo gpu;
  gpu.memory = gib(120);
  GpuSample sample;
  EXPECT_EQ(memory_in_use(gpu, sample), std::nullopt);
  sample.used = gib(3);
  EXPECT_EQ(memory_in_use(gpu, sample), gib(3));
  gpu.unified = true;
  sample = {};
  EXPECT_EQ(memory_in_use(gpu, sample), std::nullopt) << "unknown is not nothing";
  sample.machine_available = gib(100);
  EXPECT_EQ(memory_in_use(gpu, sample), gib(20));
}

}  // namespace
}  // namespace gpurota
