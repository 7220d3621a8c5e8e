// Measures the overhead of an open gate on a call: setting the mark, reading the gate, clearing the
// mark.
#include "interposer/gate/gate.h"

#include <benchmark/benchmark.h>

namespace gpurota::interposer {
namespace {

Gate g_gate;

bool submits() { return false; }

void pass_open_gate(benchmark::State& state) {
  for (auto _ : state) {
    GateGuard guard(g_gate, GateClass::kSubmits, submits);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(pass_open_gate)->ThreadRange(1, 2);

void close_and_open(benchmark::State& state) {
  { GateGuard guard(g_gate, GateClass::kSubmits, submits); }
  for (auto _ : state) {
    g_gate.set(GateState::kShut);
    benchmark::DoNotOptimize(g_gate.wait_inside(0));
    g_gate.set(GateState::kOpen);
  }
}
BENCHMARK(close_and_open);

}  // namespace
}  // namespace gpurota::interposer

BENCHMARK_MAIN();
