// Asks filler/choice.h which filler starts on a GPU, and whether the filler there leaves for
// another. State thread only.
#pragma once

#include "daemon/supervised/filler_table.h"

namespace gpurota::daemon {

class FillerChoice {
 public:
  explicit FillerChoice(FillerTable& table) : table_(table) {}

  // The filler to start on this GPU, which must have a spot; nullptr: none may start there now.
  FillerEntry* next_for(const GpuUuid& gpu) const;
  // Whether the filler on this GPU has been there for long enough, and another filler waits for the
  // GPU.
  bool stay_is_over(const GpuUuid& gpu) const;
  // When the GPU counts as idle for the fillers that may go there.
  filler::Rules rules_for(const GpuUuid& gpu) const;

 private:
  struct Candidates {
    std::vector<filler::Candidate> list;
    std::vector<std::uint64_t> ids;
  };
  Candidates candidates() const;

  FillerTable& table_;
};

}  // namespace gpurota::daemon
