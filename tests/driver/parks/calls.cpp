// Calls that a process makes without pause while it is parked: those of the table of captures,
// without a capture.
#include "tests/driver/captures/scene.h"
#include "tests/driver/parks/park.h"

#include <cstring>

namespace parks {
namespace {

using captures::Call;
using captures::Scene;

constexpr std::size_t kPattern = std::size_t{1} << 20;

std::vector<Call> calls_to_measure() {
  std::vector<Call> calls = captures::all_calls();
  // Without a capture, a call aimed at a capturing stream is the same as one aimed at any other
  // stream.
  std::erase_if(calls, [](const Call& call) {
    return call.joins || call.inside || call.aim.find("captur") != std::string::npos ||
           call.aim.find("joined") != std::string::npos ||
           function<void()>(call.function) == nullptr;
  });
  return calls;
}

std::string name_of(const Call& call) {
  return std::string(call.function) + "\t" + (call.aim.empty() ? "-" : call.aim);
}

// Bytes that are written first and read back at the end.
class Pattern {
 public:
  bool make() {
    return cuMemAlloc_v2(&memory_, kPattern) == CUDA_SUCCESS &&
           cuMemsetD32_v2(memory_, kValue, kPattern / 4) == CUDA_SUCCESS;
  }
  bool is_right() const {
    std::vector<unsigned> words(kPattern / 4);
    if (cuMemcpyDtoH_v2(words.data(), memory_, kPattern) != CUDA_SUCCESS) return false;
    for (const unsigned word : words) {
      if (word != kValue) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned kValue = 0x5eed1234;
  CUdeviceptr memory_ = 0;
};

}  // namespace

std::vector<std::string> names_of_calls() {
  std::vector<std::string> names;
  for (const Call& call : calls_to_measure()) names.push_back(name_of(call));
  return names;
}

int call_without_pause(Page& page, std::size_t index) {
  const Call call = calls_to_measure().at(index);
  Scene scene;
  Pattern pattern;
  if (!scene.set_up() || !pattern.make()) {
    page.ready = 2;
    return 1;
  }
  scene.open(CU_STREAM_NON_BLOCKING);
  std::uint64_t unprepared = 0;
  while (page.phase != kEnd) {
    scene.good = true;
    if (call.prepare) call.prepare(scene);
    if (scene.good) {
      const std::uint32_t begun = page.phase;
      const CUresult result = call.make(scene);
      page.result[begun] = result;
      if (page.phase != begun) ++page.crossed[begun];
      ++page.calls[begun];
      unprepared = 0;
    } else if (++unprepared == 1000 && page.ready == 0) {
      break;
    }
    // A capture would change what other calls do.
    const bool captures = std::strcmp(call.function, "cuStreamBeginCapture_v2") == 0;
    scene.clean_up(!captures);
    const bool whole = scene.unrelated != nullptr && scene.fresh != nullptr &&
                       scene.done != nullptr && scene.capturing != nullptr;
    if (!whole) {  // the call destroyed one of them
      scene.close();
      scene.open(CU_STREAM_NON_BLOCKING);
    }
    if (page.ready == 0 && page.calls[kRuns] > 0) page.ready = 1;
  }
  if (page.ready == 0) {
    page.ready = 2;
    return 1;
  }
  page.done = cuCtxSynchronize() == CUDA_SUCCESS && pattern.is_right() ? 1 : 2;
  return 0;
}

}  // namespace parks
