// Makes each call in each kind of capture and says what came of it. The driver is used in child
// processes only: one that crashes, hangs or ends up with a capture that cannot be ended costs one
// cell, and another goes on.
#pragma once

#include "tests/driver/captures/scene.h"

namespace captures {

// One cell of the table: a call, the capture under way, and who makes the call how.
struct Cell {
  const Call* call;
  CUstreamCaptureMode mode;
  bool other_thread;
  CUstreamCaptureMode thread_mode;  // as cuThreadExchangeStreamCaptureMode has it
  unsigned stream_flags;            // of the stream that captures
};

enum class Outcome {
  kUnmeasured,   // the cell could not be prepared
  kAllowed,      // the call succeeded, and the capture
  kRefused,      // the call failed, the capture did not
  kInvalidates,  // the capture failed, or is gone
  kCrashes,
  kHangs,
};

struct Measured {
  CUresult result = CUDA_SUCCESS;  // of the call
  CUresult end = CUDA_SUCCESS;     // of cuStreamEndCapture; 400: the call destroyed the stream
  Outcome outcome = Outcome::kUnmeasured;
};

// One for each cell; empty if the driver cannot be used at all (then stderr says so).
std::vector<Measured> measure(const std::vector<Cell>& cells);

}  // namespace captures
