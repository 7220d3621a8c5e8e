// The queries of tests to the fake daemon.
#include "fake_daemon.h"

namespace gpurota::interposer_test {

std::uint64_t FakeDaemon::granted(int slot) const {
  std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [fd, tenant] : tenants_) {
    if (!tenant.granted.empty()) sum += tenant.granted[static_cast<std::size_t>(slot)];
  }
  return sum;
}

std::uint32_t FakeDaemon::contexts(int slot) const {
  std::lock_guard lock(mutex_);
  std::uint32_t sum = 0;
  for (const auto& [fd, tenant] : tenants_) {
    if (!tenant.contexts.empty()) sum += tenant.contexts[static_cast<std::size_t>(slot)];
  }
  return sum;
}

std::vector<SeenHello> FakeDaemon::hellos() const {
  std::lock_guard lock(mutex_);
  return hellos_;
}

int FakeDaemon::tenants() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(tenants_.size());
}

int FakeDaemon::grows() const {
  std::lock_guard lock(mutex_);
  return grows_;
}

int FakeDaemon::bad_messages() const {
  std::lock_guard lock(mutex_);
  return bad_messages_;
}

gpurota_page_use FakeDaemon::use(int slot) const {
  std::lock_guard lock(mutex_);
  for (const auto& [fd, tenant] : tenants_) {
    if (tenant.page != nullptr) return tenant.page->use[slot];
  }
  return {};
}

std::vector<std::string> FakeDaemon::unhooked_names() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [fd, tenant] : tenants_) {
    if (tenant.page == nullptr) continue;
    for (std::uint32_t i = 0; i < tenant.page->unhooked_names; ++i) {
      names.emplace_back(tenant.page->unhooked_name[i]);
    }
  }
  return names;
}

}  // namespace gpurota::interposer_test
