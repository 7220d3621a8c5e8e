// Streams: resolving handles, and giving streams work. Under the driver's lock.
#pragma once

#include "sim/cuda/api.h"
#include "sim/cuda/operation.h"

namespace gpurota::sim {

// A call that gives work to a stream, or asks about one.
class StreamCall : public ContextCall {
 public:
  explicit StreamCall(CUstream handle, const char* function = __builtin_FUNCTION());
  Stream& stream() const { return *stream_; }

  // kYes: a synchronous call. kLikeSync: an asynchronous call that must wait all the same.
  enum class Wait { kNo, kYes, kLikeSync };
  // Adds the operation to the stream, or to the graph if the stream captures. With kYes and
  // kLikeSync the operation has run when this returns, and its error does not become the context's
  // error.
  CUresult submit(Operation operation, Wait wait);

 private:
  Stream* stream_ = nullptr;
};

// The stream that a handle means for the calling thread; null if the handle is invalid.
Stream* resolve_stream(Driver& driver, Context& context, CUstream handle);
// The work that new work in `stream` must wait for; clears the stream's `extra`.
std::vector<WorkPtr> dependencies(const Driver& driver, Stream& stream);
// Appends a piece of work to the stream, without running an operation.
WorkPtr append(Driver& driver, Stream& stream, std::function<CUresult()> body);
// A function that runs `operation` in `context`.
std::function<CUresult()> body_of(Driver& driver, Context& context, Operation operation,
                                  bool is_sticky);

}  // namespace gpurota::sim
