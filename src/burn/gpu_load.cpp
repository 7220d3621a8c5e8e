#include "burn/gpu_load.h"

#include "burn/reference.h"

#include <fmt/format.h>

#include <algorithm>

#include <kernels_ptx.h>  // generated from kernels.ptx

namespace gpurota::burn {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBalanceEvery{50};
constexpr milliseconds kReadErrorsEvery{200};
// The length of the two pieces of a step. A closing gate, or a new program, waits for the two steps
// in flight.
constexpr double kCheckMs = 4, kComputeMs = 12;
constexpr std::uint32_t kMostIterations = 4096;
constexpr std::uint32_t kMostChunks = 1024;
constexpr unsigned kThreads = 256, kBlocksPerMultiprocessor = 8;
constexpr std::uint64_t kInjectedBit = 1ULL << 17;
constexpr std::size_t kInjectedLane = 5;

bool is_fault_of_the_gpu(const Error& error) {
  return error.native == CUDA_ERROR_ECC_UNCORRECTABLE;
}

}  // namespace

GpuLoad::GpuLoad(const Driver& driver, const Gpu& gpu, const Options& options)
    : driver_(driver),
      gpu_(gpu),
      options_(options),
      started_(now()),
      check_pace_(kCheckMs, kMostChunks),
      compute_pace_(kComputeMs, kMostIterations) {}

Stats GpuLoad::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats = stats_;
  if (!done_) stats.seconds = std::chrono::duration<double>(now() - started_).count();
  return stats;
}

bool GpuLoad::is_done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

void GpuLoad::run(const StopFlag& stop) {
  const auto result = work(stop);
  close();
  const std::lock_guard lock(mutex_);
  done_ = true;
  stats_.seconds = std::chrono::duration<double>(now() - started_).count();
  if (result) return;
  stats_.error = result.error().message;
  stats_.is_faulty = is_fault_of_the_gpu(result.error());
}

Result<void> GpuLoad::work(const StopFlag& stop) {
  GPUROTA_TRY(open());
  GPUROTA_TRY(balance(stop));
  if (chunks_.empty() && !stop.is_set()) {
    return fail(Code::kLimit, "none of its memory is available: it is in use (see 'gpurota ps')");
  }
  if (options_.self_test) return self_test(stop);
  TimePoint balanced_at = now();
  while (!stop.is_set()) {
    if (now() - balanced_at >= kBalanceEvery) {
      GPUROTA_TRY(balance(stop));
      balanced_at = now();
    }
    if (options_.hold) {
      stop.wait_for(kBalanceEvery);
    } else {
      GPUROTA_TRY(step());
    }
  }
  for (Step& step : steps_) GPUROTA_TRY(await(step));
  return options_.hold ? Result<void>() : read_errors();
}

