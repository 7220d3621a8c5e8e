// The control protocol: the cost of a call and of a status reply.
#include "ipc/framer.h"
#include "proto/codec.h"

#include <benchmark/benchmark.h>

namespace gpurota::proto {
namespace {

void ParseAcquire(benchmark::State& state) {
  Acquire call;
  call.request.memory = SizeSpec{gib(8), 0};
  call.request.command = std::vector<std::string>{"python3", "train.py", "--epochs", "10"};
  const std::string text = call_json(call);
  for (auto _ : state) benchmark::DoNotOptimize(parse_call(text));
}
BENCHMARK(ParseAcquire);

void StatusReply(benchmark::State& state) {
  Status::Reply reply;
  reply.gpus.resize(8);
  reply.leases.resize(static_cast<std::size_t>(state.range(0)));
  for (Lease& lease : reply.leases) {
    lease.user = "alice";
    lease.gpus.resize(1);
  }
  for (auto _ : state) benchmark::DoNotOptimize(reply_json<Status>(reply));
}
BENCHMARK(StatusReply)->Arg(1)->Arg(64);

void Framing(benchmark::State& state) {
  const std::string message = std::string(512, 'x') + '\0';
  ipc::Framer framer(kMaxCallBytes);
  for (auto _ : state) {
    (void)framer.feed(message);
    benchmark::DoNotOptimize(framer.next());
  }
}
BENCHMARK(Framing);

}  // namespace
}  // namespace gpurota::proto
