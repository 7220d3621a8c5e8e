#include "daemon/tenants/latency_pages.h"

#include "base/log.h"
#include "daemon/tenants/tenant_messages.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gpurota::daemon {
namespace {

bool takes_part(const Tenant& tenant) {
  return tenant.has_latency_classes && !tenant.dead && tenant.session && tenant.event;
}

// The word of a new page. Each page begins elsewhere, so that a reader that had another page at the
// same address sees a change.
std::uint32_t first_word(std::uint32_t seq) { return seq << 16; }

// False: the tenant's socket is full. A tenant without a socket forgets its pages by itself.
bool end_hold(const Tenant* reader, TenantId marker) {
  if (!reader || !reader->event) return true;
  auto end = make_message<gpurota_msg_hold_end>(GPUROTA_MSG_HOLD_END, 0);
  end.tenant = marker.value;
  return send_message(reader->event.get(), end);
}

}  // namespace

bool LatencyPages::update(const LeaseEntry& entry, bool gone) {
  const bool interactive = !gone && entry.lease.latency == LatencyClass::kInteractive;
  if (interactive == interactive_.contains(entry.lease.id)) return false;
  if (interactive) {
    interactive_.emplace(entry.lease.id, entry.lease.uid);
  } else {
    interactive_.erase(entry.lease.id);
  }
  return true;
}

void LatencyPages::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (update(entry, gone)) refresh();
}

void LatencyPages::on_connected(const LeaseEntry& entry) {
  update(entry, false);
  refresh();
}

bool LatencyPages::is_interactive(const Tenant& tenant) const {
  return interactive_.contains(tenant.lease);
}

// The processes of a lease work together, so either all of them are held back or none.
LatencyPages::Holders LatencyPages::holders() const {
  std::set<LeaseId> with_old_library;
  for (const auto& [id, tenant] : table_.all()) {
    if (!tenant->has_latency_classes && !tenant->dead) with_old_library.insert(tenant->lease);
  }
  Holders found;
  for (const auto& [id, tenant] : table_.all()) {
    if (is_interactive(*tenant) || !takes_part(*tenant)) continue;
    if (with_old_library.contains(tenant->lease)) continue;
    for (const GpuUuid& gpu : tenant->slots) found[gpu].push_back(id);
  }
  return found;
}

// The tenants that are to hold back work for this one.
std::set<TenantId> LatencyPages::wanted(TenantId marker, const Holders& holders) const {
  std::set<TenantId> found;
  const Tenant* const tenant = table_.find(marker);
  if (!tenant || !takes_part(*tenant) || !is_interactive(*tenant)) return found;
  for (const GpuUuid& gpu : tenant->slots) {
    const auto beside = holders.find(gpu);
    if (beside != holders.end()) found.insert(beside->second.begin(), beside->second.end());
  }
  return found;
}

// A tenant that cannot be given a page stays in the table, so that it is not tried again.
void LatencyPages::mark(const Tenant& tenant) {
  const uid_t user = interactive_.at(tenant.lease);
  auto descriptors = budgets_.take(user, Budget::kDescriptors, 2);
  auto page = sys::BurstPage::make(first_word(last_seq_ + 1));
  if (!descriptors || !page) {
    const Error& error = descriptors ? page.error() : descriptors.error();
    log::warn("no page for a latency class", {{"uid", user}, {"message", error.message}});
    markers_.try_emplace(tenant.id);
    return;
  }
  auto message = make_message<gpurota_msg_mark>(GPUROTA_MSG_MARK, ++last_seq_);
  message.on = 1;
  const std::array fds{page->fd()};
  if (!send_message(tenant.event.get(), message, fds)) {
    unsent_ = true;
    return;
  }
  markers_.emplace(tenant.id, Marker{last_seq_, std::move(*descriptors), std::move(*page), {}, {}});
}

void LatencyPages::end_holds(TenantId id, Marker& marker, const std::set<TenantId>& wanted) {
  std::erase_if(marker.readers, [&](TenantId reader) {
    if (wanted.contains(reader)) return false;
    const bool told = end_hold(table_.find(reader), id);
    if (!told) unsent_ = true;
    return told;
  });
}

// `read`: how many pages each tenant reads.
void LatencyPages::begin_holds(TenantId id, Marker& marker, const std::set<TenantId>& wanted,
                               std::map<TenantId, std::size_t>& read) {
  if (!marker.to_read) return;
  for (const TenantId reader : wanted) {
    if (marker.readers.contains(reader) || read[reader] >= GPUROTA_MOST_HOLDS) continue;
    auto hold = make_message<gpurota_msg_hold>(GPUROTA_MSG_HOLD, 0);
    hold.tenant = id.value;
    hold.budget = told_budget_;
    const std::array fds{marker.to_read.get()};
    if (!send_message(table_.find(reader)->event.get(), hold, fds)) {
      unsent_ = true;
      continue;
    }
    marker.readers.insert(reader);
    ++read[reader];
  }
}

