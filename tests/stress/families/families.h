// The families of device memory, each used by one thread. A step allocates or frees, as the dice
// say, and updates the model.
#pragma once

#include "tests/driver/functions.h"
#include "tests/stress/families/model.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace gpurota::stress {

// Shared by the threads of a process.
struct Process {
  int index = 0;
  CUcontext primary = nullptr;
  CUcontext second = nullptr;
  std::uint64_t largest = 0;  // of one request
  Blocks blocks;
  std::mutex default_pool_mutex;  // the pool's reserved bytes belong to no single thread
  std::int64_t default_pool_known = 0;
  std::mutex graph_mutex;
  std::int64_t graphs_known = 0;
};

// Drawn before a step, so that a thread's actions depend on its seed and not on refusals.
struct Dice {
  std::uint32_t choice, size, detail, victim;
};

class Family {
 public:
  Family(Process& process, Account& account) : process_(process), account_(account) {}
  virtual ~Family() = default;
  virtual void step(const Dice& dice) = 0;
  // Called before the model is compared, to read figures that only the driver knows.
  virtual void rest() {}
  virtual void free_all() = 0;

 protected:
  // A multiple of 2 MiB; mostly small, because large ones keep all others away from the limit.
  std::uint64_t whole_blocks(const Dice& dice) const {
    const std::uint64_t bound = dice.detail % 8 == 0 ? process_.largest : process_.largest / 8;
    return kBlock * (1 + dice.size % (bound / kBlock + 1));
  }
  Process& process_;
  Account& account_;
};

// A family that allocates and frees pieces, of which a thread holds at most `most`.
template <class Piece>
class PieceFamily : public Family {
 public:
  PieceFamily(Process& process, Account& account, std::size_t most)
      : Family(process, account), most_(most) {}

  void step(const Dice& dice) override {
    if (dice.choice % 5 < 3 && pieces_.size() < most_) {
      allocate(dice);
    } else if (!pieces_.empty()) {
      std::swap(pieces_[dice.victim % pieces_.size()], pieces_.back());
      release(pieces_.back());
      pieces_.pop_back();
    }
  }
  void free_all() override {
    for (const Piece& piece : pieces_) release(piece);
    pieces_.clear();
  }

 protected:
  virtual void allocate(const Dice& dice) = 0;
  virtual void release(const Piece& piece) = 0;
  std::vector<Piece> pieces_;

 private:
  const std::size_t most_;
};

// Writes a mark to both ends of memory; check_mark() checks that the mark is still there.
void mark(CUdeviceptr at, std::uint64_t size, std::uint32_t value);
void check_mark(CUdeviceptr at, std::uint64_t size, std::uint32_t value);

std::unique_ptr<Family> make_linear(Process& process, Account& account);
std::unique_ptr<Family> make_vmm(Process& process, Account& account);
std::unique_ptr<Family> make_pools(Process& process, Account& account);
std::unique_ptr<Family> make_graphs(Process& process, Account& account);
std::unique_ptr<Family> make_arrays(Process& process, Account& account);

}  // namespace gpurota::stress
