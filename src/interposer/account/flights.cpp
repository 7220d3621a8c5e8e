#include "interposer/account/flights.h"

namespace gpurota::interposer {
namespace {

constexpr uint64_t kWaits = UINT64_MAX;

}  // namespace

// Tickets are only told apart by whether a refusal came between them, so only refusals count on.
void Flight::begin(Slot& slot) {
  ticket_ = slot.tickets.load() + 1;
  for (std::atomic<uint64_t>& place : slot.flights) {
    uint64_t nobody = 0;
    if (place.load(std::memory_order_relaxed) != 0) continue;
    if (!place.compare_exchange_strong(nobody, ticket_)) continue;
    place_ = &place;
    return;
  }
}

// Nothing is looked at after it. Who finds the place empty finds all that was done before: what was
// put back is in the headroom.
void Flight::end() {
  if (place_ != nullptr) place_->store(0, std::memory_order_release);
  place_ = nullptr;
}

void Flight::wait_begins() {
  if (place_ != nullptr) place_->store(kWaits);
}

void Flight::wait_ends() {
  if (place_ != nullptr) place_->store(ticket_);
}

uint64_t last_ticket(Slot& slot) { return slot.tickets.fetch_add(1) + 1; }

bool under_way(const Slot& slot, uint64_t ticket) {
  for (const std::atomic<uint64_t>& place : slot.flights) {
    const uint64_t its = place.load();
    if (its != 0 && its <= ticket) return true;
  }
  return false;
}

}  // namespace gpurota::interposer
