// Which filler goes on a GPU, and which makes way for another. Decided in filler/choice.h. State
// thread only.
#pragma once

#include "daemon/supervised/filler_table.h"

namespace gpurota::daemon {

class FillerChoice {
 public:
  explicit FillerChoice(FillerTable& table) : table_(table) {}

  // nullptr: none may go there now. The GPU has a spot.
  FillerEntry* next_for(const GpuUuid& gpu) const;
  // The filler there has been on for long enough, and another one waits for the GPU.
  bool stay_is_over(const GpuUuid& gpu) const;
  // When the GPU counts as idle, for those that may go there.
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
