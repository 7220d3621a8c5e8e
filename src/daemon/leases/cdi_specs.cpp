#include "daemon/leases/cdi_specs.h"

#include "abi/env.h"
#include "base/log.h"
#include "containers/parts.h"
#include "daemon/leases/container_folder.h"
#include "daemon/leases/lease_environment.h"
#include "sys/device_files.h"
#include "sys/spec_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

constexpr std::chrono::milliseconds kFirstScanPatience{5000};
// The prefix of all our files. Vendor and class come first, as the specification says.
constexpr const char* kPrefix = "gpurota.dev-";

constexpr const char* kAnyFile = "gpurota.dev-gpu.json";

std::string file_of(LeaseId lease) {
  return fmt::format("{}lease_{}.json", kPrefix, to_string(lease));
}

// Whether the user's name is a number other than the user's own uid. Such a name could be confused
// with the user who has that uid.
bool is_others_number(const std::string& user, uid_t uid) {
  return user.find_first_not_of("0123456789") == user.npos && user != std::to_string(uid);
}

std::vector<std::string> names_of(const Lease& lease, const std::string& user) {
  std::vector<std::string> names = {to_string(lease.id)};
  if (lease.name.empty() || is_others_number(user, lease.uid)) return names;
  std::string name = containers::own_cdi_name(user, lease.name);
  if (containers::is_cdi_name(name)) names.push_back(std::move(name));
  return names;
}

std::vector<GpuUuid> gpus_of(const Lease& lease) {
  std::vector<GpuUuid> gpus;
  for (const LeaseGpu& gpu : lease.gpus) gpus.push_back(gpu.uuid);
  return gpus;
}

}  // namespace

CdiSpecs::Facts CdiSpecs::read_facts(const std::string& root) {
  return {containers::read_driver_files(root, {}),
          access::parse_mig_minors(sys::read_mig_minors(root))};
}

void CdiSpecs::start() {
  // Also removes the files of an earlier daemon that had CDI on: no token may be left in a file.
  if (!parts_.root) return refresh();
  enter(parts_.config.containers.cdi_folder);
  if (folder_.empty()) return;
  if (!parts_.config.containers.cdi) return leave();
  scan(true);
}

void CdiSpecs::refresh() {
  const config::Containers& wanted = parts_.config.containers;
  if (!folder_.empty() && (!wanted.cdi || folder_ != wanted.cdi_folder)) leave();
  if (!wanted.cdi) return trouble_.clear();
  if (!parts_.root) return note("gpurotad is not root's");
  if (folder_.empty()) enter(wanted.cdi_folder);
  if (!folder_.empty()) scan(false);
}

// Takes over our files in the folder. Files that differ from what we would write are rewritten or
// removed later.
void CdiSpecs::enter(const std::string& folder) {
  const bool wanted = parts_.config.containers.cdi;
  if (const auto made = wanted ? sys::make_spec_folder(folder) : Result<void>(); !made) {
    return note(made.error().message);
  }
  auto specs = sys::read_specs(folder, kPrefix);
  if (!specs) return note(specs.error().message);
  folder_ = folder;
  const std::string mark = fmt::format("\"{}\"", container_folder(parts_.tenant_socket));
  // Files of another daemon, with a runtime directory of its own, stay.
  std::erase_if(*specs,
                [&](const auto& spec) { return spec.second.find(mark) == spec.second.npos; });
  written_ = std::move(*specs);
}

void CdiSpecs::leave() {
  trouble_.clear();
  while (!written_.empty()) remove(written_.begin()->first);
  folder_.clear();
  timer_.reset();
}

void CdiSpecs::scan(bool wait) {
  if (scanning_) return;
  scanning_ = true;
  if (!worker_) worker_ = std::make_unique<sys::Worker>(parts_.loop, "cdi");
  const auto job = [root = parts_.driver_root] { return read_facts(root); };
  const auto done = [this](Facts facts) {
    scanning_ = false;
    facts_ = std::move(facts);
    if (folder_.empty()) return;
    write_all();
    schedule();
  };
  if (!wait) {
    worker_->run(job, done);
  } else if (!worker_->run_and_wait(kFirstScanPatience, job, done)) {
    log::warn("the driver's files do not answer, container engines hear of leases when they do");
  }
}

void CdiSpecs::schedule() {
  timer_ = parts_.loop.add_timer(parts_.loop.now() + kPeriod, ports::Urgency::kHousekeeping,
                                 [this] { scan(false); });
}

void CdiSpecs::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (folder_.empty() || !parts_.config.containers.cdi) return;
  const std::string name = file_of(entry.lease.id);
  if (!gone && has_device(entry)) {
    write(name, lease_spec(entry));
  } else {
    remove(name);
  }
}

