// The ledger: the cost of a tenant's question on the state thread.
#include "lease/grant_book.h"

#include <benchmark/benchmark.h>

namespace gpurota::lease {
namespace {

const GpuUuid kGpu{"GPU-00000000-0000-0000-0000-000000000000"};

void open_lease(GrantBook& book, std::uint64_t tenants) {
  Lease lease;
  lease.id = LeaseId{1};
  lease.gpus = {LeaseGpu{kGpu, gib(64), std::nullopt}};
  book.open(lease);
  for (std::uint64_t i = 1; i <= tenants; ++i) book.add_tenant(TenantId{i}, lease.id, {});
}

// A grow and the return of the granted memory, with the given number of tenants in the lease.
void GrowAndReturn(benchmark::State& state) {
  GrantBook book;
  open_lease(book, static_cast<std::uint64_t>(state.range(0)));
  std::uint32_t seq = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        book.grow(kGpu, {TenantId{1}, ++seq, false, {}, mib(1), mib(64)}, TimePoint{}));
    benchmark::DoNotOptimize(book.give_back(TenantId{1}, kGpu, mib(64), 0, 0, TimePoint{}));
  }
}
BENCHMARK(GrowAndReturn)->Arg(1)->Arg(8)->Arg(256);

// A refusal that first has to recall the headroom of all other tenants.
void RefusalAfterRecall(benchmark::State& state) {
  GrantBook book;
  const auto tenants = static_cast<std::uint64_t>(state.range(0));
  open_lease(book, tenants);
  for (std::uint64_t i = 1; i <= tenants; ++i) {
    (void)book.grow(kGpu, {TenantId{i}, 1, false, {}, mib(64), mib(64)}, TimePoint{});
  }
  for (auto _ : state) {
    const auto actions =
        book.grow(kGpu, {TenantId{1}, 2, false, {}, gib(64), gib(64)}, TimePoint{});
    for (const auto& [gpu, action] : actions) {
      const auto* recall = std::get_if<GrantRecall>(&action);
      if (recall) (void)book.give_back(recall->tenant, gpu, Bytes(), recall->seq, 1, TimePoint{});
    }
  }
}
BENCHMARK(RefusalAfterRecall)->Arg(2)->Arg(64);

}  // namespace
}  // namespace gpurota::lease