Result<void> GpuLoad::open() {
  // Without this flag, waiting for the GPU would use a whole CPU core.
  GPUROTA_TRY(check(driver_.cuCtxCreate(&context_, CU_CTX_SCHED_BLOCKING_SYNC, gpu_.device),
                    "cuCtxCreate"));
  std::size_t free = 0, total = 0;
  GPUROTA_TRY(check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo"));
  GPUROTA_TRY(check(driver_.cuDeviceTotalMem(&total, gpu_.device), "cuDeviceTotalMem"));
  const Bytes target = options_.of_free ? SizeSpec{Bytes(), *options_.of_free}.of(Bytes(free))
                                        : options_.memory.of(Bytes(total));
  plan_.emplace(target, Bytes(total));
  if (plan_->target() < plan_->chunk()) {
    return fail(Code::kInvalid, fmt::format("{}: {} is too little: at least {}",
                                            options_.of_free ? "--of-free" : "--memory",
                                            to_string(plan_->target()), to_string(plan_->chunk())));
  }
  const std::lock_guard lock(mutex_);
  stats_.target = plan_->target();
  return {};
}

Result<void> GpuLoad::open_kernels() {
  CUmodule module = nullptr;
  GPUROTA_TRY(check(driver_.cuModuleLoadData(&module, kBurnKernelsPtx), "cuModuleLoadData"));
  const auto find = [&](CUfunction* function, const char* name) {
    return check(driver_.cuModuleGetFunction(function, module, name), "cuModuleGetFunction");
  };
  GPUROTA_TRY(find(&fill_, "burn_fill"));
  GPUROTA_TRY(find(&check_, "burn_check"));
  GPUROTA_TRY(find(&compute_, "burn_compute"));
  GPUROTA_TRY(check(driver_.cuStreamCreate(&stream_, 0), "cuStreamCreate"));
  for (Step& step : steps_) {
    for (CUevent* event : {&step.begin, &step.middle, &step.end}) {
      GPUROTA_TRY(check(driver_.cuEventCreate(event, CU_EVENT_BLOCKING_SYNC), "cuEventCreate"));
    }
  }
  int multiprocessors = 0;
  GPUROTA_TRY(check(driver_.cuDeviceGetAttribute(
                        &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu_.device),
                    "cuDeviceGetAttribute"));
  blocks_ = static_cast<unsigned>(std::max(multiprocessors, 1)) * kBlocksPerMultiprocessor;
  const ErrorReport none = {0, UINT64_MAX, 0, 0};
  const auto expected = expected_results(kSteps);
  GPUROTA_TRY(check(driver_.cuMemAlloc(&report_, sizeof none), "cuMemAlloc"));
  GPUROTA_TRY(check(driver_.cuMemAlloc(&expected_, sizeof expected), "cuMemAlloc"));
  GPUROTA_TRY(check(driver_.cuMemcpyHtoD(report_, &none, sizeof none), "cuMemcpyHtoD"));
  return check(driver_.cuMemcpyHtoD(expected_, expected.data(), sizeof expected), "cuMemcpyHtoD");
}

Result<void> GpuLoad::balance(const StopFlag& stop) {
  if (!options_.hold && compute_ == nullptr) GPUROTA_TRY(open_kernels());
  while (!stop.is_set()) {
    std::size_t free = 0, total = 0;
    GPUROTA_TRY(check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo"));
    const Bytes held(chunks_.size() * plan_->chunk().count());
    switch (plan_->next({Bytes(total), Bytes(free), held}, now())) {
      case MemoryStep::kKeep:
        return {};
      case MemoryStep::kGiveBack:
        GPUROTA_TRY(give_chunk_back());
        break;
      case MemoryStep::kTake: {
        GPUROTA_ASSIGN_OR_RETURN(const bool taken, take_chunk());
        if (!taken) plan_->on_refused(now());
        break;
      }
    }
  }
  return {};
}

Result<bool> GpuLoad::take_chunk() {
  Chunk chunk;
  const std::size_t bytes = plan_->chunk().count();
  const CUresult result = driver_.cuMemAlloc(&chunk.data, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return false;
  GPUROTA_TRY(check(result, "cuMemAlloc"));
  chunk.first_word = next_word_;
  chunk.seed = next_seed_++;
  next_word_ += bytes / 8;
  chunks_.push_back(chunk);
  if (!options_.hold) {
    std::uint64_t words = bytes / 8;
    void* arguments[] = {&chunk.data, &words, &chunk.first_word, &chunk.seed};
    GPUROTA_TRY(launch(fill_, blocks_, arguments));
  }
  const std::lock_guard lock(mutex_);
  stats_.held += plan_->chunk();
  stats_.most_held = std::max(stats_.most_held, stats_.held);
  return true;
}

Result<void> GpuLoad::give_chunk_back() {
  // cuMemFree waits for the queued work that uses the chunk.
  GPUROTA_TRY(check(driver_.cuMemFree(chunks_.back().data), "cuMemFree"));
  chunks_.pop_back();
  const std::lock_guard lock(mutex_);
  stats_.held -= plan_->chunk();
  ++stats_.handed_back;
  return {};
}

Result<void> GpuLoad::step() {
  Step& step = steps_[step_count_++ % steps_.size()];
  GPUROTA_TRY(await(step));
  GPUROTA_TRY(check(driver_.cuEventRecord(step.begin, stream_), "cuEventRecord"));
  GPUROTA_TRY(launch_checks(step));
  GPUROTA_TRY(check(driver_.cuEventRecord(step.middle, stream_), "cuEventRecord"));
  step.iterations = compute_pace_.amount();
  std::uint32_t steps = kSteps;
  void* arguments[] = {&expected_, &steps, &step.iterations, &report_};
  GPUROTA_TRY(launch(compute_, blocks_, arguments));
  GPUROTA_TRY(check(driver_.cuEventRecord(step.end, stream_), "cuEventRecord"));
  step.in_flight = true;
  if (now() - errors_read_at_ < kReadErrorsEvery) return {};
  errors_read_at_ = now();
  return read_errors();
}

Result<void> GpuLoad::launch_checks(Step& step) {
  step.chunks = std::min(check_pace_.amount(), static_cast<std::uint32_t>(chunks_.size()));
  for (std::uint32_t i = 0; i < step.chunks; ++i) {
    Chunk chunk = chunks_.front();
    std::uint64_t words = plan_->chunk().count() / 8, next = next_seed_++;
    void* arguments[] = {&chunk.data, &words, &chunk.first_word, &chunk.seed, &next, &report_};
    GPUROTA_TRY(launch(check_, blocks_, arguments));
    chunk.seed = next;
    chunks_.pop_front();
    chunks_.push_back(chunk);
  }
  return {};
}

Result<void> GpuLoad::await(Step& step) {
  if (!step.in_flight) return {};
  step.in_flight = false;
  GPUROTA_TRY(check(driver_.cuEventSynchronize(step.end), "cuEventSynchronize"));
  float check_ms = 0, compute_ms = 0;
  GPUROTA_TRY(
      check(driver_.cuEventElapsedTime(&check_ms, step.begin, step.middle), "cuEventElapsedTime"));
  GPUROTA_TRY(
      check(driver_.cuEventElapsedTime(&compute_ms, step.middle, step.end), "cuEventElapsedTime"));
  if (step.chunks > 0) check_pace_.on_measured(step.chunks, check_ms);
  compute_pace_.on_measured(step.iterations, compute_ms);
  const std::lock_guard lock(mutex_);
  stats_.checked_bytes += step.chunks * plan_->chunk().count();
  stats_.flops +=
      static_cast<double>(std::uint64_t{blocks_} * kThreads * kOrbits * kSteps * kFlopsPerStep) *
      step.iterations;
  return {};
}

Result<void> GpuLoad::read_errors() {
  ErrorReport report = {};
  GPUROTA_TRY(check(driver_.cuMemcpyDtoH(&report, report_, sizeof report), "cuMemcpyDtoH"));
  const std::lock_guard lock(mutex_);
  stats_.wrong_words = report.wrong_words;
  stats_.wrong_bits = report.wrong_bits;
  stats_.wrong_results = report.wrong_results;
  return {};
}

Result<void> GpuLoad::self_test(const StopFlag& stop) {
  const std::uint64_t index = chunks_.front().first_word + plan_->chunk().count() / 16;
  GPUROTA_TRY(make_errors());
  const std::size_t all = chunks_.size();
  for (std::size_t checked = 0; checked < all && !stop.is_set();) {
    GPUROTA_TRY(step());
    checked += steps_[(step_count_ - 1) % steps_.size()].chunks;
  }
  for (Step& step : steps_) GPUROTA_TRY(await(step));
  ErrorReport report = {};
  GPUROTA_TRY(check(driver_.cuMemcpyDtoH(&report, report_, sizeof report), "cuMemcpyDtoH"));
  GPUROTA_TRY(read_errors());
  const std::lock_guard lock(mutex_);
  stats_.self_test = report.wrong_words == 1 && report.lowest_index == index &&
                     report.wrong_bits == kInjectedBit && report.wrong_results > 0;
  return {};
}

// Injects errors: flips one bit in the middle of the first chunk, and changes one expected result.
Result<void> GpuLoad::make_errors() {
  GPUROTA_TRY(check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize"));
  const CUdeviceptr at = chunks_.front().data + plan_->chunk().count() / 16 * 8;
  std::uint64_t word = 0;
  GPUROTA_TRY(check(driver_.cuMemcpyDtoH(&word, at, sizeof word), "cuMemcpyDtoH"));
  word ^= kInjectedBit;
  GPUROTA_TRY(check(driver_.cuMemcpyHtoD(at, &word, sizeof word), "cuMemcpyHtoD"));
  auto expected = expected_results(kSteps);
  expected[kInjectedLane] ^= 1;
  return check(driver_.cuMemcpyHtoD(expected_, expected.data(), sizeof expected), "cuMemcpyHtoD");
}

Result<void> GpuLoad::launch(CUfunction kernel, unsigned blocks, void** arguments) {
  return check(
      driver_.cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream_, arguments, nullptr),
      "cuLaunchKernel");
}

// Frees the memory chunk by chunk, so that a program that waits for memory can start with the
// first. After a failure the driver rejects these calls; that is harmless.
void GpuLoad::close() {
  for (const Chunk& chunk : chunks_) (void)driver_.cuMemFree(chunk.data);
  chunks_.clear();
  if (context_ != nullptr) (void)driver_.cuCtxDestroy(context_);
  const std::lock_guard lock(mutex_);
  stats_.held = Bytes();
}

}  // namespace gpurota::burn
