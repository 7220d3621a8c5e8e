#include "lease/gpu_selector.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace gpurota::lease {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [&](char x, char y) { return lower(x) == lower(y); });
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

// "1:00.0", "0000:01:00.0" and "00000000:01:00.0" are the same slot: the domain may be short.
bool same_pci_address(std::string_view wanted, std::string_view pci) {
  if (wanted.find('.') == std::string_view::npos || wanted.find(':') == std::string_view::npos) {
    return false;
  }
  while (wanted.size() < pci.size() && !pci.empty() && (pci.front() == '0' || pci.front() == ':')) {
    pci.remove_prefix(1);
  }
  return equal_ignoring_case(wanted, pci);
}

std::string list_of(const std::vector<GpuInfo>& gpus) {
  if (gpus.empty()) return "this machine has no GPU that gpurota can see";
  std::string text = "GPUs here: ";
  for (std::size_t i = 0; i < gpus.size() && i < 16; ++i) {
    text += fmt::format("{}{} ({})", i ? ", " : "", name_of(gpus[i], gpus), gpus[i].uuid.value);
  }
  return text;
}

// A range of indices: "0-3". The parts of a UUID are longer than those of a range.
struct Range {
  int first = 0, last = 0;
};
std::optional<Range> range_of(std::string_view text) {
  constexpr std::size_t kDigits = 3;
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<int> {
    int value = 0;
    const char* const end = digits.data() + digits.size();
    const bool all =
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (digits.empty() || digits.size() > kDigits || !all) return std::nullopt;
    (void)std::from_chars(digits.data(), end, value);
    return value;
  };
  const auto first = number(text.substr(0, dash)), last = number(text.substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return Range{*first, *last};
}

}  // namespace

std::string name_of(const GpuInfo& gpu, const GpuInfo* parent) {
  if (gpu.parent.value.empty()) return std::to_string(gpu.index);
  return parent ? fmt::format("{}:{}", parent->index, gpu.index) : gpu.uuid.value;
}

std::string name_of(const GpuInfo& gpu, const std::vector<GpuInfo>& gpus) {
  const auto parent = std::find_if(gpus.begin(), gpus.end(),
                                   [&](const GpuInfo& g) { return g.uuid == gpu.parent; });
  return name_of(gpu, parent == gpus.end() ? nullptr : &*parent);
}

Result<GpuUuid> select_gpu(std::string_view text, const std::vector<GpuInfo>& gpus) {
  int index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool is_index = error == std::errc() && end == text.data() + text.size();

  std::vector<const GpuInfo*> found;
  for (const GpuInfo& gpu : gpus) {
    const std::string_view uuid = gpu.uuid.value;
    if (equal_ignoring_case(uuid, text)) return gpu.uuid;
    if (!gpu.parent.value.empty() && text == name_of(gpu, gpus)) return gpu.uuid;
    const bool named =
        is_index ? gpu.index == index && gpu.parent.value.empty()
                 : same_pci_address(text, gpu.pci) ||
                       (!text.empty() &&
                        (starts_with_ignoring_case(uuid, text) ||
                         (uuid.size() > 4 && starts_with_ignoring_case(uuid.substr(4), text))));
    if (named) found.push_back(&gpu);
  }
  // A PCI address or an index means the card; its MIG instances have names of their own.
  if (found.size() > 1) {
    std::erase_if(found, [](const GpuInfo* gpu) { return !gpu->parent.value.empty(); });
  }
  if (found.size() == 1) return found.front()->uuid;
  const std::string shown = display_text(text, 60);
  if (found.empty()) {
    return fail(Code::kInvalid, fmt::format("there is no GPU \"{}\": {}", shown, list_of(gpus)));
  }
  return fail(Code::kInvalid, fmt::format("\"{}\" matches {} GPUs, write more of the UUID: {}",
                                          shown, found.size(), list_of(gpus)));
}

Result<std::vector<GpuUuid>> select_gpus(const std::vector<std::string>& names,
                                         const std::vector<GpuInfo>& gpus) {
  if (names.empty()) return fail(Code::kInvalid, "no GPU is named");
  std::vector<GpuUuid> chosen;
  const auto add = [&](const GpuUuid& uuid) {
    if (std::find(chosen.begin(), chosen.end(), uuid) == chosen.end()) chosen.push_back(uuid);
  };
  for (const std::string& name : names) {
    if (const auto range = range_of(name)) {
      if (range->first > range->last) {
        return fail(Code::kInvalid, fmt::format("\"{0}\" is not a range of GPUs: write {2}-{1}",
                                                name, range->first, range->last));
      }
      for (int index = range->first; index <= range->last; ++index) {
        GPUROTA_ASSIGN_OR_RETURN(const GpuUuid uuid, select_gpu(std::to_string(index), gpus));
        add(uuid);
      }
      continue;
    }
    if (name != "all") {
      GPUROTA_ASSIGN_OR_RETURN(const GpuUuid uuid, select_gpu(name, gpus));
      add(uuid);
      continue;
    }
    for (const GpuInfo& gpu : gpus) {
      if (!gpu.mig_enabled) add(gpu.uuid);
    }
  }
  if (chosen.empty()) return fail(Code::kInvalid, list_of(gpus));
  return chosen;
}

}  // namespace gpurota::lease
