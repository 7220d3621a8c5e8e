// The shared page while the tenant overwrites it: another thread changes the bytes during reads. No
// content, however torn or absurd, may mislead the daemon.
#include "daemon/tenants/tenant_page.h"
#include "lease/grant_book.h"
#include "sys/shared_page.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace gpurota;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto page = sys::SharedPage::make();
  if (!page || size == 0) return 0;
  const GpuUuid gpu{"GPU-00000000-0000-0000-0000-000000000000"};
  daemon::lay_out_page(**page, std::span(&gpu, 1));

  std::atomic<bool> stop = false;
  std::thread scribbler([&] {
    auto* words = reinterpret_cast<std::uint64_t*>(&**page);
    constexpr std::size_t kWords = sizeof(gpurota_page) / sizeof(std::uint64_t);
    for (std::size_t i = 0; !stop; ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, data + i % size, std::min<std::size_t>(8, size - i % size));
      __atomic_store_n(&words[(i * 31 + data[i % size]) % kWords], value, __ATOMIC_RELAXED);
    }
  });

  Lease lease;
  lease.id = LeaseId{1};
  lease.gpus = {LeaseGpu{gpu, gib(8), std::nullopt}};
  lease::GrantBook book;
  book.open(lease);
  book.add_tenant(TenantId{1}, lease.id, {{gpu, gib(4), 1}});
  for (int sample = 0; sample < 8; ++sample) {
    const daemon::TenantUse use = daemon::read_use(**page, data[0] % 32u);
    const TimePoint now{std::chrono::milliseconds(sample)};
    (void)book.measure(lease.id, gpu, {{TenantId{1}, {gib(5), true, use.used, now}}}, {}, now);
    const Bytes charged = book.find(lease.id, gpu).if_there()->charged();
    // A hint can hide neither what NVML shows nor what was granted.
    if (charged < gib(5) || charged > gib(9)) std::abort();
    daemon::publish(**page, data[0] % 32u, gib(8), charged);
  }
  stop = true;
  scribbler.join();
  return 0;
}
