// Streams: which one a handle means, and giving it work. Under the driver's lock.
#pragma once

#include "sim/cuda/api.h"
#include "sim/cuda/operation.h"

namespace gpurota::sim {

// A call that gives work to a stream, or asks about one.
class StreamCall : public ContextCall {
 public:
  explicit StreamCall(CUstream handle, const char* function = __builtin_FUNCTION());
  Stream& stream() const { return *stream_; }

  // kYes: a synchronous call. kLikeSync: an asynchronous one that has to wait all the same.
  enum class Wait { kNo, kYes, kLikeSync };
  // Adds the operation to the stream, or to the graph if it is capturing. Unless with kNo it has
  // been done when this returns, and what it answers is not held against the context.
  CUresult submit(Operation operation, Wait wait);

 private:
  Stream* stream_ = nullptr;
};

// The stream a handle means for the calling thread; null when it is none.
Stream* resolve_stream(Driver& driver, Context& context, CUstream handle);
// The work that new work in `stream` has to wait for; `extra` of the stream is used up.
std::vector<WorkPtr> dependencies(const Driver& driver, Stream& stream);
// Puts a piece of work into the stream's order, without running an operation.
WorkPtr append(Driver& driver, Stream& stream, std::function<CUresult()> body);
// The body of a piece of work that carries out `operation` in `context`.
std::function<CUresult()> body_of(Driver& driver, Context& context, Operation operation,
                                  bool is_sticky);

}  // namespace gpurota::sim
