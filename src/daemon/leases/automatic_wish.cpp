#include "daemon/leases/automatic_wish.h"

#include "abi/env.h"
#include "base/text.h"
#include "daemon/leases/turn_wishes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace gpurota::daemon {
namespace {

template <std::size_t kSize>
std::string text_of(const char (&field)[kSize]) {
  return {field, ::strnlen(field, kSize)};
}

tl::unexpected<Error> not_like(const char* name, const std::string& value, const char* wanted) {
  return fail(Code::kInvalid,
              fmt::format("{}={}: write {}", name, display_text(value, 40), wanted));
}

std::optional<int> number_of(const std::string& text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

std::string size_text(const SizeSpec& size) {
  return size.percent != 0 ? fmt::format("{}%", size.percent) : to_string(size.bytes);
}

Result<void> take_memory(const std::string& asked, const config::Automatic& site,
                         const std::vector<GpuInfo>& gpus, AcquireRequest& request) {
  if (asked.empty()) return {};
  const auto size = parse_size_spec(asked);
  if (!size) return not_like(GPUROTA_ENV_MEMORY, asked, "a size such as 8G or 50%");
  const SizeSpec most = site.max_memory.value_or(site.memory);
  const bool within = std::all_of(gpus.begin(), gpus.end(), [&](const GpuInfo& gpu) {
    return size->of(gpu.memory) <= most.of(gpu.memory);
  });
  if (!within) {
    return fail(
        Code::kLimit,
        fmt::format("{}={} is more than the {} of a GPU that this machine gives to programs "
                    "that ask by themselves (automatic.max_memory)",
                    GPUROTA_ENV_MEMORY, display_text(asked, 40), size_text(most)));
  }
  request.placement.memory = *size;
  // The site's soft limit applies only to the site's size.
  request.placement.soft_limit.reset();
  return {};
}

Result<void> take_gpus(const std::string& asked, const config::Automatic& site,
                       AcquireRequest& request) {
  if (asked.empty()) return {};
  const auto count = number_of(asked);
  if (!count || *count < 1) return not_like(GPUROTA_ENV_GPUS, asked, "how many GPUs, such as 2");
  const int most = std::max(site.max_gpus, site.gpus);
  if (*count > most) {
    return fail(Code::kLimit,
                fmt::format("{}={}: this machine gives {} GPU{} at most to programs that ask by "
                            "themselves (automatic.max_gpus)",
                            GPUROTA_ENV_GPUS, *count, most, most == 1 ? "" : "s"));
  }
  request.placement.count = *count;
  return {};
}

Result<void> take_swap(const std::string& asked, const config::Automatic& site,
                       AcquireRequest& request) {
  if (asked.empty() || asked == "0") return {};
  if (asked != "1") return not_like(GPUROTA_ENV_SWAP, asked, "1 for turns, or 0");
  if (!site.swap) {
    return fail(Code::kLimit,
                fmt::format("{}=1: this machine gives no turns to programs that ask by themselves "
                            "(automatic.swap)",
                            GPUROTA_ENV_SWAP));
  }
  request.placement.swap = true;
  return {};
}

Result<void> take_priority(const std::string& asked, AcquireRequest& request) {
  if (asked.empty()) return {};
  // The same words as for `gpurota run --priority`.
  std::optional<int> said = number_of(asked);
  if (asked == "high") said = 10;
  if (asked == "normal") said = 0;
  if (asked == "low") said = -10;
  const auto priority = read_priority(said);
  if (!said || !priority) {
    return not_like(GPUROTA_ENV_PRIORITY, asked, "high, normal, low, or -100 to 100");
  }
  request.priority = *priority;
  return {};
}

}  // namespace

AutomaticWish read_wish(const gpurota_msg_automatic& question) {
  AutomaticWish wish;
  wish.container = (question.ask & GPUROTA_ASK_CONTAINER) != 0;
  wish.memory = text_of(question.memory);
  wish.gpus = text_of(question.gpus);
  wish.swap = text_of(question.swap);
  wish.priority = text_of(question.priority);
  return wish;
}

Result<void> take_wish(const AutomaticWish& wish, const config::Automatic& site,
                       const std::vector<GpuInfo>& gpus, AcquireRequest& request) {
  request.placement.count = site.gpus;
  request.placement.memory = site.memory;
  request.placement.soft_limit = site.soft_limit;
  GPUROTA_TRY(take_memory(wish.memory, site, gpus, request));
  GPUROTA_TRY(take_gpus(wish.gpus, site, request));
  GPUROTA_TRY(take_swap(wish.swap, site, request));
  return take_priority(wish.priority, request);
}

}  // namespace gpurota::daemon
