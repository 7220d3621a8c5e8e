#include "core/gpu.h"

namespace gpurota {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::array<std::uint8_t, 16>> uuid_bytes(const GpuUuid& uuid) {
  std::string_view text = uuid.value;
  if (!text.starts_with("GPU-") && !text.starts_with("MIG-")) return std::nullopt;
  text.remove_prefix(4);
  std::array<std::uint8_t, 16> bytes{};
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const int value = hex_digit(c);
    if (value < 0 || digits == 2 * bytes.size()) return std::nullopt;
    bytes[digits / 2] = static_cast<std::uint8_t>(bytes[digits / 2] << 4 | value);
    ++digits;
  }
  if (digits != 2 * bytes.size()) return std::nullopt;
  return bytes;
}

std::optional<Bytes> memory_in_use(const GpuInfo& gpu, const GpuSample& sample) {
  if (sample.used || !gpu.unified || !sample.machine_available) return sample.used;
  return gpu.memory - *sample.machine_available;
}

}  // namespace gpurota
