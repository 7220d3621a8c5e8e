#include "cli/containers/container_text.h"

#include "abi/env.h"
#include "base/text.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace gpurota::cli {
namespace {

// Characters that shells, compose and readers of variable files take literally. Quotes are allowed
// for docker's --gpus: a shell does not interpret quotes that an unquoted $(…) writes.
constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=@%+-\"";

Result<void> check_plain(const std::string& text) {
  if (text.find_first_not_of(kPlain) == std::string::npos) return {};
  return fail(Code::kInvalid, fmt::format("'{}' cannot be written without quotes: choose a path "
                                          "of letters, digits and _ . , : = @ % + - only",
                                          display_text(text, 200)));
}

Result<std::string> yaml_list(const char* key, const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) {
    GPUROTA_TRY(check_plain(item));
    if (text.empty()) text = fmt::format("    {}:\n", key);
    text += fmt::format("      - '{}'\n", item);
  }
  return text;
}

}  // namespace

Result<std::string> env_file_text(const ContainerParts& parts) {
  std::string text;
  for (const proto::Variable& v : parts.variables) {
    GPUROTA_TRY(check_plain(v.value));
    text += fmt::format("{}={}\n", v.name, v.value);
  }
  if (!parts.token.empty()) text += fmt::format("{}={}\n", GPUROTA_ENV_TOKEN, parts.token);
  return text;
}

Result<std::string> options_text(Engine engine, const ContainerParts& parts,
                                 const std::string& env_file) {
  GPUROTA_TRY(check_plain(env_file));
  std::string text = "--env-file " + env_file;
  for (const std::string& word :
       engine == Engine::kCtr ? ctr_options(parts) : file_options(parts)) {
    GPUROTA_TRY(check_plain(word));
    text += " " + word;
  }
  return text + "\n";
}

Result<std::string> compose_text(const ContainerParts& parts, const std::string& env_file,
                                 const std::string& service) {
  GPUROTA_TRY(check_plain(service));
  std::vector<std::string> volumes;
  for (const Mount& mount : parts.mounts) {
    volumes.push_back(fmt::format("{}:{}:ro", mount.from, mount.to));
  }
  GPUROTA_ASSIGN_OR_RETURN(const std::string files, yaml_list("env_file", {env_file}));
  GPUROTA_ASSIGN_OR_RETURN(const std::string mounts, yaml_list("volumes", volumes));
  GPUROTA_ASSIGN_OR_RETURN(const std::string devices, yaml_list("devices", parts.devices));
  std::string text = fmt::format("services:\n  '{}':\n{}{}{}", service, files, mounts, devices);
  if (parts.unlabelled) text += fmt::format("    security_opt:\n      - '{}'\n", kNoLabel);
  if (parts.gpu_ids.empty()) return text;
  text += "    deploy:\n      resources:\n        reservations:\n          devices:\n";
  text +=
      "            - driver: nvidia\n              capabilities: [gpu]\n              "
      "device_ids:\n";
  for (const std::string& id : parts.gpu_ids) text += fmt::format("                - '{}'\n", id);
  return text;
}

}  // namespace gpurota::cli
