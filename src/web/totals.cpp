#include "web/totals.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <set>

namespace gpurota::web {
namespace {

constexpr std::int64_t kMostCount = 1'000'000;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 56;

std::int64_t& count_of(Totals& totals, const proto::Gpu& gpu) {
  switch (gpu.state) {
    case proto::GpuState::kAvailable:
      return totals.free;
    case proto::GpuState::kDraining:
    case proto::GpuState::kError:
      return totals.unavailable;
    case proto::GpuState::kHeld:
      return totals.full;
    default: {
      const auto room = std::max(gpu.available_bytes.value_or(Bytes()),
                                 gpu.swap_available_bytes.value_or(Bytes()));
      return room.is_zero() ? totals.full : totals.shared;
    }
  }
}

void count_model(Totals& totals, const proto::Gpu& gpu) {
  auto found = std::find_if(totals.models.begin(), totals.models.end(),
                            [&](const Totals::Model& model) { return model.name == gpu.name; });
  if (found == totals.models.end()) {
    if (totals.models.size() >= Totals::kMostModels) return;
    found = totals.models.insert(found, {.name = gpu.name});
  }
  found->gpus += 1;
  if (gpu.state == proto::GpuState::kAvailable) found->free += 1;
}

std::vector<std::string> users_of(const Snapshot& snapshot) {
  std::set<std::string> users;
  for (const proto::Lease& lease : snapshot.status.leases) users.insert(lease.user);
  for (const proto::Request& request : snapshot.queue.requests) users.insert(request.user);
  std::vector<std::string> shown(users.begin(), users.end());
  shown.resize(std::min(shown.size(), Totals::kMostUsers));
  return shown;
}

using Document = nlohmann::json;

tl::unexpected<Error> malformed(const std::string& what) {
  return fail(Code::kInvalid, "its answer is malformed: " + what);
}

Result<std::int64_t> read_count(const Document& from, const char* name, std::int64_t most) {
  const auto found = from.find(name);
  if (found == from.end() || !found->is_number_integer()) {
    return malformed(std::string("'") + name + "' is not a number");
  }
  // A number above the range of int64_t becomes negative here.
  const auto value = found->get<std::int64_t>();
  if (value < 0 || value > most) return malformed(std::string("'") + name + "' cannot be so");
  return value;
}

Result<std::string> read_text(const Document& from, const char* name) {
  const auto found = from.find(name);
  if (found == from.end() || !found->is_string()) {
    return malformed(std::string("'") + name + "' is not text");
  }
  return found->get<std::string>();
}

// Reads at most as many as allowed; the rest is dropped.
template <class Take>
Result<void> read_array(const Document& from, const char* name, std::size_t most, Take take) {
  if (!from.is_array()) return malformed(std::string("'") + name + "' is not a list");
  for (std::size_t i = 0; i < std::min(from.size(), most); ++i) GPUROTA_TRY(take(from[i]));
  return {};
}

Result<void> read_users(const Document& from, Totals& totals) {
  const auto found = from.find("users");
  if (found == from.end() || found->is_null()) return {};
  auto& users = totals.users.emplace();
  return read_array(*found, "users", Totals::kMostUsers, [&](const Document& user) -> Result<void> {
    if (!user.is_string()) return malformed("'users' has what is not text");
    users.push_back(user.get<std::string>());
    return {};
  });
}

Result<void> read_models(const Document& from, Totals& totals) {
  const auto found = from.find("models");
  if (found == from.end()) return malformed("'models' is not a list");
  return read_array(*found, "models", Totals::kMostModels,
                    [&](const Document& each) -> Result<void> {
                      if (!each.is_object()) return malformed("'models' has what is not an object");
                      Totals::Model model;
                      GPUROTA_ASSIGN_OR_RETURN(model.name, read_text(each, "name"));
                      GPUROTA_ASSIGN_OR_RETURN(model.gpus, read_count(each, "gpus", totals.gpus));
                      GPUROTA_ASSIGN_OR_RETURN(model.free, read_count(each, "free", model.gpus));
                      totals.models.push_back(std::move(model));
                      return {};
                    });
}

struct Counted {
  const char* name;
  std::int64_t Totals::*count;
};
constexpr Counted kCounts[] = {{"gpus", &Totals::gpus},
                               {"free", &Totals::free},
                               {"shared", &Totals::shared},
                               {"full", &Totals::full},
                               {"unavailable", &Totals::unavailable},
                               {"leases", &Totals::leases},
                               {"waiting", &Totals::waiting}};
struct Amount {
  const char* name;
  Bytes Totals::*bytes;
};
constexpr Amount kAmounts[] = {{"memory_bytes", &Totals::memory},
                               {"used_bytes", &Totals::used},
                               {"available_bytes", &Totals::available}};

Result<void> read_figures(const Document& from, Totals& totals) {
  for (const Counted& each : kCounts) {
    GPUROTA_ASSIGN_OR_RETURN(totals.*each.count, read_count(from, each.name, kMostCount));
  }
  for (const Amount& each : kAmounts) {
    GPUROTA_ASSIGN_OR_RETURN(const auto bytes, read_count(from, each.name, kMostMemory));
    totals.*each.bytes = Bytes(static_cast<std::uint64_t>(bytes));
  }
  if (totals.free + totals.shared + totals.full + totals.unavailable != totals.gpus) {
    return malformed("its GPUs do not add up");
  }
  const auto load = from.find("utilisation_percent");
  if (load != from.end() && !load->is_null()) {
    GPUROTA_ASSIGN_OR_RETURN(totals.utilisation_percent,
                             read_count(from, "utilisation_percent", 100));
  }
  return {};
}

}  // namespace

Totals totals_of(const std::optional<Snapshot>& snapshot, bool names) {
  Totals totals;
  if (!snapshot) return totals;
  totals.daemon_up = true;
  totals.version = snapshot->info.version;
  std::int64_t load = 0, loaded = 0;
  for (const proto::Gpu& gpu : snapshot->status.gpus) {
    if (gpu.utilisation_percent) {
      load += *gpu.utilisation_percent;
      loaded += 1;
    }
    if (gpu.state == proto::GpuState::kSplit) continue;
    totals.gpus += 1;
    count_of(totals, gpu) += 1;
    count_model(totals, gpu);
    totals.memory += gpu.memory_bytes;
    totals.used += gpu.used_bytes.value_or(Bytes());
    totals.available += gpu.available_bytes.value_or(Bytes());
  }
  if (loaded > 0) totals.utilisation_percent = std::clamp<std::int64_t>(load / loaded, 0, 100);
  totals.leases = static_cast<std::int64_t>(snapshot->status.leases.size());
  totals.waiting = static_cast<std::int64_t>(snapshot->queue.requests.size());
  if (names) totals.users = users_of(*snapshot);
  return totals;
}

void add_totals(JsonObject& to, const Totals& totals) {
  to.add("version", totals.version).add("daemon_up", totals.daemon_up);
  for (const Counted& each : kCounts) to.add(each.name, totals.*each.count);
  for (const Amount& each : kAmounts) to.add(each.name, totals.*each.bytes);
  to.add("utilisation_percent", totals.utilisation_percent)
      .add("models", json_array(totals.models, [](const Totals::Model& model) {
             return JsonObject()
                 .add("name", model.name)
                 .add("gpus", model.gpus)
                 .add("free", model.free)
                 .take();
           }));
  if (totals.users) {
    to.add("users", json_array(*totals.users, [](const std::string& user) { return user; }));
  }
}

std::string totals_json(const Totals& totals) {
  JsonObject object;
  add_totals(object, totals);
  return object.take().text;
}

Result<Totals> parse_totals(std::string_view text) {
  if (text.size() > Totals::kMostBytes) return malformed("it is too long");
  const Document from = Document::parse(text, nullptr, false);
  if (!from.is_object()) return malformed("it is not a JSON object");
  Totals totals;
  const auto up = from.find("daemon_up");
  if (up == from.end() || !up->is_boolean()) return malformed("'daemon_up' is not a boolean");
  totals.daemon_up = up->get<bool>();
  GPUROTA_ASSIGN_OR_RETURN(totals.version, read_text(from, "version"));
  GPUROTA_TRY(read_figures(from, totals));
  GPUROTA_TRY(read_models(from, totals));
  GPUROTA_TRY(read_users(from, totals));
  return totals;
}

}  // namespace gpurota::web
