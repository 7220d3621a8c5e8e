// Makes each call in each kind of capture and returns the result. Only child processes use the
// driver. When a child crashes, hangs or has a capture that cannot be ended, only one cell is lost,
// and the next child continues.
#pragma once

#include "tests/driver/captures/scene.h"

namespace captures {

// One cell of the table: a call, the capture under way, and the thread and mode of the call.
struct Cell {
  const Call* call;
  CUstreamCaptureMode mode;
  bool other_thread;
  CUstreamCaptureMode thread_mode;  // the mode of cuThreadExchangeStreamCaptureMode
  unsigned stream_flags;            // of the stream that captures
};

enum class Outcome {
  kUnmeasured,   // the cell could not be prepared
  kAllowed,      // the call and the capture succeeded
  kRefused,      // the call failed, the capture succeeded
  kInvalidates,  // the capture failed, or is gone
  kCrashes,
  kHangs,
};

struct Measured {
  CUresult result = CUDA_SUCCESS;  // of the call
  CUresult end = CUDA_SUCCESS;     // of cuStreamEndCapture; 400: the call destroyed the stream
  Outcome outcome = Outcome::kUnmeasured;
};

// One result for each cell; empty, with a message on stderr, if the driver is not usable.
std::vector<Measured> measure(const std::vector<Cell>& cells);

}  // namespace captures
