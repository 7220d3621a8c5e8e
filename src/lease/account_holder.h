// The charge of one tenant on one GPU: its grant, and what the driver was seen to hold beside that.
// A part of Account. Pure.
#pragma once

#include "base/bytes.h"
#include "core/time.h"

#include <cstdint>
#include <deque>
#include <optional>

namespace gpurota::lease {

// NVML's figures for one tenant, and the figures of the tenant's page from the same time.
struct Measurement {
  std::optional<Bytes> held;  // NVML's figure; empty where it has none
  bool listed = false;        // NVML lists the process on this GPU
  Bytes used_hint;            // the page's used_bytes: the larger of before and after the sample
  TimePoint taken;            // when the sample began
  Bytes imported_hint{};      // part of used_hint: imported; NVML may show it for another process
};

struct AccountHolder {
  // One measurement: what the driver shows beside what the tenant reports as used.
  struct Reading {
    Bytes beside;
    Bytes used;
    Bytes most_beside;  // `beside`, if NVML's figure includes no imports
  };

  Bytes granted;
  Bytes shared;              // of `granted`: memory that other processes may have, too
  Bytes owed;                // returned, but counted until `shared` falls
  Bytes context_reserve;     // for contexts not measured yet
  TimePoint reserved_since;  // measurements begun before this do not show the reserve
  int contexts = 0;
  Bytes overhead;              // held beside hooked allocations, as measured
  std::deque<Reading> window;  // the last samples since the measurement of `overhead`
  bool unmeasured = true;      // its contexts changed since the last measurement
  std::uint32_t last_grown = 0;
  bool connected = true;
  bool dead = false;
  bool context_cost_known = false;
  bool is_busy = false;  // it connected with contexts, and does not wait for their measurement

  Bytes charge() const { return granted + overhead + context_reserve; }
  // For a living tenant. Returns the cost of a first context, if this measurement shows it.
  std::optional<Bytes> measure(const Measurement& measurement);
  // For a dead tenant that the driver still lists: the charge can only fall.
  void measure_dead(const Measurement& measurement);
  void give_back(Bytes bytes);
  void set_shared(Bytes bytes);

 private:
  void settle(const Reading& reading);
  void settle_owed();
};

}  // namespace gpurota::lease
