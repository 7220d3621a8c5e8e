#include "daemon/watch/strict_access.h"

#include "base/log.h"
#include "base/text.h"
#include "sys/device_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

// How long start() waits for the first scan. A later scan takes effect when it ends.
constexpr std::chrono::milliseconds kStartPatience{5000};
constexpr std::size_t kMostOpenersLogged = 20;

}  // namespace

void StrictAccess::start() {
  started_ = true;
  if (parts_.memory.empty()) return;
  auto remembered = sys::read_device_memory(parts_.memory, parts_.processes.boot_id());
  if (!remembered) {
    lost_memory_ = true;
    trouble_ = remembered.error().message;
    log::error(*trouble_ + ", leaving the device files as they are");
    return;
  }
  remembered_ = std::move(*remembered);
  if (parts_.config.access.strict) {
    turn_on();
    scan(true);
  } else if (!remembered_.empty()) {
    turn_off();
  }
}

void StrictAccess::refresh() {
  const bool wanted = parts_.config.access.strict;
  if (!started_ || parts_.memory.empty()) return;
  if (lost_memory_) return;
  if (wanted && !on_) {
    turn_on();
    scan(false);
  } else if (!wanted && (on_ || !remembered_.empty())) {
    turn_off();
  } else {
    openers_read_.reset();  // the configuration may name other users now
    apply();
  }
}

void StrictAccess::turn_on() {
  on_ = true;
  told_on_ = false;
  ++turn_;
  scanning_ = false;
  if (!worker_) worker_ = std::make_unique<sys::Worker>(parts_.loop, "devices");
  watch();
}

// Watches for changes. Without this, changes are found every kPeriod.
void StrictAccess::watch() {
  auto watched = sys::watch_device_files(parts_.root);
  if (!watched) return log::warn(watched.error().message + ", scanning every 5 s only");
  auto source = parts_.loop.watch_fd(watched->get(), false, ports::Urgency::kHousekeeping,
                                     [this](unsigned) { on_change(); });
  if (!source) return log::warn(source.error().message + ", scanning every 5 s only");
  watched_ = std::move(*watched);
  watch_ = std::move(*source);
}

void StrictAccess::on_change() {
  sys::take_device_changes(watched_.get());
  // Further changes do not delay a scan that is already due.
  if (!std::exchange(changed_, true) && !scanning_) schedule();
}

void StrictAccess::turn_off() {
  on_ = false;
  ++turn_;
  timer_.reset();
  watch_.reset();
  watched_.reset();
  trouble_.reset();
  files_.clear();
  fences_.lift();
  openers_.clear();
  undone_ = 0;
  problems_ = sys::restore_device_files(parts_.root, remembered_);
  for (const auto& [name, why] : problems_) {
    log::error(why + ", trying again at the next reload", {{"file", path_of(name)}});
  }
  if (!remembered_.empty()) return;
  log::info("strict access is off, and the device files are as they were");
  record(proto::EventType::kAccessSet,
         "strict access is off, and the device files are as they were");
  if (!worker_) worker_ = std::make_unique<sys::Worker>(parts_.loop, "devices");
  worker_->run([path = parts_.memory] { return sys::remove_device_memory(path); },
               [](const Result<void>& removed) {
                 if (!removed) log::warn(removed.error().message + ", ignoring");
               });
}

StrictAccess::Scan StrictAccess::read_scan(const std::string& root, const std::string& memory,
                                           const std::string& boot, sys::DeviceFiles remembered,
                                           bool openers) {
  Scan scan{.files = sys::read_device_files(root),
            .remembered = std::move(remembered),
            .minors = access::parse_mig_minors(sys::read_mig_minors(root)),
            .helper_mode = access::mode_of_helper(sys::read_driver_params(root)),
            .openers = std::nullopt,
            .unwritten = std::nullopt};
  if (!scan.files) return scan;
  std::erase_if(*scan.files,
                [&](const auto& entry) { return !access::kind_of(entry.first, scan.minors); });
  sys::DeviceFiles known = scan.remembered;
  std::set<std::string> names;
  for (const auto& [name, file] : *scan.files) {
    names.insert(name);
    const auto before = known.find(name);
    if (before == known.end() || before->second.inode != file.inode) known[name] = file;
  }
  if (known != scan.remembered) {
    if (const auto written = sys::write_device_memory(memory, boot, known); written) {
      scan.remembered = std::move(known);
    } else {
      scan.unwritten = written.error().message;
      std::erase_if(*scan.files, [&](const auto& entry) {
        const auto before = scan.remembered.find(entry.first);
        return before == scan.remembered.end() || before->second.inode != entry.second.inode;
      });
    }
  }
  if (openers) scan.openers = sys::read_device_openers(root, names);
  return scan;
}

