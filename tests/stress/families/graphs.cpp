// Memory of graphs: allocation nodes, and allocations made while a stream captures. The driver
// keeps this memory for all graphs of the process, so only one thread of a process at a time uses
// graphs.
#include "tests/stress/families/families.h"

namespace gpurota::stress {
namespace {

constexpr std::size_t kMostGraphs = 4;

class Graphs : public Family {
 public:
  Graphs(Process& process, Account& account) : Family(process, account) {
    STRESS_MUST(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  ~Graphs() override { STRESS_MUST(cuStreamDestroy_v2(stream_)); }

  void step(const Dice& dice) override {
    const std::lock_guard lock(process_.graph_mutex);
    if (dice.choice % 4 == 0 && ready_.size() < kMostGraphs) {
      make(dice);
    } else if (dice.choice % 4 == 3) {
      if (!ready_.empty()) {
        std::swap(ready_[dice.victim % ready_.size()], ready_.back());
        STRESS_MUST(cuGraphExecDestroy(ready_.back().exec));
        ready_.pop_back();
      }
      let_go();
    } else if (!ready_.empty()) {
      launch(ready_[dice.victim % ready_.size()], dice);
    }
  }
  void rest() override {
    const std::lock_guard lock(process_.graph_mutex);
    let_go();
  }
  void free_all() override {
    const std::lock_guard lock(process_.graph_mutex);
    for (const Ready& ready : ready_) STRESS_MUST(cuGraphExecDestroy(ready.exec));
    ready_.clear();
    let_go();
  }

 private:
  struct Ready {
    CUgraphExec exec;
    std::uint64_t most;
  };

  static bool add_nodes(CUgraph graph, std::uint64_t size) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = size;
    CUgraphNode made = nullptr, freed = nullptr;
    return STRESS_MUST(cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &params)) &&
           STRESS_MUST(cuGraphAddMemFreeNode(&freed, graph, &made, 1, params.dptr));
  }

  bool capture(CUgraph* graph, std::uint64_t size) {
    CUdeviceptr at = 0;
    return STRESS_MUST(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)) &&
           STRESS_MUST(cuMemAllocAsync(&at, size, stream_)) &&
           STRESS_MUST(cuMemsetD32Async(at, 5, 16, stream_)) &&
           STRESS_MUST(cuMemFreeAsync(at, stream_)) &&
           STRESS_MUST(cuStreamEndCapture(stream_, graph));
  }

  void make(const Dice& dice) {
    const std::uint64_t size = kBlock * (1 + dice.size % 24) - dice.detail % 2;
    CUgraph graph = nullptr;
    Ready ready = {nullptr, round_up(size, kPoolUnit)};
    const bool captures = dice.detail / 8 % 2 == 0;
    if (captures ? !capture(&graph, size)
                 : !STRESS_MUST(cuGraphCreate(&graph, 0)) || !add_nodes(graph, size)) {
      return;
    }
    if (STRESS_MUST(cuGraphInstantiateWithFlags(&ready.exec, graph, 0))) ready_.push_back(ready);
    STRESS_MUST(cuGraphDestroy(graph));
  }

  void launch(const Ready& ready, const Dice& dice) {
    const auto call = [&] {
      if (dice.detail % 4 == 0) {
        const CUresult uploaded = cuGraphUpload(ready.exec, stream_);
        if (uploaded != CUDA_SUCCESS) return uploaded;
      }
      return cuGraphLaunch(ready.exec, stream_);
    };
    if (!account_.request(Kind::kGraph, ready.most, call)) return;
    STRESS_MUST(cuStreamSynchronize(stream_));
    account_.keep(ready.most, grown());
  }

  std::int64_t grown() {
    cuuint64_t bytes = 0;
    STRESS_MUST(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes));
    const auto now = static_cast<std::int64_t>(bytes);
    const std::int64_t by = now - process_.graphs_known;
    process_.graphs_known = now;
    return by;
  }

  void let_go() {
    STRESS_MUST(cuStreamSynchronize(stream_));
    STRESS_MUST(cuDeviceGraphMemTrim(0));
    account_.gone(-grown());
  }

  CUstream stream_ = nullptr;
  std::vector<Ready> ready_;
};

}  // namespace

std::unique_ptr<Family> make_graphs(Process& process, Account& account) {
  return std::make_unique<Graphs>(process, account);
}

}  // namespace gpurota::stress
