// A CUDA program that resembles an inference server: most of its memory never changes, some changes
// constantly, and occasionally one byte of the first part changes. The program knows the expected
// content, and checks all of it at the end.
#include "tests/interposer/swap_probe.h"

#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kWeights = 90 * kMiB, kActivations = 6 * kMiB;

class Server {
 public:
  bool load() {
    for (unsigned char& byte : weights_) byte = static_cast<unsigned char>(random_());
    return OK(cuMemAlloc_v2(&at_, kWeights)) && OK(cuMemAlloc_v2(&activations_, kActivations)) &&
           OK(cuMemcpyHtoD_v2(at_, weights_.data(), kWeights));
  }

  bool serve_one(bool changes) {
    if (!OK(cuMemsetD32_v2(activations_, static_cast<unsigned>(random_()), kActivations / 4)))
      return false;
    if (changes) {
      const std::size_t at = random_() % kWeights;
      weights_[at] = static_cast<unsigned char>(weights_[at] ^ 1 << random_() % 8);
      if (!OK(cuMemsetD8_v2(at_ + at, weights_[at], 1))) return false;
    }
    return check(random_() % (kWeights - 4096), 4096);
  }

  bool check(std::size_t offset, std::size_t size) {
    std::vector<unsigned char> read(size);
    if (!OK(cuMemcpyDtoH_v2(read.data(), at_ + offset, size))) return false;
    if (std::memcmp(read.data(), weights_.data() + offset, size) == 0) return true;
    std::printf("line %d: wrong bytes\n", __LINE__);
    g_wrong = true;
    return false;
  }

  bool unload() {
    return check(0, kWeights) && OK(cuMemFree_v2(at_)) && OK(cuMemFree_v2(activations_));
  }

 private:
  std::mt19937 random_{7};
  std::vector<unsigned char> weights_ = std::vector<unsigned char>(kWeights);
  CUdeviceptr at_ = 0, activations_ = 0;
};

}  // namespace

// usage: swap_server CHANGES: one weight changes every CHANGES requests; 0: none ever changes
int main(int argc, char** argv) {
  const int changes = argc > 1 ? std::stoi(argv[1]) : 0;
  if (!load_driver() || !OK(cuInit(0))) return 2;
  {
    const WithContext with;
    Server server;
    if (with.context() == nullptr || !server.load()) return 1;
    say("serving");
    for (int i = 1; !told_to_go_on() && !g_wrong; ++i) {
      server.serve_one(changes != 0 && i % changes == 0);
    }
    if (g_wrong || !server.unload()) return 1;
  }
  say("done");
  return 0;
}
