// The charge of one tenant on one GPU: its grant, and what the driver was seen to hold beside it. A
// part of Account. Pure.
#pragma once

#include "base/bytes.h"
#include "core/time.h"

#include <cstdint>
#include <deque>
#include <optional>

namespace gpurota::lease {

// NVML's figures for one tenant, beside those of the tenant's page.
struct Measurement {
  std::optional<Bytes> held;  // NVML's figure; empty where it has none
  bool listed = false;        // NVML lists the process on this GPU
  Bytes used_hint;            // the page's used_bytes, the larger of before and after the sample
  TimePoint taken;            // when the sample began
  Bytes imported_hint{};  // of used_hint, memory that another process made: NVML may show it there
};

struct AccountHolder {
  // One measurement: what is held beside what the tenant says it uses.
  struct Reading {
    Bytes beside;
    Bytes used;
    Bytes most_beside;  // should none of what it has imported be in NVML's figure for it
  };

  Bytes granted;
  Bytes shared;              // of `granted`: memory that other processes may have, too
  Bytes owed;                // given back, but counted until `shared` is less
  Bytes context_reserve;     // for contexts not measured yet
  TimePoint reserved_since;  // measurements begun before this say nothing of the reserve
  int contexts = 0;
  Bytes overhead;              // held beside what is hooked, as measured
  std::deque<Reading> window;  // the last samples since it was settled
  bool unmeasured = true;      // its contexts changed since the last measurement
  std::uint32_t last_grown = 0;
  bool connected = true;
  bool dead = false;
  bool context_cost_known = false;
  bool is_busy = false;  // it came with contexts, and does not wait until they are measured

  Bytes charge() const { return granted + overhead + context_reserve; }
  // Of a tenant that lives. Returns what a first context cost, when this measurement shows it.
  std::optional<Bytes> measure(const Measurement& measurement);
  // Of a dead one that the driver still lists: what it holds only becomes less.
  void measure_dead(const Measurement& measurement);
  void give_back(Bytes bytes);
  void set_shared(Bytes bytes);

 private:
  void settle(const Reading& reading);
  void settle_owed();
};

}  // namespace gpurota::lease