void StrictAccess::scan(bool wait) {
  if (scanning_) return;
  scanning_ = true;
  changed_ = false;
  const TimePoint now = parts_.loop.now();
  const bool openers =
      !openers_read_ || !told_on_ || (!openers_.empty() && now - *openers_read_ >= kOpenersPeriod);
  if (openers) openers_read_ = now;
  const auto job = [root = parts_.root, memory = parts_.memory, boot = parts_.processes.boot_id(),
                    remembered = remembered_,
                    openers] { return read_scan(root, memory, boot, remembered, openers); };
  const auto done = [this, turn = turn_, sets = sets_](Scan seen) {
    if (turn != turn_) return;
    on_scan(std::move(seen), sets);
  };
  if (!wait) {
    worker_->run(job, done);
  } else if (!worker_->run_and_wait(kStartPatience, job, done)) {
    log::warn("the device files do not answer, strict access begins when they do");
  }
}

void StrictAccess::on_scan(Scan seen, std::uint64_t set_before) {
  scanning_ = false;
  schedule();
  std::optional<std::string> trouble = seen.unwritten;
  if (!seen.files) trouble = seen.files.error().message;
  if (trouble && trouble_ != trouble)
    log::error(*trouble + ", leaving new device files as they are");
  trouble_ = std::move(trouble);
  if (!seen.files) return;
  helper_mode_ = seen.helper_mode;
  minors_ = std::move(seen.minors);
  remembered_ = std::move(seen.remembered);
  take_over(seen, set_before);
  apply();
  if (seen.openers) keep_openers(std::move(*seen.openers));
  if (!told_on_ && !trouble_) tell_on();
}

void StrictAccess::take_over(const Scan& seen, std::uint64_t set_before) {
  std::erase_if(files_, [&](const auto& entry) { return !seen.files->contains(entry.first); });
  std::erase_if(problems_, [&](const auto& entry) { return !seen.files->contains(entry.first); });
  for (const auto& [name, now] : *seen.files) {
    const auto kind = access::kind_of(name, minors_);
    const auto [known, is_new] = files_.try_emplace(name, File{now, *kind});
    if (is_new) continue;
    File& file = known->second;
    if (file.is.inode != now.inode) {
      note_undone(name, file, "was made anew: " + now.acl);
    } else if (file.set > set_before) {
      continue;  // the scan is older than our last change
    } else if (file.is.acl != now.acl) {
      note_undone(name, file, "was changed to " + now.acl);
    }
    file.is = now;
  }
}

std::vector<GpuInfo> StrictAccess::gpus() const {
  std::vector<GpuInfo> gpus;
  for (const GpuEntry& gpu : parts_.gpus.entries()) gpus.push_back(gpu.info);
  return gpus;
}

std::map<std::string, std::set<uid_t>> StrictAccess::holders() const {
  std::vector<access::Holding> holdings;
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (entry.killed) continue;  // its remaining processes only wait in the kernel to end
    for (const LeaseGpu& gpu : entry.lease.gpus) holdings.push_back({entry.lease.uid, gpu.uuid});
  }
  return access::holders(gpus(), holdings, minors_);
}

access::Who StrictAccess::who_may(const std::map<std::string, std::set<uid_t>>& holders,
                                  const std::string& name) const {
  access::Who who = parts_.users.device_users();
  const auto found = holders.find(name);
  if (found != holders.end()) who.users.insert(found->second.begin(), found->second.end());
  return who;
}

void StrictAccess::apply() {
  if (!on_) return;
  fence();
  const auto by_lease = holders();
  for (auto& [name, file] : files_) {
    const access::Who who = who_may(by_lease, name);
    const bool owner_may =
        file.is.owner == 0 || file.is.owner == ::geteuid() || who.users.contains(file.is.owner);
    const std::string wanted = access::acl_text(file.kind, owner_may, who);
    if (file.is.acl != wanted) set(name, file, wanted);
  }
}

// Call before the files are opened to a user, so that the user's other leases cannot open them in
// between.
void StrictAccess::fence() {
  std::map<std::string, DeviceNumber> numbers;
  for (const auto& [name, file] : files_) {
    if (file.is.number) numbers.emplace(name, *file.is.number);
  }
  if (numbers.empty()) return;  // not scanned yet: the fences of an earlier daemon stay
  fences_.apply([&, gpus = gpus()](const Lease& lease) {
    std::set<GpuUuid> own;
    for (const LeaseGpu& gpu : lease.gpus) own.insert(gpu.uuid);
    return access::fences(numbers, access::files_of(gpus, own, minors_), minors_);
  });
}

