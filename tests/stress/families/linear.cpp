// cuMemAlloc in whole blocks and in small pieces that share blocks, cuMemAllocPitch,
// cuMemAllocManaged.
#include "tests/stress/families/families.h"

namespace gpurota::stress {

// Writes only the ends, because the simulated GPU's memory is the host's.
void mark(CUdeviceptr at, std::uint64_t size, std::uint32_t value) {
  STRESS_MUST(cuMemsetD32_v2(at, value, 1));
  STRESS_MUST(cuMemsetD32_v2(at + (size - 4) / 4 * 4, value, 1));
}

void check_mark(CUdeviceptr at, std::uint64_t size, std::uint32_t value) {
  std::uint32_t ends[2] = {};
  STRESS_MUST(cuMemcpyDtoH_v2(&ends[0], at, 4));
  STRESS_MUST(cuMemcpyDtoH_v2(&ends[1], at + (size - 4) / 4 * 4, 4));
  if (ends[0] == value && ends[1] == value) return;
  shared->corrupt.fetch_add(1);
  problem("corrupt memory", static_cast<long long>(size));
}

namespace {

constexpr std::size_t kMostPieces = 48;

struct LinearPiece {
  CUdeviceptr at;
  std::uint64_t size;
  std::uint32_t mark;
};

class Linear : public PieceFamily<LinearPiece> {
 public:
  Linear(Process& process, Account& account) : PieceFamily(process, account, kMostPieces) {}

 private:
  void allocate(const Dice& dice) override {
    switch (dice.detail / 8 % 8) {
      case 0:
        return pitched(dice);
      case 1:
        if (is_simulated()) return managed(dice);
        [[fallthrough]];
      case 2:
      case 3:
        return plain(Kind::kSmall, dice, 4 + dice.size % (1500 << 10), 2 * kBlock);
      default: {
        const std::uint64_t size = whole_blocks(dice);
        return plain(Kind::kLinear, dice, size, size);
      }
    }
  }
  void plain(Kind kind, const Dice& dice, std::uint64_t size, std::uint64_t most) {
    CUdeviceptr at = 0;
    if (account_.request(kind, most, [&] { return cuMemAlloc_v2(&at, size); })) {
      took(dice, at, size, most);
    }
  }
  // Rows of 1 MiB, which is a valid pitch without padding.
  void pitched(const Dice& dice) {
    CUdeviceptr at = 0;
    std::size_t pitch = 0;
    const std::uint64_t size = whole_blocks(dice);
    const auto call = [&] { return cuMemAllocPitch_v2(&at, &pitch, kMiB, size / kMiB, 4); };
    if (account_.request(Kind::kPitch, size, call)) took(dice, at, pitch * (size / kMiB), size);
  }
  // All of the memory is written, which moves it to the GPU. A real driver's NVML does not show the
  // owner of managed memory.
  void managed(const Dice& dice) {
    CUdeviceptr at = 0;
    const std::uint64_t size = kBlock * (1 + dice.size % 2);
    const auto call = [&] { return cuMemAllocManaged(&at, size, 1); };
    if (!account_.request(Kind::kManaged, size, call)) return;
    STRESS_MUST(cuMemsetD32_v2(at, dice.detail, size / 4));
    took(dice, at, size, size);
  }
  void took(const Dice& dice, CUdeviceptr at, std::uint64_t size, std::uint64_t most) {
    account_.keep(most, process_.blocks.enter(at, size));
    mark(at, size, dice.detail);
    pieces_.push_back({at, size, dice.detail});
  }
  void release(const LinearPiece& piece) override {
    check_mark(piece.at, piece.size, piece.mark);
    // The piece leaves its blocks before it is freed, because another thread may get freed blocks
    // at once. A block at an end of the piece may be shared with another thread's piece. If the
    // other piece leaves the block last, the other thread subtracts the block, even if this piece
    // is not freed yet. Therefore the upper bound counts the ends once more until the piece is
    // freed.
    const std::int64_t ends = piece.size % kBlock == 0 ? 0 : 2 * static_cast<std::int64_t>(kBlock);
    account_.hold(ends);
    const std::int64_t left = process_.blocks.leave(piece.at, piece.size);
    STRESS_MUST(cuMemFree_v2(piece.at));
    account_.gone(left);
    account_.hold(-ends);
  }
};

}  // namespace

std::unique_ptr<Family> make_linear(Process& process, Account& account) {
  return std::make_unique<Linear>(process, account);
}

}  // namespace gpurota::stress
