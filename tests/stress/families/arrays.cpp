// Arrays whose rows and heights need no padding in any layout, so that their size is their charge.
#include "tests/stress/families/families.h"

namespace gpurota::stress {
namespace {

constexpr std::size_t kMostArrays = 16;
constexpr std::size_t kWidth = 4096;  // floats: 16 KiB a row
constexpr std::size_t kRows = 128;    // 2 MiB

struct ArrayPiece {
  CUarray array;
  std::uint64_t size;
};

class Arrays : public PieceFamily<ArrayPiece> {
 public:
  Arrays(Process& process, Account& account) : PieceFamily(process, account, kMostArrays) {}

 private:
  void allocate(const Dice& dice) override {
    const std::size_t blocks = 1 + dice.size % 16;
    ArrayPiece made = {nullptr, blocks * kBlock};
    const bool layered = dice.detail % 3 == 0;
    const CUDA_ARRAY_DESCRIPTOR flat = {kWidth, kRows * blocks, CU_AD_FORMAT_FLOAT, 1};
    const CUDA_ARRAY3D_DESCRIPTOR layers = {
        kWidth, kRows, blocks, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED};
    const auto call = [&] {
      return layered ? cuArray3DCreate_v2(&made.array, &layers)
                     : cuArrayCreate_v2(&made.array, &flat);
    };
    if (!account_.request(Kind::kArray, made.size, call)) return;
    account_.keep(made.size, static_cast<std::int64_t>(made.size));
    pieces_.push_back(made);
  }

  void release(const ArrayPiece& made) override {
    STRESS_MUST(cuArrayDestroy(made.array));
    account_.gone(static_cast<std::int64_t>(made.size));
  }
};

}  // namespace

std::unique_ptr<Family> make_arrays(Process& process, Account& account) {
  return std::make_unique<Arrays>(process, account);
}

}  // namespace gpurota::stress