void StrictAccess::set(const std::string& name, File& file, const std::string& acl) {
  const auto done = sys::set_device_acl(parts_.root, name, file.is.inode, acl);
  if (done) {
    log::debug("device file set", {{"file", path_of(name)}, {"acl", acl}});
    file.is.acl = acl;
    file.set = ++sets_;
    problems_.erase(name);
    return;
  }
  const std::string& why = done.error().message;
  // The file was replaced: the next scan finds the new one.
  if (done.error().code == Code::kGone) return;
  if (problems_[name] != why) log::error(why + ", trying again");
  problems_[name] = why;
}

void StrictAccess::note_undone(const std::string& name, File& file, const std::string& how) {
  ++undone_;
  last_undone_ = path_of(name) + " " + how;
  const TimePoint now = parts_.loop.now();
  if (file.told && now - *file.told < kToldAgain) return;
  file.told = now;
  log::warn("somebody else changed a device file, setting it right",
            {{"file", path_of(name)}, {"how", how}});
  record(proto::EventType::kAccessMended,
         fmt::format("somebody else than gpurota changed who may open {}; it is set right",
                     path_of(name)),
         how);
}

void StrictAccess::keep_openers(std::vector<sys::DeviceOpener> openers) {
  const auto by_lease = holders();
  std::erase_if(openers, [&](const sys::DeviceOpener& opener) {
    return opener.uid == 0 || opener.uid == ::geteuid() ||
           std::all_of(opener.files.begin(), opener.files.end(), [&](const std::string& name) {
             const access::Who who = who_may(by_lease, name);
             return who.users.contains(opener.uid) ||
                    std::any_of(opener.groups.begin(), opener.groups.end(),
                                [&](gid_t gid) { return who.groups.contains(gid); });
           });
  });
  openers_ = std::move(openers);
}

void StrictAccess::tell_on() {
  told_on_ = true;
  std::vector<std::string> who;
  for (const sys::DeviceOpener& opener : openers_) {
    who.push_back(fmt::format("{} of {}: {}", opener.pid,
                              display_text(parts_.processes.user_name(opener.uid), 60),
                              fmt::join(opener.files, ", ")));
    if (who.size() <= kMostOpenersLogged) {
      log::warn(
          "a process without a lease has device files open, which strict access cannot take back",
          {{"pid", opener.pid},
           {"uid", opener.uid},
           {"files", fmt::format("{}", fmt::join(opener.files, ","))}});
    }
  }
  log::info("strict access is on", {{"files", files_.size()}});
  record(proto::EventType::kAccessSet,
         fmt::format("strict access is on: {} device file{} open to holders of leases; {} "
                     "process{} without a lease had some open before",
                     files_.size(), files_.size() == 1 ? " is" : "s are", openers_.size(),
                     openers_.size() == 1 ? "" : "es"),
         fmt::format("{}", fmt::join(who, "; ")));
}

void StrictAccess::record(proto::EventType type, std::string message, std::string detail) {
  Recorder::Event event;
  event.type = type;
  event.message = std::move(message);
  event.detail = std::move(detail);
  parts_.recorder.record(std::move(event));
}

void StrictAccess::schedule() {
  timer_ = parts_.loop.add_timer(parts_.loop.now() + (changed_ ? kPause : kPeriod),
                                 ports::Urgency::kHousekeeping, [this] { scan(false); });
}

void StrictAccess::on_lease_change(const LeaseEntry& /*entry*/, bool /*gone*/) { apply(); }

std::optional<AccessReport> StrictAccess::report() const {
  if (!on_ && !trouble_ && problems_.empty()) return std::nullopt;
  AccessReport report;
  report.strict = on_;
  report.files = files_.size();
  if (trouble_) report.problems.push_back(*trouble_);
  const bool looked = told_on_ && !trouble_;
  if (on_ && !told_on_ && !trouble_) {
    report.problems.emplace_back("the device files have not been read yet, and are as they were");
  }
  for (const auto& [name, why] : problems_) report.problems.push_back(why);
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    if (!on_ || !looked || !gpu.info.parent.value.empty()) continue;
    const auto minor = gpu.info.device_minor;
    if (!minor) {
      report.problems.push_back(fmt::format(
          "the driver does not tell which device file GPU {} has: a lease does not open it",
          gpu.info.index));
    } else if (!files_.contains(fmt::format("nvidia{}", *minor))) {
      report.problems.push_back(fmt::format("GPU {} has no device file {}", gpu.info.index,
                                            path_of(fmt::format("nvidia{}", *minor))));
    }
  }
  report.unfenced = fences_.trouble();
  report.undone = undone_;
  report.last_undone = last_undone_;
  report.helper_mode = helper_mode_;
  report.openers = openers_;
  return report;
}

}  // namespace gpurota::daemon
