#include "kube/machine.h"

#include "abi/env.h"
#include "base/fd.h"
#include "base/read_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fcntl.h>

namespace gpurota::kube {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEnvironment = std::size_t{4} << 20;

std::string read_file(const std::string& path, std::size_t most) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return {};
  return read_all(file.get(), most).value_or(std::string());
}

std::string_view token_in(std::string_view environment) {
  constexpr std::string_view kName = GPUROTA_ENV_TOKEN "=";
  while (!environment.empty()) {
    const std::size_t end = std::min(environment.find('\0'), environment.size());
    const std::string_view entry = environment.substr(0, end);
    if (entry.starts_with(kName)) return entry.substr(kName.size());
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return {};
}

// Whether `error` is a shortage of this process, and not about the process it reads.
bool is_short_of_something(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

// Whether `name` has the form "pci0000:00" (the kernel's drivers/pci/probe.c).
bool is_pci_root(const std::string& name) {
  return name.starts_with("pci") && name.find(':') != std::string::npos;
}

}  // namespace

PciPlace read_pci_place(const std::string& pci, const std::string& host_root) {
  // The driver writes eight digits of the domain; the kernel writes four, in small letters.
  PciPlace place;
  if (pci.empty()) return place;
  std::string& address = place.address = pci;
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::size_t kDomain = 8;
  if (address.find(':') == kDomain && address.starts_with("0000")) address.erase(0, kDomain / 2);
  const std::string device = fmt::format("{}/sys/bus/pci/devices/{}", host_root, address);
  const std::string text = read_file(device + "/numa_node", 32);
  int node = -1;
  std::from_chars(text.data(), text.data() + text.size(), node);
  if (node >= 0) place.numa = node;
  // A link such as ../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0.
  std::error_code error;
  for (const fs::path& part : fs::read_symlink(device, error)) {
    if (place.root.empty() && is_pci_root(part.string())) place.root = part.string();
  }
  return place;
}

Result<std::set<std::string>> read_living_tokens(const std::set<std::string>& tokens,
                                                 const std::string& proc) {
  std::set<std::string> living;
  std::error_code error;
  fs::directory_iterator at(proc, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    errno = 0;
    const std::string text = read_file(at->path().string() + "/environ", kMostEnvironment);
    if (text.empty() && is_short_of_something(errno)) {
      return fail_errno("cannot read the processes of this machine", errno);
    }
    const auto found = tokens.find(std::string(token_in(text)));
    if (found != tokens.end()) living.insert(*found);
  }
  if (!error) return living;
  return fail_errno("cannot read the processes of this machine", error.value());
}

}  // namespace gpurota::kube
