// Memory of cuMemCreate: released before or after it is unmapped, retained by address, exported and
// imported again. Also host memory, which is not charged.
#include "tests/driver/device_memory.h"
#include "tests/stress/families/families.h"

#include <unistd.h>

namespace gpurota::stress {
namespace {

constexpr std::size_t kMostPieces = 24;

struct VmmPiece {
  CUdeviceptr range;
  std::uint64_t size;
  CUmemGenericAllocationHandle handle;  // 0: released, only the mapping keeps the memory
  std::uint32_t mark;
};

class Vmm : public PieceFamily<VmmPiece> {
 public:
  Vmm(Process& process, Account& account) : PieceFamily(process, account, kMostPieces) {}

 private:
  void allocate(const Dice& dice) override {
    dice.detail / 8 % 16 == 0 ? host_memory() : create(dice);
  }

  void map(CUdeviceptr at, std::uint64_t size, CUmemGenericAllocationHandle handle) {
    STRESS_MUST(cuMemMap(at, size, 0, handle, 0));
    STRESS_MUST(cuMemSetAccess(at, size, &kReadWrite, 1));
  }

  void create(const Dice& dice) {
    const bool exports = dice.detail / 128 % 4 == 0;
    const auto prop =
        device_memory(exports ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE);
    VmmPiece piece = {0, whole_blocks(dice), 0, dice.detail};
    const auto call = [&] { return cuMemCreate(&piece.handle, piece.size, &prop, 0); };
    if (!account_.request(Kind::kVmm, piece.size, call)) return;
    account_.keep(piece.size, static_cast<std::int64_t>(piece.size));
    STRESS_MUST(cuMemAddressReserve(&piece.range, piece.size, 0, 0, 0));
    map(piece.range, piece.size, piece.handle);
    mark(piece.range, piece.size, piece.mark);
    if (exports) send_and_take_back(piece);
    if (dice.detail / 512 % 3 == 0) {
      STRESS_MUST(cuMemRelease(piece.handle));
      piece.handle = 0;
      if (dice.detail / 2048 % 2 == 0) retain(&piece);
    }
    pieces_.push_back(piece);
  }

  void retain(VmmPiece* piece) {
    STRESS_MUST(cuMemRetainAllocationHandle(&piece->handle, reinterpret_cast<void*>(piece->range)));
  }

  // Exported and imported while the original lives: the import is not additional memory.
  void send_and_take_back(const VmmPiece& piece) {
    int fd = -1;
    CUmemGenericAllocationHandle again = 0;
    CUdeviceptr range = 0;
    constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (!STRESS_MUST(cuMemExportToShareableHandle(&fd, piece.handle, kType, 0))) return;
    void* sent = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
    STRESS_MUST(cuMemImportFromShareableHandle(&again, sent, kType));
    STRESS_MUST(cuMemAddressReserve(&range, piece.size, 0, 0, 0));
    map(range, piece.size, again);
    check_mark(range, piece.size, piece.mark);
    STRESS_MUST(cuMemUnmap(range, piece.size));
    STRESS_MUST(cuMemAddressFree(range, piece.size));
    STRESS_MUST(cuMemRelease(again));
    ::close(fd);
  }

  void host_memory() {
    auto prop = device_memory();
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    CUmemGenericAllocationHandle handle = 0;
    if (cuMemCreate(&handle, kBlock, &prop, 0) == CUDA_SUCCESS) STRESS_MUST(cuMemRelease(handle));
  }

  void release(const VmmPiece& piece) override {
    check_mark(piece.range, piece.size, piece.mark);
    const bool unmaps_first = piece.mark % 2 == 0;
    if (unmaps_first) STRESS_MUST(cuMemUnmap(piece.range, piece.size));
    if (piece.handle != 0) STRESS_MUST(cuMemRelease(piece.handle));
    if (!unmaps_first) STRESS_MUST(cuMemUnmap(piece.range, piece.size));
    account_.gone(static_cast<std::int64_t>(piece.size));
    STRESS_MUST(cuMemAddressFree(piece.range, piece.size));
  }
};

}  // namespace

std::unique_ptr<Family> make_vmm(Process& process, Account& account) {
  return std::make_unique<Vmm>(process, account);
}

}  // namespace gpurota::stress
