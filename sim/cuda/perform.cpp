#include "sim/cuda/perform.h"

#include "sim/cuda/array.h"
#include "sim/cuda/kernel.h"
#include "sim/cuda/pool.h"

#include <algorithm>
#include <cstring>
#include <ctime>

namespace gpurota::sim {
namespace {

// Bytes copied under one lock of the address space; other threads may change the space between two
// steps.
constexpr std::size_t kPerformStep = std::size_t{4} << 20;

struct Line {
  const CopySide& side;

  std::size_t pitch() const { return side.array != nullptr ? side.array->pitch() : side.pitch; }
  std::size_t height() const { return side.array != nullptr ? side.array->rows() : side.height; }
  CUdeviceptr base() const {
    if (side.array == nullptr) return side.address;
    return reinterpret_cast<CUdeviceptr>(side.array->mapping->address() + side.array->offset);
  }
  CUdeviceptr at(std::size_t y, std::size_t z) const {
    return base() + ((z + side.z) * height() + y + side.y) * pitch() + side.x;
  }
};

CUresult check(const Space::Use& use, const CopySide& side, CUdeviceptr address,
               std::size_t bytes) {
  if (side.array == nullptr) return use.check(address, bytes, side.may_be_host);
  const std::size_t offset =
      address - reinterpret_cast<CUdeviceptr>(side.array->mapping->address());
  return side.array->mapping->touch(offset, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// Sleeps as long as a copy at the configured rate takes, in addition to the host's own copy time.
void slow_down(Driver& driver, int device, std::size_t bytes) {
  const std::uint64_t rate = driver.machine->faults(device).copy_bytes_per_second.load();
  if (rate == 0) return;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(rate);
  timespec wait = {};
  wait.tv_sec = static_cast<time_t>(seconds);
  wait.tv_nsec = static_cast<long>((seconds - static_cast<double>(wait.tv_sec)) * 1e9);
  while (::nanosleep(&wait, &wait) != 0) {
  }
}

CUresult copy_row(Driver& driver, int device, const CopyOp& copy, CUdeviceptr from, CUdeviceptr to,
                  std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t step = std::min(kPerformStep, bytes - done);
    {
      const Space::Use use(driver.space);
      CUresult result = check(use, copy.from, from + done, step);
      if (result == CUDA_SUCCESS) result = check(use, copy.to, to + done, step);
      if (result != CUDA_SUCCESS) return result;
      std::memmove(host_view(to + done), host_view(from + done), step);
    }
    slow_down(driver, device, step);
    done += step;
  }
  return CUDA_SUCCESS;
}

bool is_dense(const Line& line, const CopyOp& copy) {
  return line.pitch() == copy.width && (copy.depth == 1 || line.height() == copy.height);
}

CUresult copy_all(Driver& driver, int device, const CopyOp& copy) {
  const Line from{copy.from}, to{copy.to};
  if (is_dense(from, copy) && is_dense(to, copy)) {
    return copy_row(driver, device, copy, from.at(0, 0), to.at(0, 0),
                    copy.width * copy.height * copy.depth);
  }
  for (std::size_t z = 0; z < copy.depth; ++z) {
    for (std::size_t y = 0; y < copy.height; ++y) {
      const CUresult result =
          copy_row(driver, device, copy, from.at(y, z), to.at(y, z), copy.width);
      if (result != CUDA_SUCCESS) return result;
    }
  }
  return CUDA_SUCCESS;
}

void fill(std::byte* at, std::size_t count, unsigned value, unsigned element) {
  if (element == 1) {
    std::memset(at, static_cast<int>(value & 0xffU), count);
  } else if (element == 2) {
    std::fill_n(reinterpret_cast<std::uint16_t*>(at), count, static_cast<std::uint16_t>(value));
  } else {
    std::fill_n(reinterpret_cast<std::uint32_t*>(at), count, value);
  }
}

CUresult set_all(Driver& driver, const CUDA_MEMSET_NODE_PARAMS& set) {
  for (std::size_t y = 0; y < set.height; ++y) {
    const std::size_t bytes = set.width * set.elementSize;
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t step = std::min(kPerformStep, bytes - done);
      const CUdeviceptr at = set.dst + y * set.pitch + done;
      const Space::Use use(driver.space);
      const CUresult result = use.check(at, step, false);
      if (result != CUDA_SUCCESS) return result;
      fill(host_view(at), step / set.elementSize, set.value, set.elementSize);
      done += step;
    }
  }
  return CUDA_SUCCESS;
}

template <class T>
bool holds(const MemOp& op, T value) {
  const T wanted = static_cast<T>(op.value);
  switch (op.flags & 3U) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(value - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return value == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (value & wanted) != 0;
    default:
      return static_cast<T>(~(value | wanted)) != 0;
  }
}

template <class T>
CUresult memory_operation(Driver& driver, const MemOp& op) {
  while (true) {
    {
      const Space::Use use(driver.space);
      const CUresult result = use.check(op.address, sizeof(T), false);
      if (result != CUDA_SUCCESS) return result;
      auto* word = reinterpret_cast<T*>(host_view(op.address));
      if (!op.is_wait) {
        __atomic_store_n(word, static_cast<T>(op.value), __ATOMIC_SEQ_CST);
        return CUDA_SUCCESS;
      }
      if (holds(op, __atomic_load_n(word, __ATOMIC_SEQ_CST))) return CUDA_SUCCESS;
    }
    const timespec pause = {0, 50'000};
    ::nanosleep(&pause, nullptr);
  }
}

struct Performer {
  Driver& driver;
  Context& context;

  CUresult operator()(const CopyOp& copy) const { return copy_all(driver, context.device, copy); }
  CUresult operator()(const SetOp& set) const { return set_all(driver, set.params); }
  CUresult operator()(const KernelOp& kernel) const { return run_kernel(driver, context, kernel); }
  CUresult operator()(const HostOp& host) const {
    Engine::set_in_host_function(true);
    host.function(host.data);
    Engine::set_in_host_function(false);
    return CUDA_SUCCESS;
  }
  CUresult operator()(const MemOp& op) const {
    return op.is_64_bit ? memory_operation<std::uint64_t>(driver, op)
                        : memory_operation<std::uint32_t>(driver, op);
  }
  CUresult operator()(const FreeOp& op) const {
    const std::lock_guard lock(driver.mutex);
    return finish_graph_free(driver, op.address, true);
  }
  // Operations that only order others: their effect is settled when a stream gets them.
  CUresult operator()(const EmptyOp&) const { return CUDA_SUCCESS; }
  CUresult operator()(const EventRecordOp&) const { return CUDA_SUCCESS; }
  CUresult operator()(const EventWaitOp&) const { return CUDA_SUCCESS; }
  CUresult operator()(const ChildOp&) const { return CUDA_SUCCESS; }
  CUresult operator()(const AllocOp&) const { return CUDA_SUCCESS; }
};

// The end of the graph allocation that contains `at`; 0 if none does.
CUdeviceptr end_of_graph_memory(const Driver& driver, CUdeviceptr at) {
  const auto next = driver.graph_memory.upper_bound(at);
  if (next == driver.graph_memory.begin()) return 0;
  const auto& [base, memory] = *std::prev(next);
  return at - base < memory.size ? base + memory.size : 0;
}

// Whether every byte of the range is allocated. `in_graph`: the operation runs in a graph, which
// brings its own memory.
bool is_known(const Driver& driver, CUdeviceptr address, std::size_t bytes, bool in_graph) {
  const CUdeviceptr end = address + bytes;
  for (CUdeviceptr at = address; at < end;) {
    const CUdeviceptr behind = in_graph ? end_of_graph_memory(driver, at) : 0;
    if (behind != 0) {
      at = behind;
      continue;
    }
    const auto part = driver.space.find(at);
    if (!part || part->access == CU_MEM_ACCESS_FLAGS_PROT_NONE) return false;
    at = part->base + part->extent();
  }
  return true;
}

CUresult validate_side(const Driver& driver, const CopySide& side, const CopyOp& copy,
                       bool in_graph) {
  if (side.array != nullptr) {
    const ArrayMemory& array = *side.array;
    const bool fits = array.mapping != nullptr && side.x + copy.width <= array.pitch() &&
                      side.y + copy.height <= array.rows() && side.z + copy.depth <= array.layers();
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  const Line line{side};
  const CUdeviceptr first = line.at(0, 0);
  const bool is_graphs = in_graph && end_of_graph_memory(driver, first) != 0;
  if (side.may_be_host && !is_graphs && !driver.space.find(first)) return CUDA_SUCCESS;
  const CUdeviceptr last = line.at(copy.height - 1, copy.depth - 1) + copy.width;
  return is_known(driver, first, last - first, in_graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult validate(Driver& driver, const Operation& operation, bool in_graph) {
  if (const auto* copy = std::get_if<CopyOp>(&operation)) {
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0) return CUDA_SUCCESS;
    const CUresult from = validate_side(driver, copy->from, *copy, in_graph);
    return from != CUDA_SUCCESS ? from : validate_side(driver, copy->to, *copy, in_graph);
  }
  if (const auto* set = std::get_if<SetOp>(&operation)) {
    const CUDA_MEMSET_NODE_PARAMS& p = set->params;
    const std::size_t row = p.width * p.elementSize;
    if (row == 0 || p.height == 0) return CUDA_SUCCESS;
    if (p.dst % p.elementSize != 0 ||
        (p.height > 1 && (p.pitch < row || p.pitch % p.elementSize))) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const bool known = is_known(driver, p.dst, (p.height - 1) * p.pitch + row, in_graph);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult perform(Driver& driver, Context& context, const Operation& operation) {
  if (driver.machine->faults(context.device).lost.load() != 0) return CUDA_ERROR_UNKNOWN;
  return std::visit(Performer{driver, context}, operation);
}

}  // namespace gpurota::sim
