#include "kube/dra/claim_terms.h"

#include "base/text.h"
#include "kube/api/json_internal.h"
#include "kube/dra/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>

namespace gpurota::kube {
namespace {

using std::chrono::milliseconds;

constexpr const char* kConfigVersion = "gpurota.dev/v1";
constexpr const char* kConfigKind = "LeaseConfig";
constexpr int kMostPriority = 100;
// The maximum for users of `gpurota run` too; classes may allow more, up to what the daemon
// accepts.
constexpr milliseconds kUsualQuantum = std::chrono::minutes(5);
constexpr milliseconds kMostQuantum = std::chrono::hours(1);

// The terms read so far, and the limits for the claim's own configurations.
struct Said {
  RequestTerms so;
  std::optional<int> most_priority;
  milliseconds most_quantum = kUsualQuantum;
  int most_compute = kMostComputeShare;
  bool claims_compute = false;  // the share is the claim's own
};

tl::unexpected<Error> wrong(const ClaimConfig& config, const std::string& key,
                            const std::string& what) {
  return fail(Code::kInvalid, fmt::format("the configuration of the {} is wrong: {} {}",
                                          config.from_class ? "device class" : "claim",
                                          display_text(key, 60), what));
}

Result<int> priority_in(const ClaimConfig& config, const std::string& key, const Json& value) {
  // A value above the range of int64_t is stored unsigned, and would change when read as int64_t.
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.get<std::uint64_t>() > kMostPriority);
  const auto priority = fits ? value.get<std::int64_t>() : INT64_MAX;
  if (priority >= -kMostPriority && priority <= kMostPriority) return static_cast<int>(priority);
  return wrong(config, key, "is not a number from -100 to 100");
}

// Parses "500ms", "5s" or "2m"; zero for "auto".
Result<milliseconds> quantum_in(const ClaimConfig& config, const std::string& key,
                                const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : std::string();
  if (text == "auto") return milliseconds(0);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr int kMostNumber = 3600000;
  const int factor = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60000 : 0;
  const bool good = error == std::errc() && number > 0 && number <= kMostNumber && factor > 0;
  if (good && milliseconds(std::int64_t{number} * factor) <= kMostQuantum) {
    return milliseconds(std::int64_t{number} * factor);
  }
  return wrong(config, key, "is not the length of a turn: write 500ms, 5s, 2m (up to 60m) or auto");
}

std::string quantum_text(milliseconds quantum) {
  return quantum.count() == 0 ? "auto" : fmt::format("{}ms", quantum.count());
}

Result<void> take_share(const ClaimConfig& config, const Json& value, Said& said) {
  const std::string word = value.is_string() ? value.get<std::string>() : std::string();
  const auto share = word == "whole"    ? std::optional(Resource::kGpu)
                     : word == "memory" ? std::optional(Resource::kMemory)
                     : word == "turns"  ? std::optional(Resource::kTurn)
                                        : std::nullopt;
  if (!share) return wrong(config, "share", "is not whole, memory or turns");
  said.so.share = share;
  return {};
}

Result<void> take_soft_limit(const ClaimConfig& config, const Json& value, Said& said) {
  const auto amount = parse_quantity(value.is_string() ? value.get<std::string>() : std::string());
  if (!amount || amount->is_zero()) {
    return wrong(config, "softLimit", "is not an amount of memory: write 8Gi");
  }
  // A claim may lower the limit of its class, and never raises it.
  std::optional<Bytes>& limit = said.so.terms.soft_limit;
  limit = config.from_class || !limit ? *amount : std::min(*limit, *amount);
  return {};
}

Result<void> take_priority(const ClaimConfig& config, const Json& value, Said& said) {
  GPUROTA_ASSIGN_OR_RETURN(const int priority, priority_in(config, "priority", value));
  const int most = said.most_priority.value_or(std::max(said.so.terms.priority.value_or(0), 0));
  if (!config.from_class && priority > most) {
    return wrong(config, "priority",
                 fmt::format("{} is above {}, which its device class allows", priority, most));
  }
  said.so.terms.priority = priority;
  return {};
}

Result<void> take_quantum(const ClaimConfig& config, const Json& value, Said& said) {
  GPUROTA_ASSIGN_OR_RETURN(const milliseconds quantum, quantum_in(config, "quantum", value));
  if (!config.from_class && quantum > said.most_quantum) {
    return wrong(config, "quantum",
                 fmt::format("{} is above {}, which its device class allows", quantum_text(quantum),
                             quantum_text(said.most_quantum)));
  }
  said.so.terms.quantum = quantum_text(quantum);
  return {};
}

std::string text_in(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

Result<void> take_compute(const ClaimConfig& config, const Json& value, Said& said) {
  const auto percent = parse_compute_share(text_in(value));
  if (!percent) return wrong(config, "compute", "is not a share from \"1%\" to \"95%\"");
  if (!config.from_class && *percent > said.most_compute) {
    return wrong(config, "compute",
                 fmt::format("{}% is above {}%, which its device class allows", *percent,
                             said.most_compute));
  }
  said.so.terms.compute.least = *percent;
  said.claims_compute = !config.from_class;
  return {};
}

// A claim may lower the bound of its class, and never raises it.
Result<void> take_compute_max(const ClaimConfig& config, const Json& value, Said& said) {
  const auto written = parse_compute_bound(text_in(value));
  if (!written) {
    return wrong(config, "computeMax", "is not a bound from \"1%\" to \"99%\", or \"100%\"");
  }
  int& most = said.so.terms.compute.most;
  const int bound = compute_bound(*written);
  const bool replaces = config.from_class || most == 0 || (bound != 0 && bound < most);
  if (replaces) most = bound;
  return {};
}

Result<void> take_lease_per(const ClaimConfig& config, const Json& value, Said& said) {
  const std::string word = value.is_string() ? value.get<std::string>() : std::string();
  if (word != "claim" && word != "request") {
    return wrong(config, "leasePer", "is neither claim nor request");
  }
  said.so.terms.lease_per_request = word == "request";
  return {};
}

Result<void> take_class_key(const ClaimConfig& config, const std::string& key, const Json& value,
                            Said& said) {
  if (key == "share") return take_share(config, value, said);
  if (key == "maxPriority") {
    GPUROTA_ASSIGN_OR_RETURN(said.most_priority, priority_in(config, key, value));
    return {};
  }
  if (key == "maxQuantum") {
    GPUROTA_ASSIGN_OR_RETURN(said.most_quantum, quantum_in(config, key, value));
    return {};
  }
  if (key == "maxCompute") {
    const auto percent = parse_compute_share(text_in(value));
    if (!percent) return wrong(config, key, "is not a share from \"0%\" to \"95%\"");
    said.most_compute = *percent;
    return {};
  }
  if (!value.is_boolean()) return wrong(config, key, "is neither true nor false");
  said.so.terms.oversize = value.get<bool>();
  return {};
}

Result<void> take_config(const ClaimConfig& config, Said& said) {
  const Json parameters = parse_json(config.parameters);
  if (!parameters.is_object()) return wrong(config, "parameters", "is not an object");
  if (text_at(parameters, "apiVersion") != kConfigVersion) {
    return wrong(config, "apiVersion", fmt::format("is not {}", kConfigVersion));
  }
  if (text_at(parameters, "kind") != kConfigKind)
    return wrong(config, "kind", fmt::format("is not {}", kConfigKind));
  for (const auto& [key, value] : parameters.items()) {
    const bool for_class = key == "share" || key == "maxPriority" || key == "maxQuantum" ||
                           key == "maxCompute" || key == "oversize";
    if (key == "apiVersion" || key == "kind") continue;
    if (for_class && !config.from_class) {
      return wrong(config, key, "can only be said by the device class");
    }
    if (for_class) {
      GPUROTA_TRY(take_class_key(config, key, value, said));
    } else if (key == "softLimit") {
      GPUROTA_TRY(take_soft_limit(config, value, said));
    } else if (key == "priority") {
      GPUROTA_TRY(take_priority(config, value, said));
    } else if (key == "quantum") {
      GPUROTA_TRY(take_quantum(config, value, said));
    } else if (key == "compute") {
      GPUROTA_TRY(take_compute(config, value, said));
    } else if (key == "computeMax") {
      GPUROTA_TRY(take_compute_max(config, value, said));
    } else if (key == "leasePer") {
      GPUROTA_TRY(take_lease_per(config, value, said));
    } else {
      return wrong(config, key,
                   "is not known: write softLimit, priority, quantum, compute, computeMax or "
                   "leasePer, or for "
                   "a class share, maxPriority, maxQuantum, maxCompute or oversize");
    }
  }
  return {};
}

bool is_for(const ClaimConfig& config, const std::string& request) {
  if (config.requests.empty()) return true;
  const std::string main = main_request(request);
  return std::any_of(config.requests.begin(), config.requests.end(),
                     [&](const std::string& each) { return each == request || each == main; });
}

}  // namespace

Result<RequestTerms> terms_of(const std::vector<ClaimConfig>& configs, const std::string& request) {
  Said said;
  for (const bool from_class : {true, false}) {
    for (const ClaimConfig& config : configs) {
      if (config.from_class != from_class || !is_for(config, request)) continue;
      GPUROTA_TRY(take_config(config, said));
    }
  }
  // A claim's bound lowers the share that its class has for all claims.
  ComputeShare& compute = said.so.terms.compute;
  if (!said.claims_compute && compute.most != 0) {
    compute.least = std::min(compute.least, compute.most);
  }
  return said.so;
}

}  // namespace gpurota::kube
