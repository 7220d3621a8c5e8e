// Which kinds of GPU a request accepts. Pure.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "core/gpu.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota {

struct GpuWishes {
  std::string type;              // words of the model's name: "h100", "a100 40gb"; empty: any
  Bytes min_memory;              // size of the GPU; zero: any
  int min_cc = 0;                // compute capability, 10 * major + minor: 80; zero: any
  std::vector<GpuUuid> near;     // GPUs; the possible GPUs closest to these are chosen
  std::string gpu_class{};       // the site's name for `among`; empty: none
  std::vector<GpuUuid> among{};  // only these; empty: any

  // Whether a GPU of any kind is possible.
  bool any_kind() const {
    return type.empty() && min_memory.is_zero() && min_cc == 0 && among.empty();
  }
  bool operator==(const GpuWishes&) const = default;
};

// Whether each word of `type` is a word of the model's name, in the same order, ignoring case:
// "a10" does not match "NVIDIA A100".
bool is_of_type(std::string_view type, std::string_view model);
bool is_of_kind(const GpuWishes& wishes, const GpuInfo& gpu);
// "h100 with at least 40 GiB": for refusals. Empty: any kind.
std::string kind_text(const GpuWishes& wishes);

}  // namespace gpurota
