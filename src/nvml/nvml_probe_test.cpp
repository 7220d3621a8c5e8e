#include "nvml/nvml_probe.h"

#include "nvml/nvml_processes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace gpurota::nvml {
namespace {

// The fake driver: the functions below answer from it. Plain functions have no object, so the
// driver is global, and made anew for each test.
struct FakeDevice {
  std::string uuid, name = "Fake H100";
  unsigned bus = 1, instance = 0;
  unsigned long long total = 80, reserved = 1, used = 10;  // GiB
  bool mig = false;
  std::vector<FakeDevice> instances{};
  nvmlReturn_t state = NVML_SUCCESS;
  std::vector<nvmlProcessInfo_v2_t> compute{}, graphics{}, mps{};
};
struct FakeDriver {
  std::vector<FakeDevice> devices;
  nvmlReturn_t init = NVML_SUCCESS;
  int begun = 0;
  nvmlReturn_t memory_v2 = NVML_SUCCESS;
  nvmlReturn_t memory_v1 = NVML_SUCCESS;
  nvmlReturn_t lists = NVML_SUCCESS;
  std::string version = "580.159.04";
  int size_errors = 0;  // this many lists are too long for any buffer of the caller's
};
FakeDriver fake;

FakeDevice& at(Device device) { return *reinterpret_cast<FakeDevice*>(device); }
Device handle(FakeDevice& device) { return reinterpret_cast<Device>(&device); }

nvmlReturn_t by_uuid(const char* uuid, Device* device) {
  for (FakeDevice& each : fake.devices) {
    if (each.uuid == uuid) *device = handle(each);
    for (FakeDevice& instance : each.instances) {
      if (instance.uuid == uuid) *device = handle(instance);
    }
  }
  return *device == nullptr ? NVML_ERROR_NOT_FOUND : at(*device).state;
}

nvmlReturn_t copy(const std::string& text, char* to, unsigned size) {
  if (text.size() >= size) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

template <class Entry>
nvmlReturn_t give(const std::vector<nvmlProcessInfo_v2_t>& list, unsigned* count, void* infos) {
  if (list.size() > *count || fake.size_errors > 0) {
    --fake.size_errors;
    *count = static_cast<unsigned>(list.size());
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  *count = static_cast<unsigned>(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::memcpy(static_cast<char*>(infos) + i * sizeof(Entry), &list[i], sizeof(Entry));
  }
  return NVML_SUCCESS;
}

template <class Entry, std::vector<nvmlProcessInfo_v2_t> FakeDevice::*kList>
nvmlReturn_t lister(Device device, unsigned* count, void* infos) {
  if (fake.lists != NVML_SUCCESS) return fake.lists;
  return give<Entry>(at(device).*kList, count, infos);
}
using V1 = nvmlProcessInfo_v1_t;
using V2 = nvmlProcessInfo_v2_t;
nvmlReturn_t odd_v3(Device, unsigned*, void*) {
  ADD_FAILURE() << "this driver's _v3 must not be called";
  return NVML_ERROR_UNKNOWN;
}

constexpr unsigned long long kGiB64 = 1ull << 30;

NvmlTable make_table() {
  NvmlTable table;
  table.init = [] {
    fake.begun += fake.init == NVML_SUCCESS;
    return fake.init;
  };
  table.shutdown = [] {
    --fake.begun;
    return NVML_SUCCESS;
  };
  table.device_count = [](unsigned* count) {
    *count = static_cast<unsigned>(fake.devices.size());
    return fake.begun > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
  };
  table.device_by_index = [](unsigned i, Device* device) {
    *device = handle(fake.devices[i]);
    return fake.devices[i].state;
  };
  table.device_by_uuid = by_uuid;
  table.name = [](Device d, char* to, unsigned size) { return copy(at(d).name, to, size); };
  table.uuid = [](Device d, char* to, unsigned size) { return copy(at(d).uuid, to, size); };
  table.pci_info = [](Device d, nvmlPciInfo_t* pci) {
    if (at(d).bus == 0) return NVML_ERROR_NOT_SUPPORTED;
    pci->bus = at(d).bus;
    std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", at(d).bus);
    return NVML_SUCCESS;
  };
  table.memory_v1 = [](Device d, nvmlMemory_t* m) {
    *m = {at(d).total * kGiB64, 0, (at(d).used + at(d).reserved) * kGiB64};
    return fake.memory_v1;
  };
  table.memory_v2 = [](Device d, nvmlMemory_v2_t* m) {
    if (m->version != NVML_MEMORY_V2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *m = {m->version, at(d).total * kGiB64, at(d).reserved * kGiB64, 0, at(d).used * kGiB64};
    return fake.memory_v2;
  };
  table.error_string = [](nvmlReturn_t r) {
    return r == NVML_ERROR_GPU_IS_LOST ? "GPU is lost" : "an error";
  };
  table.driver_version = [](char* to, unsigned size) { return copy(fake.version, to, size); };
  table.mig_mode = [](Device d, unsigned* now, unsigned* after_reset) {
    *now = *after_reset = at(d).mig ? 1 : 0;
    return NVML_SUCCESS;
  };
  table.mig_count = [](Device, unsigned* count) {
    *count = 7;
    return NVML_SUCCESS;
  };
  table.mig_by_index = [](Device d, unsigned i, Device* device) {
    // The first place is empty, as after an instance was destroyed.
    if (i == 0 || i > at(d).instances.size()) return NVML_ERROR_NOT_FOUND;
    *device = handle(at(d).instances[i - 1]);
    return NVML_SUCCESS;
  };
  table.minor_number = [](Device d, unsigned* number) {
    *number = at(d).bus;
    return NVML_SUCCESS;
  };
  table.gpu_instance_id = [](Device d, unsigned* number) {
    *number = at(d).instance;
    return NVML_SUCCESS;
  };
  table.compute_instance_id = [](Device, unsigned* number) {
    *number = 0;
    return NVML_SUCCESS;
  };
  table.compute.v3 = lister<V2, &FakeDevice::compute>;
  table.graphics.v3 = lister<V2, &FakeDevice::graphics>;
  table.mps.v3 = lister<V2, &FakeDevice::mps>;
  return table;
}

class NvmlProbeTest : public ::testing::Test {
 protected:
  NvmlProbeTest() {
    fake = FakeDriver();
    fake.devices.resize(2);
    fake.devices[0].uuid = "GPU-b";
    fake.devices[0].bus = 0x41;
    fake.devices[1].uuid = "GPU-a";
    fake.devices[1].bus = 0x01;
  }
  static GpuInfo gpu(const char* uuid) {
    GpuInfo info;
    info.uuid.value = uuid;
    return info;
  }
  GpuSample sample_of(const char* uuid) { return probe_.read_sample(gpu(uuid)); }
  NvmlTable table_ = make_table();
  NvmlProbe probe_{[this] { return Result<NvmlTable>(table_); }};
};

TEST_F(NvmlProbeTest, ListsGpusInPciOrderWithUsableMemory) {
  const auto gpus = probe_.read_gpus();
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ((*gpus)[0].uuid.value, "GPU-a");
  EXPECT_EQ((*gpus)[0].index, 0);
  EXPECT_EQ((*gpus)[0].pci, "00000000:01:00.0");
  EXPECT_EQ((*gpus)[0].memory, gib(79)) << "without the driver's own reserve";
  EXPECT_EQ((*gpus)[1].uuid.value, "GPU-b");
  EXPECT_EQ((*gpus)[1].index, 1);
  EXPECT_EQ(probe_.read_driver()->driver_version, "580.159.04");
}

TEST_F(NvmlProbeTest, LinksAreUnknownIfTheDriverReportsNone) {
  const auto gpus = probe_.read_gpus();
  const auto links = probe_.read_links(*gpus);
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].closeness, Closeness::kUnknown);
}

TEST_F(NvmlProbeTest, NvlinkTakesPrecedenceOverPcie) {
  table_.common_ancestor = [](Device, Device, nvmlGpuTopologyLevel_t* level) {
    *level = NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
  };
  NvmlProbe before{[this] { return Result<NvmlTable>(table_); }};
  const auto gpus = before.read_gpus();
  EXPECT_EQ(before.read_links(*gpus).at(0).closeness, Closeness::kAcrossNodes);
  table_.p2p_status = [](Device, Device, int way, int* status) {
    *status = way == NVML_P2P_CAPS_INDEX_NVLINK ? NVML_P2P_STATUS_OK : 1;
    return NVML_SUCCESS;
  };
  NvmlProbe again{[this] { return Result<NvmlTable>(table_); }};
  EXPECT_EQ(again.read_links(*gpus).at(0).closeness, Closeness::kNvlink);
}

TEST_F(NvmlProbeTest, ASampleTellsUtilisationWhereTheDriverDoes) {
  EXPECT_EQ(sample_of("GPU-a").load_percent, std::nullopt);
  table_.utilization = [](Device, nvmlUtilization_t* out) {
    *out = {37, 12};
    return NVML_SUCCESS;
  };
  NvmlProbe again{[this] { return Result<NvmlTable>(table_); }};
  EXPECT_EQ(again.read_sample(gpu("GPU-a")).load_percent, 37);
}

TEST_F(NvmlProbeTest, MigInstancesFollowTheirParent) {
  fake.devices[1].mig = true;
  fake.devices[1].instances.resize(2);
  fake.devices[1].instances[0] = {.uuid = "MIG-1", .name = "1g.10gb", .total = 10, .used = 2};
  fake.devices[1].instances[1] = {
      .uuid = "MIG-2", .name = "2g.20gb", .instance = 5, .total = 20, .used = 3};
  const auto gpus = probe_.read_gpus();
  ASSERT_EQ(gpus->size(), 4u);
  EXPECT_TRUE((*gpus)[0].mig_enabled);
  const GpuInfo& second = (*gpus)[2];
  EXPECT_EQ(second.uuid.value, "MIG-2");
  EXPECT_EQ(second.parent.value, "GPU-a");
  EXPECT_EQ(second.name, "2g.20gb");
  EXPECT_EQ(second.pci, "00000000:01:00.0");
  EXPECT_EQ(second.index, 1);
  EXPECT_EQ(second.memory, gib(19));
  EXPECT_FALSE(second.mig_enabled);
  EXPECT_EQ((*gpus)[0].device_minor, 1);
  EXPECT_EQ((*gpus)[0].gpu_instance, std::nullopt);
  EXPECT_EQ(second.gpu_instance, 5);
  EXPECT_EQ(second.compute_instance, 0);
  EXPECT_EQ((*gpus)[3].uuid.value, "GPU-b");
  EXPECT_EQ(probe_.read_sample(second).used, gib(3));
}

TEST_F(NvmlProbeTest, ASampleMergesTheListsByPid) {
  fake.devices[0].compute = {{10, 3 * kGiB64, NVML_NO_INSTANCE, 0}, {11, UINT64_MAX, 0, 0}};
  fake.devices[0].graphics = {{10, 3 * kGiB64, 0, 0}, {12, kGiB64, 0, 0}};
  fake.devices[0].mps = {{13, 2 * kGiB64, 0, 0}};
  const GpuSample sample = sample_of("GPU-b");
  EXPECT_EQ(sample.error, "");
  EXPECT_EQ(sample.used, gib(10));
  EXPECT_EQ(sample.total, gib(79));
  EXPECT_EQ(sample.processes, (std::vector<GpuProcess>{{10, gib(3), false},
                                                       {11, std::nullopt, false},
                                                       {12, gib(1), true},
                                                       {13, gib(2), false}}));
}

TEST_F(NvmlProbeTest, ProcessOnTwoInstancesOfOneGpuHasTheSum) {
  fake.devices[0].compute = {{10, kGiB64, 1, 0}, {10, 2 * kGiB64, 2, 0}, {10, UINT64_MAX, 3, 0}};
  EXPECT_EQ(sample_of("GPU-b").processes, (std::vector<GpuProcess>{{10, gib(3), false}}));
}

TEST_F(NvmlProbeTest, MoreProcessesThanExpectedAreAllListed) {
  for (unsigned pid = 1; pid <= 1000; ++pid) fake.devices[0].compute.push_back({pid, pid, 0, 0});
  fake.size_errors = 3;
  const GpuSample sample = sample_of("GPU-b");
  ASSERT_EQ(sample.processes.size(), 1000u) << sample.error;
  EXPECT_EQ(sample.processes.back().used, Bytes(1000));
}

TEST_F(NvmlProbeTest, OlderDriversListsAreReadToo) {
  fake.devices[0].compute = {{10, kGiB64, 0, 0}, {11, 2 * kGiB64, 0, 0}};
  const std::vector<GpuProcess> expected{{10, gib(1), false}, {11, gib(2), false}};
  table_.compute = {nullptr, lister<V2, &FakeDevice::compute>, nullptr};
  table_.graphics = table_.mps = {};
  NvmlProbe second([this] { return Result<NvmlTable>(table_); });
  EXPECT_EQ(second.read_sample(gpu("GPU-b")).processes, expected);
  table_.compute = {[](Device, unsigned*, void*) { return NVML_ERROR_FUNCTION_NOT_FOUND; }, nullptr,
                    lister<V1, &FakeDevice::compute>};
  NvmlProbe first([this] { return Result<NvmlTable>(table_); });
  EXPECT_EQ(first.read_sample(gpu("GPU-b")).processes, expected);
}

TEST_F(NvmlProbeTest, DriversWithLongV3EntriesAreAskedByV2) {
  fake.version = "535.54.03";
  fake.devices[0].compute = {{10, kGiB64, 0, 0}};
  table_.compute = {odd_v3, lister<V2, &FakeDevice::compute>, nullptr};
  table_.graphics = table_.mps = {};
  EXPECT_EQ(sample_of("GPU-b").processes.size(), 1u);
}

TEST_F(NvmlProbeTest, FallsBackToTheOldMemoryQuery) {
  fake.memory_v2 = NVML_ERROR_FUNCTION_NOT_FOUND;
  const GpuSample sample = sample_of("GPU-b");
  EXPECT_EQ(sample.total, gib(80));
  EXPECT_EQ(sample.used, gib(11));
}

// On GB10, which has no memory of its own, an unreported size is not a size of zero.
TEST_F(NvmlProbeTest, GpuWithUnreportedMemoryUsesTheMachinesMemory) {
  fake.memory_v2 = fake.memory_v1 = NVML_ERROR_NOT_SUPPORTED;
  fake.devices[0].compute = {{10, kGiB64, 0, 0}};
  const auto gpus = probe_.read_gpus();
  ASSERT_EQ(gpus->size(), 2u);
  const GpuInfo& gpu = (*gpus)[1];
  EXPECT_TRUE(gpu.unified);
  EXPECT_EQ(gpu.memory, Bytes());
  const GpuSample sample = probe_.read_sample(gpu);
  EXPECT_EQ(sample.error, "");
  EXPECT_EQ(sample.used, std::nullopt);
  EXPECT_EQ(sample.processes, (std::vector<GpuProcess>{{10, gib(1), false}}));
  EXPECT_FALSE(sample.machine_available) << "which NVML does not know";
}

TEST_F(NvmlProbeTest, ZeroIsNotAReportedMemorySize) {
  fake.devices[0].total = fake.devices[0].reserved = fake.devices[0].used = 0;
  const auto gpus = probe_.read_gpus();
  EXPECT_FALSE((*gpus)[0].unified);
  EXPECT_TRUE((*gpus)[1].unified);
  EXPECT_EQ(probe_.read_sample((*gpus)[1]).used, std::nullopt);
}

TEST_F(NvmlProbeTest, GpuThatStopsReportingItsMemoryIsInError) {
  const auto gpus = probe_.read_gpus();
  fake.memory_v2 = fake.memory_v1 = NVML_ERROR_NOT_SUPPORTED;
  EXPECT_NE(probe_.read_sample((*gpus)[0]).error, "");
}

TEST_F(NvmlProbeTest, UnlistedProcessesOfAUnifiedGpuAreUnknown) {
  fake.memory_v2 = fake.memory_v1 = fake.lists = NVML_ERROR_NOT_SUPPORTED;
  const GpuInfo unified = (*probe_.read_gpus())[0];
  const GpuSample sample = probe_.read_sample(unified);
  EXPECT_EQ(sample.error, "");
  EXPECT_FALSE(sample.lists_processes);
  EXPECT_NE(sample_of("GPU-a").error, "") << "of any other it is an error";
}

TEST_F(NvmlProbeTest, AGpuWithoutAPciAddressIsTheLast) {
  fake.devices[1].bus = 0;
  const auto gpus = probe_.read_gpus();
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ((*gpus)[0].uuid.value, "GPU-b");
  EXPECT_EQ((*gpus)[1].uuid.value, "GPU-a");
  EXPECT_EQ((*gpus)[1].pci, "");
  EXPECT_EQ((*gpus)[1].index, 1);
}

TEST_F(NvmlProbeTest, ALostGpuIsAnErrorOfItsSampleAndNotOfTheOthers) {
  fake.devices[0].state = NVML_ERROR_GPU_IS_LOST;
  EXPECT_NE(sample_of("GPU-b").error.find("GPU is lost"), std::string::npos);
  EXPECT_EQ(sample_of("GPU-a").error, "");
  const auto gpus = probe_.read_gpus();
  ASSERT_EQ(gpus->size(), 1u);
  const auto driver = probe_.read_driver();
  ASSERT_EQ(driver->problems.size(), 1u);
  EXPECT_NE(driver->problems[0].find("GPU 0 does not answer: GPU is lost"), std::string::npos);
  EXPECT_NE(sample_of("GPU-none").error, "");
}

TEST_F(NvmlProbeTest, ADriverThatComesLaterIsFound) {
  fake.init = NVML_ERROR_DRIVER_NOT_LOADED;
  const auto missing = probe_.read_gpus();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kUnavailable);
  EXPECT_NE(missing.error().message.find("modprobe nvidia"), std::string::npos);
  EXPECT_NE(sample_of("GPU-a").error, "");
  fake.init = NVML_SUCCESS;
  EXPECT_EQ(probe_.read_gpus()->size(), 2u);
  EXPECT_EQ(fake.begun, 1) << "and is initialised once";
}

TEST_F(NvmlProbeTest, ALibraryThatComesLaterIsFound) {
  bool installed = false;
  NvmlProbe probe([&]() -> Result<NvmlTable> {
    if (!installed) return fail(Code::kUnavailable, "no library");
    return table_;
  });
  EXPECT_EQ(probe.read_driver().error().message, "no library");
  EXPECT_TRUE(probe.read_settings({}).empty());
  installed = true;
  EXPECT_TRUE(probe.read_driver());
}

TEST_F(NvmlProbeTest, BeginsAgainAfterSomebodyElseShutNvmlDown) {
  ASSERT_TRUE(probe_.read_gpus());
  fake.begun = 0;
  EXPECT_FALSE(probe_.read_gpus());
  EXPECT_TRUE(probe_.read_gpus());
}

TEST_F(NvmlProbeTest, SaysWhatToDoAboutPermissionsAndMixedVersions) {
  fake.init = NVML_ERROR_NO_PERMISSION;
  EXPECT_EQ(probe_.read_gpus().error().code, Code::kDenied);
  fake.init = NVML_ERROR_LIB_RM_VERSION_MISMATCH;
  EXPECT_NE(probe_.read_gpus().error().message.find("reboot"), std::string::npos);
}

TEST_F(NvmlProbeTest, ReadsTheSettingsThatMatter) {
  table_.compute_mode = [](Device, nvmlComputeMode_t* mode) {
    *mode = NVML_COMPUTEMODE_EXCLUSIVE_PROCESS;
    return NVML_SUCCESS;
  };
  fake.devices[1].mps = {{5, 1, 0, 0}};
  std::map<std::string, std::string> settings;
  for (const auto& setting : probe_.read_settings(gpu("GPU-a")))
    settings[setting.name] = setting.value;
  EXPECT_EQ(settings["compute_mode"], "exclusive_process");
  EXPECT_EQ(settings["mig"], "off");
  EXPECT_EQ(settings["mps"], "1 client");
}

}  // namespace
}  // namespace gpurota::nvml
