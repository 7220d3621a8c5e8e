// On which machine a program starts first.
#include "cli/hosts/choose.h"

#include "cli/status/status_samples_test.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using samples::in_gib;
using samples::Machine;

// A machine whose GPUs are all taken whole.
Machine busy(int gpus, std::uint64_t waiting) {
  Machine machine(gpus);
  for (int i = 0; i < gpus; ++i) {
    machine.lend(static_cast<std::uint64_t>(i) + 1, "bob", {i}, std::chrono::minutes(1), 3);
    machine.gpu(i).available_bytes = Bytes();
    machine.gpu(i).swap_available_bytes = Bytes();
  }
  machine.reply.waiting = waiting;
  return machine;
}

std::string chosen(const LeaseWishes& wishes, const std::vector<const Machine*>& machines) {
  std::vector<OfHost<proto::Status>> hosts;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    hosts.push_back({std::string(1, static_cast<char>('a' + i)), &machines[i]->reply});
  }
  return choose_host(wishes, hosts).value_or("none");
}

TEST(ChooseHost, TheFirstWithRoomIsTaken) {
  const Machine full = busy(2, 0), one(1), two(2);
  EXPECT_EQ(chosen({}, {&full, &one, &two}), "b");
  LeaseWishes pair;
  pair.gpus = 2;
  EXPECT_EQ(chosen(pair, {&full, &one, &two}), "c");
}

TEST(ChooseHost, WithoutRoomTheShortestQueueIsTaken) {
  const Machine many = busy(2, 5), few = busy(2, 1), as_few = busy(2, 1), small = busy(1, 0);
  LeaseWishes pair;
  pair.gpus = 2;
  EXPECT_EQ(chosen(pair, {&many, &few, &as_few, &small}), "b");
  pair.gpus = 3;
  EXPECT_EQ(chosen(pair, {&many, &few}), "none");
}

TEST(ChooseHost, SlicesAndTurnsTakeAHostWithEnoughMemory) {
  Machine sliced = busy(1, 0);
  sliced.gpu(0).available_bytes = in_gib(8);
  Machine turns = busy(1, 0);
  turns.gpu(0).swap_available_bytes = in_gib(70);
  LeaseWishes slice;
  slice.memory = SizeSpec{in_gib(8), 0};
  EXPECT_EQ(chosen(slice, {&turns, &sliced}), "b");
  slice.memory = SizeSpec{in_gib(9), 0};
  EXPECT_EQ(chosen(slice, {&turns, &sliced}), "a");  // neither has room; a is listed first
  slice.swap = true;
  EXPECT_EQ(chosen(slice, {&sliced, &turns}), "b");
  slice.memory = SizeSpec{in_gib(500), 0};
  EXPECT_EQ(chosen(slice, {&sliced, &turns}), "none");
}

TEST(ChooseHost, HostMustHaveTheKindOfGpu) {
  Machine small(1, "NVIDIA A100-SXM4-40GB", 40), large(1);
  large.gpu(0).classes = std::vector<std::string>{"big"};
  LeaseWishes wishes;
  wishes.gpu_type = "h100";
  EXPECT_EQ(chosen(wishes, {&small, &large}), "b");
  wishes = {};
  wishes.min_memory = in_gib(64);
  EXPECT_EQ(chosen(wishes, {&small, &large}), "b");
  wishes = {};
  wishes.gpu_class = "big";
  EXPECT_EQ(chosen(wishes, {&small, &large}), "b");
  large.gpu(0).state = proto::GpuState::kDraining;
  EXPECT_EQ(chosen(wishes, {&small, &large}), "none");
}

}  // namespace
}  // namespace gpurota::cli
