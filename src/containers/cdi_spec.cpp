#include "containers/cdi_spec.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace gpurota::containers {
namespace {

using nlohmann::json;

// The oldest version that has hostPath of a device node.
constexpr const char* kVersion = "0.5.0";

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

json json_of(const CdiEdits& edits) {
  json variables = json::array();
  for (const auto& [name, value] : edits.variables) variables.push_back(name + "=" + value);
  json mounts = json::array();
  for (const Mount& mount : edits.mounts) {
    mounts.push_back({{"hostPath", mount.from},
                      {"containerPath", mount.to},
                      {"options", {"ro", "nosuid", "nodev", "bind"}}});
  }
  json devices = json::array();
  for (const Mount& device : edits.devices) {
    devices.push_back({{"path", device.to}, {"hostPath", device.from}, {"permissions", "rw"}});
  }
  // The schema allows no empty lists.
  json whole = json::object();
  if (!variables.empty()) whole["env"] = std::move(variables);
  if (!mounts.empty()) whole["mounts"] = std::move(mounts);
  if (!devices.empty()) whole["deviceNodes"] = std::move(devices);
  return whole;
}

}  // namespace

bool is_cdi_name(std::string_view name) {
  constexpr std::string_view kInside = "._-:";
  return !name.empty() && is_letter_or_digit(name.front()) && is_letter_or_digit(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return is_letter_or_digit(c) || kInside.find(c) != std::string_view::npos;
         });
}

std::string own_cdi_name(std::string_view user, std::string_view lease) {
  std::string name;
  for (const char c : user) name.append(c == '.' ? 2 : 1, c);
  return name.append(1, '.').append(lease);
}

std::string cdi_text(std::string_view kind, const std::vector<std::string>& names,
                     const CdiEdits& edits) {
  const json given = json_of(edits);
  json devices = json::array();
  for (const std::string& name : names) {
    devices.push_back({{"name", name}, {"containerEdits", given}});
  }
  const json spec = {{"cdiVersion", kVersion}, {"kind", kind}, {"devices", std::move(devices)}};
  // Paths are untrusted bytes.
  return spec.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace gpurota::containers
