#include "interposer/flights.h"

namespace gpurota::interposer {
namespace {

constexpr uint64_t kWaits = UINT64_MAX;

}  // namespace

void Flight::begin(Slot& slot) {
  ticket_ = slot.tickets.fetch_add(1) + 1;
  for (std::atomic<uint64_t>& place : slot.flights) {
    uint64_t nobody = 0;
    if (place.load(std::memory_order_relaxed) != 0) continue;
    if (!place.compare_exchange_strong(nobody, ticket_)) continue;
    place_ = &place;
    return;
  }
}

void Flight::end() {
  if (place_ != nullptr) place_->store(0);
  place_ = nullptr;
}

void Flight::wait_begins() {
  if (place_ != nullptr) place_->store(kWaits);
}

void Flight::wait_ends() {
  if (place_ != nullptr) place_->store(ticket_);
}

uint64_t last_ticket(const Slot& slot) { return slot.tickets.load(); }

bool under_way(const Slot& slot, uint64_t ticket) {
  for (const std::atomic<uint64_t>& place : slot.flights) {
    const uint64_t its = place.load();
    if (its != 0 && its <= ticket) return true;
  }
  return false;
}

}  // namespace gpurota::interposer
