// A simulated machine for Turns: tenants that submit, pause, allocate, drain, move memory piece by
// piece, stop, die and fail, with messages that take time. Time is virtual, and a seed decides
// everything.
//
// Events from outside are lines of a script, so that a failure can be reduced to the few lines that
// cause it.
#pragma once

#include "sched/turns.h"

#include <string>
#include <vector>

namespace gpurota::sched::testing_world {

// The block sizes of a program's memory. A block is at most a piece.
enum class Shape {
  kAny,    // no blocks: any part of it can be moved
  kEqual,  // one large allocation, or many of 64 MiB
  kLlama,  // a model in PyTorch, layer by layer
  kTorch,  // what PyTorch's allocator asks for, mixed
  kVllm,   // weights, and a few huge allocations
  kOdd     // many allocations of any size
};

struct LeasePlan {
  LeaseTerms terms;
  int tenants = 1;
  Bytes memory;             // movable, of each tenant, on each GPU
  Bytes wired;              // of each tenant, on each GPU
  double work = 0;          // seconds of GPU work between pauses; 0: never pauses
  double pause = 0;         // seconds of pause
  double period = 0;        // instead of pauses: requests at this interval, answered or not
  double kernel = 0.01;     // how long draining takes at most
  bool collective = false;  // the kernels of its tenants wait for each other
  bool churns = false;      // frees and allocates
  bool captures = false;    // at times its work cannot end before it gets memory
  bool doubted = false;     // memory reported as evicted stays until the next sample
  Shape shape = Shape::kAny;
  bool operator==(const LeasePlan&) const = default;
};

enum class Act {
  kStart,
  kEnd,
  kStop,
  kContinue,
  kKill,
  kFailMoves,
  kRestart,
  kCapacity,
  kAside,      // unless host memory could not take it
  kBack,       // once there could be room for it
  kOutsiders,  // memory of processes without turns, taken without asking
  kBeside,     // memory that a tenant takes without asking on each of its GPUs
  kLose,  // the GPU is lost: nothing moves there, and a daemon that starts then does not find it
  kFind   // the GPU is back; `tenant` is 1: the daemon sees it at once, else the next daemon does
};

struct ScriptLine {
  double at = 0;  // seconds
  Act act = Act::kStart;
  int lease = 0;   // index of its plan; of a GPU for kCapacity, kOutsiders, kLose and kFind
  int tenant = 0;  // within the lease
  Bytes bytes;
};

struct Plan {
  unsigned seed = 1;
  double seconds = 3600;
  double bytes_per_second = 40.0 * 1024 * 1024 * 1024;  // that memory moves at, each way
  Settings settings;
  bool renumbers = false;  // each daemon finds the GPUs in another order
  std::vector<GpuSettings> gpus;
  std::vector<LeasePlan> leases;
  std::vector<ScriptLine> script;
};

std::string to_string(const Plan& plan);

// The result of a simulation.
struct Outcome {
  std::string failure;         // empty: all promises held
  std::vector<double> run;     // seconds each lease ran, by plan
  std::vector<double> waited;  // longest wait of each lease
  // Seconds from each request to its answer, sorted.
  std::vector<std::vector<double>> answered;
  double moving = 0;  // seconds in which GPU 0 changed hands
  double idle = 0;    // seconds in which GPU 0 had no work though somebody wanted it
  long events = 0;
  Bytes hosted;                    // that oversize leases got in host memory
  long asides = 0;                 // times that a lease was put aside
  long ends = 0;                   // leases that ended because a process of theirs did not answer
  std::vector<std::string> trace;  // the last events and actions
};

Outcome simulate(const Plan& plan);
// The longest time that a lease that can run may wait: the turns of all others, by weight, and the
// time that priorities may take.
double longest_wait(const Plan& plan);
// The plan with its script reduced to the lines that are needed to fail.
Plan cut_down(const Plan& plan);
Plan random_plan(unsigned seed, double seconds);
// Like random_plan(), with leases that are put aside for a while.
Plan random_plan_with_asides(unsigned seed, double seconds);
// Like random_plan_with_asides(), with GPUs that are lost and perhaps come back.
Plan random_plan_with_losses(unsigned seed, double seconds);
// Like random_plan(), with memory in blocks, as programs have it.
Plan random_plan_with_blocks(unsigned seed, double seconds);
// Like random_plan_with_blocks(), with doubted tenants. An eviction by such a tenant counts only
// once a sample shows it.
Plan random_plan_with_doubts(unsigned seed, double seconds);
// Like random_plan_with_blocks(), with processes that are stopped for good, and a bound on the wait
// for them.
Plan random_plan_with_endless_stops(unsigned seed, double seconds);
// Like random_plan_with_blocks(), with processes that take and free unmovable memory without
// asking.
Plan random_plan_with_outsiders(unsigned seed, double seconds);
// Like random_plan_with_blocks(), with leases that allocate memory while they record graphs.
Plan random_plan_with_captures(unsigned seed, double seconds);
// Like random_plan_with_asides(), with oversize leases and less host memory.
Plan random_plan_with_oversize(unsigned seed, double seconds);

}  // namespace gpurota::sched::testing_world