void LatencyPages::refresh() {
  unsent_ = false;
  if (interactive_.empty() && markers_.empty()) return;
  const Holders beside = holders();
  const auto budget = static_cast<std::uint32_t>(config_.interactive_percent) * 10;
  if (std::exchange(told_budget_, budget) != budget) {
    for (auto& [id, marker] : markers_) end_holds(id, marker, {});
  }
  const bool keeps_old_budget = unsent_;
  std::map<TenantId, std::size_t> read;
  for (auto& [id, marker] : markers_) {
    end_holds(id, marker, wanted(id, beside));
    for (const TenantId reader : marker.readers) ++read[reader];
  }
  std::vector<TenantId> unwanted;
  for (auto& [id, marker] : markers_) {
    const std::set<TenantId> readers = wanted(id, beside);
    begin_holds(id, marker, readers, read);
    if (readers.empty() && marker.readers.empty()) unwanted.push_back(id);
  }
  for (const TenantId id : unwanted) {
    markers_.erase(id);
    const Tenant* const tenant = table_.find(id);
    if (!tenant || !tenant->event) continue;
    (void)send_message(tenant->event.get(), make_message<gpurota_msg_mark>(GPUROTA_MSG_MARK, 0));
  }
  for (const auto& [lease, user] : interactive_) {
    for (const auto& [id, tenant] : table_.of_lease(lease)) {
      if (!markers_.contains(id) && !wanted(id, beside).empty()) mark(*tenant);
    }
  }
  // A reader that did not take the end of its hold has the old budget: begin again.
  if (keeps_old_budget) told_budget_ = UINT32_MAX;
}

void LatencyPages::retry() {
  if (unsent_) refresh();
}

// A tenant that has sealed its page by itself gets nothing, because others must not trust that
// page.
void LatencyPages::on_marked(const Tenant& tenant, const gpurota_msg_marked& message) {
  const auto found = markers_.find(tenant.id);
  if (found == markers_.end() || found->second.seq != message.header.seq) return;
  Marker& marker = found->second;
  if (!marker.page) return;
  auto to_read = marker.page->seal();
  marker.page.reset();
  if (!to_read) {
    marker.descriptors.set(0);
    return log::warn("no page for a latency class",
                     {{"uid", tenant.user}, {"message", to_read.error().message}});
  }
  marker.to_read = std::move(*to_read);
  marker.descriptors.set(1);
  refresh();
}

std::set<LeaseId> LatencyPages::held_back_for(LeaseId lease) const {
  std::set<LeaseId> found;
  const auto& tenants = table_.of_lease(lease);
  for (const auto& [id, marker] : markers_) {
    const bool reads = std::any_of(marker.readers.begin(), marker.readers.end(),
                                   [&](TenantId reader) { return tenants.contains(reader); });
    const Tenant* const tenant = table_.find(id);
    if (reads && tenant) found.insert(tenant->lease);
  }
  return found;
}

// The library reports the time in its first slot.
std::chrono::microseconds LatencyPages::held(LeaseId lease) const {
  std::chrono::microseconds longest{};
  for (const auto& [id, tenant] : table_.of_lease(lease)) {
    if (!tenant->dead) longest = std::max(longest, read_use(tenant->shared(), 0).held);
  }
  return longest;
}

void LatencyPages::sample(LeaseId lease, const std::set<LeaseId>& whom, TimePoint now) {
  Reports& reports = reports_.try_emplace(lease, Reports{HeldCount(now), now, {}}).first->second;
  const Duration past = std::max(now - std::exchange(reports.when, now), Duration());
  std::map<TenantId, std::chrono::microseconds> held;
  Duration longest{};
  for (const auto& [id, tenant] : table_.of_lease(lease)) {
    if (tenant->dead) continue;
    held[id] = read_use(tenant->shared(), 0).held;
    const auto before = reports.held.find(id);
    if (before == reports.held.end()) continue;
    longest = std::max<Duration>(longest, held[id] - before->second);
  }
  reports.held = std::move(held);
  longest = std::min(longest, past);
  reports.count.add(longest, now);
  for (const LeaseId other : whom) reports.count.add_for(other, longest, now);
  reports.count.tidy(now);
}

void LatencyPages::sample(TimePoint now) {
  std::map<LeaseId, std::set<LeaseId>> holders;
  for (const auto& [id, marker] : markers_) {
    const Tenant* const tenant = table_.find(id);
    for (const TenantId reader : marker.readers) {
      const Tenant* const holder = table_.find(reader);
      if (tenant && holder) holders[holder->lease].insert(tenant->lease);
    }
  }
  std::erase_if(reports_, [&](const auto& each) { return !holders.contains(each.first); });
  for (const auto& [lease, whom] : holders) sample(lease, whom, now);
}

std::optional<LastMinute> LatencyPages::last_minute(LeaseId lease, TimePoint now) const {
  const auto found = reports_.find(lease);
  if (found == reports_.end()) return std::nullopt;
  return found->second.count.last_minute(now);
}

}  // namespace gpurota::daemon
