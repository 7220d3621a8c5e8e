// Stream-ordered allocation, from a pool of the thread's own and from the device's default pool.
// The charge of a pool is its reserved bytes, which are read after each step.
#include "tests/stress/families/families.h"

namespace gpurota::stress {
namespace {

constexpr std::size_t kMostPieces = 12;

std::int64_t reserved_by(CUmemoryPool pool) {
  cuuint64_t bytes = 0;
  STRESS_MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
  return static_cast<std::int64_t>(bytes);
}

class Pools : public Family {
 public:
  Pools(Process& process, Account& account) : Family(process, account) {
    STRESS_MUST(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    STRESS_MUST(cuDeviceGetDefaultMemPool(&default_, 0));
    make_own();
  }
  ~Pools() override {
    STRESS_MUST(cuMemPoolDestroy(own_));
    STRESS_MUST(cuStreamDestroy_v2(stream_));
  }

  void step(const Dice& dice) override {
    if (dice.choice % 5 < 3 && pieces_.size() < kMostPieces) {
      allocate(dice);
    } else if (dice.choice % 31 == 3 && pieces_.empty()) {
      rest();  // destroys the pool and makes another
      STRESS_MUST(cuMemPoolDestroy(own_));
      make_own();
    } else if (!pieces_.empty()) {
      std::swap(pieces_[dice.victim % pieces_.size()], pieces_.back());
      release(pieces_.back());
      pieces_.pop_back();
      if (dice.detail % 3 == 0) let_go();
    }
  }
  void rest() override { let_go(); }
  void free_all() override {
    for (const Piece& piece : pieces_) release(piece);
    pieces_.clear();
    let_go();
  }

 private:
  struct Piece {
    CUdeviceptr at;
    std::uint64_t size;
    std::uint32_t mark;
  };

  void make_own() {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    cuuint64_t keep_all = UINT64_MAX;
    STRESS_MUST(cuMemPoolCreate(&own_, &properties));
    STRESS_MUST(cuMemPoolSetAttribute(own_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    known_ = 0;
  }

  void allocate(const Dice& dice) {
    const std::uint64_t size =
        dice.detail / 8 % 3 == 0 ? 512 + dice.size % (8 * kMiB) : whole_blocks(dice);
    const std::uint64_t most = round_up(size, kPoolUnit);
    Piece piece = {0, size, dice.detail};
    // A pool that grew beyond the limit can shrink only when its stream has finished.
    STRESS_MUST(cuStreamSynchronize(stream_));
    if (dice.detail / 32 % 4 == 0) {
      const std::lock_guard lock(process_.default_pool_mutex);
      const auto call = [&] { return cuMemAllocAsync(&piece.at, size, stream_); };
      if (!account_.request(Kind::kDefaultPool, most, call)) return;
      account_.keep(most, grown(default_, &process_.default_pool_known));
    } else {
      const auto call = [&] { return cuMemAllocFromPoolAsync(&piece.at, size, own_, stream_); };
      if (!account_.request(Kind::kPool, most, call)) return;
      account_.keep(most, grown(own_, &known_));
    }
    STRESS_MUST(cuMemsetD32Async(piece.at, piece.mark, 1, stream_));
    STRESS_MUST(cuMemsetD32Async(piece.at + (size - 4) / 4 * 4, piece.mark, 1, stream_));
    pieces_.push_back(piece);
  }

  void release(const Piece& piece) {
    STRESS_MUST(cuStreamSynchronize(stream_));
    check_mark(piece.at, piece.size, piece.mark);
    STRESS_MUST(cuMemFreeAsync(piece.at, stream_));
  }

  static std::int64_t grown(CUmemoryPool pool, std::int64_t* known) {
    const std::int64_t now = reserved_by(pool);
    const std::int64_t by = now - *known;
    *known = now;
    return by;
  }

  void let_go() {
    STRESS_MUST(cuStreamSynchronize(stream_));
    STRESS_MUST(cuMemPoolTrimTo(own_, 0));
    account_.gone(-grown(own_, &known_));
    const std::lock_guard lock(process_.default_pool_mutex);
    STRESS_MUST(cuMemPoolTrimTo(default_, 0));
    account_.gone(-grown(default_, &process_.default_pool_known));
  }

  CUstream stream_ = nullptr;
  CUmemoryPool own_ = nullptr;
  CUmemoryPool default_ = nullptr;
  std::int64_t known_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

std::unique_ptr<Family> make_pools(Process& process, Account& account) {
  return std::make_unique<Pools>(process, account);
}

}  // namespace gpurota::stress
