#include "lease/gpu_selector.h"

#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

GpuInfo gpu(int index, std::string uuid, std::string pci, std::string parent = "") {
  GpuInfo info;
  info.index = index;
  info.uuid = GpuUuid{std::move(uuid)};
  info.pci = std::move(pci);
  info.parent = GpuUuid{std::move(parent)};
  return info;
}

const std::vector<GpuInfo> kGpus = {
    gpu(0, "GPU-aa112233-4455-6677-8899-aabbccddeeff", "00000000:01:00.0"),
    gpu(1, "GPU-aa992233-4455-6677-8899-aabbccddee00", "00000000:81:00.0"),
    gpu(2, "MIG-bb112233-4455-6677-8899-aabbccddee01", "00000000:81:00.0",
        "GPU-aa992233-4455-6677-8899-aabbccddee00"),
};

TEST(GpuSelector, TakesAnIndexAUuidAPrefixAndAPciAddress) {
  EXPECT_EQ(select_gpu("0", kGpus)->value, kGpus[0].uuid.value);
  EXPECT_EQ(select_gpu("GPU-aa992233-4455-6677-8899-aabbccddee00", kGpus)->value,
            kGpus[1].uuid.value);
  EXPECT_EQ(select_gpu("gpu-aa11", kGpus)->value, kGpus[0].uuid.value);
  EXPECT_EQ(select_gpu("aa99", kGpus)->value, kGpus[1].uuid.value);
  EXPECT_EQ(select_gpu("MIG-bb", kGpus)->value, kGpus[2].uuid.value);
  EXPECT_EQ(select_gpu("00000000:01:00.0", kGpus)->value, kGpus[0].uuid.value);
  EXPECT_EQ(select_gpu("0000:01:00.0", kGpus)->value, kGpus[0].uuid.value);
  EXPECT_EQ(select_gpu("1:00.0", kGpus)->value, kGpus[0].uuid.value);
}

TEST(GpuSelector, APciAddressNamesTheCardNotItsInstances) {
  EXPECT_EQ(select_gpu("0000:81:00.0", kGpus)->value, kGpus[1].uuid.value);
}

TEST(GpuSelector, AllNamesWhatCanBeLeased) {
  std::vector<GpuInfo> gpus = kGpus;
  gpus[1].mig_enabled = true;
  const std::vector<GpuUuid> both = {gpus[0].uuid, gpus[2].uuid};
  EXPECT_EQ(select_gpus({"all"}, gpus), both);
  EXPECT_EQ(select_gpus({"0", "all", "MIG-bb"}, gpus), both) << "each once";
  EXPECT_EQ(select_gpus({"MIG-bb", "0"}, gpus), (std::vector<GpuUuid>{both[1], both[0]}));
  EXPECT_EQ(select_gpus({}, gpus).error().code, Code::kInvalid);
  EXPECT_EQ(select_gpus({"all", "7"}, gpus).error().code, Code::kInvalid);
  EXPECT_EQ(select_gpus({"all"}, {}).error().code, Code::kInvalid);
}

TEST(GpuSelector, ARangeNamesTheGpusOfItsIndices) {
  std::vector<GpuInfo> gpus;
  for (int i = 0; i < 12; ++i) gpus.push_back(gpu(i, "GPU-" + std::to_string(i), ""));
  const auto uuids = [&](std::vector<int> indices) {
    std::vector<GpuUuid> all;
    for (const int index : indices) all.push_back(gpus[static_cast<std::size_t>(index)].uuid);
    return all;
  };
  EXPECT_EQ(select_gpus({"0-3"}, gpus), uuids({0, 1, 2, 3}));
  EXPECT_EQ(select_gpus({"9-11", "2", "1-2"}, gpus), uuids({9, 10, 11, 2, 1}));
  EXPECT_EQ(select_gpus({"4-4"}, gpus), uuids({4}));
  EXPECT_NE(select_gpus({"10-12"}, gpus).error().message.find("no GPU \"12\""), std::string::npos);
  EXPECT_NE(select_gpus({"3-0"}, gpus).error().message.find("write 0-3"), std::string::npos);
  for (const char* text : {"-3", "0-", "0-x", "0-1-2", "-", "0-9999"}) {
    EXPECT_FALSE(select_gpus({text}, gpus)) << text;
  }
}

TEST(GpuSelector, AnIndexIsNeverThatOfAMigInstance) {
  // gpu(2, "MIG-…") has number 2 within its parent.
  EXPECT_FALSE(select_gpu("2", kGpus));
}

TEST(GpuSelector, AMigInstanceIsNamedByItsGpuAndItsPlace) {
  std::vector<GpuInfo> gpus = kGpus;
  gpus[2].index = 0;
  EXPECT_EQ(name_of(gpus[1], gpus), "1");
  EXPECT_EQ(name_of(gpus[2], gpus), "1:0");
  EXPECT_EQ(select_gpu("1:0", gpus)->value, gpus[2].uuid.value);
  EXPECT_EQ(select_gpu("0", gpus)->value, gpus[0].uuid.value);
  EXPECT_FALSE(select_gpu("0:0", gpus));
  EXPECT_FALSE(select_gpu("1:1", gpus));
  EXPECT_NE(select_gpu("7", gpus).error().message.find("1:0 (MIG-bb"), std::string::npos);
}

TEST(GpuSelector, RefusesUnknownOrAmbiguousNamesWithTheKnownOnes) {
  for (const char* text : {"", "7", "-1", "GPU-aa", "zz", "1.0", "0x1"}) {
    const auto result = select_gpu(text, kGpus);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, Code::kInvalid);
    EXPECT_NE(result.error().message.find("GPU-aa112233"), std::string::npos);
  }
}

TEST(GpuSelector, SaysSoWhenThereIsNoGpuAtAll) {
  EXPECT_NE(select_gpu("0", {}).error().message.find("no GPU"), std::string::npos);
}

}  // namespace
}  // namespace gpurota::lease
