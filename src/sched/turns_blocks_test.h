// Blocks of programs' memory that move whole, as in the library. For turns_world_test.cpp only.
#pragma once

#include "sched/turns_world_test.h"

#include <algorithm>
#include <list>
#include <random>

namespace gpurota::sched::testing_world {

struct Block {
  Bytes size;
  bool out = false;
  bool moving = false;
  bool freed = false;  // during its move; it disappears when the move ends
};
using Blocks = std::list<Block>;

// Cuts memory into blocks of at most a piece. A simulated piece may have any size, and represents
// the library's largest block (64 MiB). So 1/32 of a piece represents 2 MiB: all allocations are
// rounded up to a multiple of that.
class Cutter {
 public:
  Cutter(Bytes piece, Bytes bytes, Blocks* blocks)
      : unit_(std::max<std::uint64_t>(piece.count() / 32, 1)), left_(bytes), blocks_(blocks) {}

  void cut(Shape shape, std::mt19937_64& random) {
    if (shape == Shape::kLlama) cut_llama();
    if (shape == Shape::kVllm) cut_vllm(random);
    while (shape == Shape::kTorch && !left_.is_zero()) allocate(torch_size(random));
    while (shape == Shape::kOdd && !left_.is_zero()) {
      allocate(1 + random() % (random() % 4 == 0 ? 100 : 32));
    }
    while (!left_.is_zero()) allocate(32);  // JAX: all at once
  }

 private:
  void block(std::uint64_t units) {
    const Bytes size = std::min(Bytes(units * unit_), left_);
    if (!size.is_zero()) blocks_->push_back({size});
    left_ -= size;
  }
  void allocate(std::uint64_t units) {
    for (; units > 32; units -= 32) block(32);
    block(units);
  }

  // A Llama of hidden size 3072 in bf16 as PyTorch asks for it.
  void cut_llama() {
    for (int i = 0; i < 2; ++i) allocate(5 * 32 + 28);  // the input and the output embedding
    for (int layer = 0; !left_.is_zero(); ++layer) {
      for (const std::uint64_t units : {9u, 10u, 9u, 24u, 24u, 24u}) allocate(units);
      if (layer % 8 == 0) allocate(1);
    }
  }
  // Allocates the weights, and then nearly all the rest in a few blocks for keys and values.
  void cut_vllm(std::mt19937_64& random) {
    const Bytes cache(left_.count() / 4 * 3);
    while (left_ > cache) allocate(torch_size(random));
    const std::uint64_t units = std::max<std::uint64_t>(left_.count() / unit_ / 8, 1);
    while (!left_.is_zero()) allocate(units);
  }
  // PyTorch's allocator: small blocks share 2 MiB, those below 10 MiB share 20 MiB, larger ones
  // have their own.
  static std::uint64_t torch_size(std::mt19937_64& random) {
    const std::uint64_t kind = random() % 8;
    return kind < 2 ? 1 : kind < 4 ? 10 : 5 + random() % (kind == 7 ? 120 : 28);
  }

  std::uint64_t unit_;
  Bytes left_;
  Blocks* blocks_;
};

}  // namespace gpurota::sched::testing_world
