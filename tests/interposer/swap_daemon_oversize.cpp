// The part of swap_daemon.cpp for host memory beyond the limit of a GPU.
#include "fake_wire.h"
#include "swap_daemon.h"

#include <algorithm>

namespace gpurota::interposer_test {
namespace {

constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

}  // namespace

std::uint64_t SwapDaemon::hosted_bytes(int slot) const {
  std::lock_guard lock(mutex_);
  return hosted(static_cast<std::size_t>(slot));
}

bool SwapDaemon::wait_for_hosted(int slot, std::uint64_t bytes) const {
  return wait([=, this] { return hosted(static_cast<std::size_t>(slot)) == bytes; });
}

std::uint64_t SwapDaemon::most_hosted() const {
  std::lock_guard lock(mutex_);
  return most_hosted_;
}

std::uint64_t SwapDaemon::hosted(std::size_t slot) const {
  std::uint64_t sum = 0;
  for (const Tenant& tenant : tenants_) sum += tenant.gpus[slot].hosted;
  return sum;
}

void SwapDaemon::answer_hosted(Tenant& tenant, const gpurota_msg_swap_grow& question) {
  gpurota_msg_swap_grown grown{};
  grown.header = {GPUROTA_MSG_SWAP_GROWN, sizeof(grown), question.header.seq};
  grown.slot = question.slot;
  if (question.bytes == 0 || question.bytes % kPage != 0) wrong("no whole pages of host memory");
  if (hosted(question.slot) + question.bytes <= behaviour_.oversize) {
    grown.bytes = question.bytes;
    tenant.gpus[question.slot].hosted += question.bytes;
    most_hosted_ = std::max(most_hosted_, hosted(question.slot));
  } else {
    grown.status = GPUROTA_REFUSED_LIMIT;
  }
  send_plain(tenant.event, grown);
}

}  // namespace gpurota::interposer_test
