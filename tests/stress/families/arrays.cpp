// Arrays whose rows and heights need no padding in any layout, so that their size is what they take.
#include "tests/stress/families/families.h"

namespace gpurota::stress {
namespace {

constexpr std::size_t kMostArrays = 16;
constexpr std::size_t kWidth = 4096;  // floats: 16 KiB a row
constexpr std::size_t kRows = 128;    // 2 MiB

class Arrays : public Family {
 public:
  using Family::Family;

  void step(const Dice& dice) override {
    if (dice.choice % 5 < 3 && made_.size() < kMostArrays) {
      create(dice);
    } else if (!made_.empty()) {
      std::swap(made_[dice.victim % made_.size()], made_.back());
      destroy(made_.back());
      made_.pop_back();
    }
  }
  void free_all() override {
    for (const Made& made : made_) destroy(made);
    made_.clear();
  }

 private:
  struct Made {
    CUarray array;
    std::uint64_t size;
  };

  void create(const Dice& dice) {
    const std::size_t blocks = 1 + dice.size % 16;
    Made made = {nullptr, blocks * kBlock};
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
    made_.push_back(made);
  }

  void destroy(const Made& made) {
    STRESS_MUST(cuArrayDestroy(made.array));
    account_.gone(static_cast<std::int64_t>(made.size));
  }

  std::vector<Made> made_;
};

}  // namespace

std::unique_ptr<Family> make_arrays(Process& process, Account& account) {
  return std::make_unique<Arrays>(process, account);
}

}  // namespace gpurota::stress
