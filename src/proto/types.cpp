#include "proto/types.h"

#include "proto/words.h"

namespace gpurota::proto {

const char* to_string(GpuState state) { return word_of(state); }
const char* to_string(LeaseKind kind) { return word_of(kind); }
const char* to_string(Share share) { return word_of(share); }
const char* to_string(LeaseState state) { return word_of(state); }
const char* to_string(Ended ended) { return word_of(ended); }
const char* to_string(ProcessType type) { return word_of(type); }
const char* to_string(CheckStatus status) { return word_of(status); }
const char* to_string(FindingKind kind) { return word_of(kind); }
const char* to_string(FindingAction action) { return word_of(action); }
const char* to_string(EventType type) { return word_of(type); }

}  // namespace gpurota::proto