// An ending lease has no device, because a container that joined the lease now would end with it.
bool CdiSpecs::has_device(const LeaseEntry& entry) const {
  return entry.lease.kind == LeaseKind::kReservation && !entry.cause;
}

void CdiSpecs::write_all() {
  if (const auto made = sys::make_spec_folder(folder_); !made) return note(made.error().message);
  trouble_.clear();
  std::map<std::string, Spec> wanted;
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (has_device(entry)) wanted.emplace(file_of(id), lease_spec(entry));
  }
  if (parts_.config.automatic.enabled) wanted.emplace(kAnyFile, any_spec());
  std::vector<std::string> stale;
  for (const auto& [name, text] : written_) {
    if (!wanted.contains(name)) stale.push_back(name);
  }
  for (const std::string& name : stale) remove(name);
  for (const auto& [name, spec] : wanted) write(name, spec);
}

void CdiSpecs::write(const std::string& name, const Spec& spec) {
  const auto before = written_.find(name);
  if (before != written_.end() && before->second == spec.text) return;
  const auto done = sys::write_spec(folder_ + "/" + name, spec.text, spec.reader);
  if (!done) return note(done.error().message);
  written_[name] = spec.text;
}

void CdiSpecs::remove(std::string name) {  // NOLINT(performance-unnecessary-value-param)
  if (written_.erase(name) == 0) return;
  const std::string path = folder_ + "/" + name;
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return;
  note(fmt::format("cannot remove {}: {}", path, std::strerror(errno)));
}

void CdiSpecs::note(const std::string& trouble) {
  if (trouble_ != trouble) log::error(trouble + ", so container engines do not hear of all leases");
  trouble_ = trouble;
}

CdiSpecs::Spec CdiSpecs::lease_spec(const LeaseEntry& entry) const {
  const std::vector<GpuUuid> gpus = gpus_of(entry.lease);
  containers::CdiEdits edits = edits_for({gpus.begin(), gpus.end()});
  for (auto& [name, value] : lease_environment(entry, parts_.gpus, parts_.tenant_socket, true)) {
    const bool counts = name == "CUDA_VISIBLE_DEVICES" && !edits.devices.empty();
    edits.variables.emplace_back(name, counts ? containers::count_gpus(gpus) : value);
  }
  const std::string user = parts_.processes.user_name(entry.lease.uid);
  return {containers::cdi_text(containers::kCdiLease, names_of(entry.lease, user), edits),
          entry.lease.uid};
}

// A container with this device can open all GPUs, because the GPUs of its lease are not known yet.
// The library shows the container only the GPUs of its lease.
CdiSpecs::Spec CdiSpecs::any_spec() const {
  std::set<GpuUuid> gpus;
  for (const GpuInfo& gpu : parts_.gpus.infos()) gpus.insert(gpu.uuid);
  containers::CdiEdits edits = edits_for(gpus);
  edits.variables = {{GPUROTA_ENV_CONTAINER, "1"},
                     {GPUROTA_ENV_RUNTIME_DIR, container_folder(parts_.tenant_socket)}};
  return {containers::cdi_text(containers::kCdiGpu, {std::string(containers::kCdiAny)}, edits), {}};
}

// Leaves out device files that do not exist, because an engine refuses a container with such a
// file. The check does not block, as /dev is in memory.
containers::CdiEdits CdiSpecs::edits_for(const std::set<GpuUuid>& gpus) const {
  containers::CdiEdits edits;
  const std::string folder = container_folder(parts_.tenant_socket);
  if (parts_.library.empty()) {
    edits.mounts.push_back({folder, folder});
  } else {
    edits.mounts = containers::library_mounts(folder, parts_.library, true);
  }
  // If NVIDIA's toolkit describes the driver, leave out the driver's files: they come with the
  // toolkit's own device, `--device nvidia.com/gpu=N`, which is used beside ours.
  if (!facts_.driver.described) {
    for (auto& mount : containers::driver_mounts(facts_.driver)) edits.mounts.push_back(mount);
  }
  std::vector<std::string> devices = facts_.driver.devices;
  for (const std::string& name : access::files_of(parts_.gpus.infos(), gpus, facts_.minors)) {
    devices.push_back("/dev/" + name);
  }
  for (const std::string& device : devices) {
    const std::string here = parts_.driver_root + device;
    if (::access(here.c_str(), F_OK) == 0) edits.devices.push_back({here, device});
  }
  return edits;
}

std::string CdiSpecs::device_of(LeaseId lease) const {
  if (!written_.contains(file_of(lease))) return {};
  return fmt::format("{}={}", containers::kCdiLease, to_string(lease));
}

std::string CdiSpecs::describe() const {
  if (folder_.empty()) return {};
  return fmt::format("container engines find {} device{} in {}", written_.size(),
                     written_.size() == 1 ? "" : "s", folder_);
}

}  // namespace gpurota::daemon
