#include "daemon/tenants/latency_pages.h"

#include "base/log.h"
#include "daemon/tenants/tenant_messages.h"

#include <algorithm>
#include <array>

namespace gpurota::daemon {
namespace {

bool takes_part(const Tenant& tenant) {
  return tenant.has_latency_classes && !tenant.swap && !tenant.dead && tenant.session &&
         tenant.event;
}

bool share_a_gpu(const Tenant& a, const Tenant& b) {
  return std::any_of(a.slots.begin(), a.slots.end(),
                     [&](const GpuUuid& gpu) { return b.slot_of(gpu).has_value(); });
}

void end_hold(const Tenant* reader, TenantId marker) {
  if (!reader || !reader->event) return;
  auto end = make_message<gpurota_msg_hold_end>(GPUROTA_MSG_HOLD_END, 0);
  end.tenant = marker.value;
  (void)send_message(reader->event.get(), end);
}

}  // namespace

void LatencyPages::on_lease_change(const LeaseEntry& entry, bool gone) {
  const bool interactive = !gone && entry.lease.latency == LatencyClass::kInteractive;
  if (interactive == interactive_.contains(entry.lease.id)) return;
  if (interactive) {
    interactive_.insert(entry.lease.id);
  } else {
    interactive_.erase(entry.lease.id);
  }
  refresh();
}

void LatencyPages::on_connected(const LeaseEntry& entry) {
  on_lease_change(entry, false);
  refresh();
}

bool LatencyPages::is_interactive(const Tenant& tenant) const {
  return interactive_.contains(tenant.lease);
}

// The tenants that hold back work for this one.
std::set<TenantId> LatencyPages::beside(const Tenant& marker) const {
  std::set<TenantId> found;
  for (const auto& [id, tenant] : table_.all()) {
    if (!is_interactive(*tenant) && takes_part(*tenant) && share_a_gpu(*tenant, marker)) {
      found.insert(id);
    }
  }
  return found;
}

void LatencyPages::mark(const Tenant& tenant) {
  auto page = sys::BurstPage::make();
  if (!page) return log::warn("no page for a latency class", {{"message", page.error().message}});
  auto message = make_message<gpurota_msg_mark>(GPUROTA_MSG_MARK, ++last_seq_);
  message.on = 1;
  const std::array fds{page->fd()};
  if (!send_message(tenant.event.get(), message, fds)) return;
  markers_.emplace(tenant.id, Marker{last_seq_, std::move(*page), {}, {}});
}

// `read`: how many pages each tenant reads. A reader whose socket is full is told of a new page the
// next time.
void LatencyPages::tell_readers(TenantId id, Marker& marker, const std::set<TenantId>& wanted,
                                std::map<TenantId, std::size_t>& read) {
  std::erase_if(marker.readers, [&](TenantId reader) {
    if (wanted.contains(reader)) return false;
    end_hold(table_.find(reader), id);
    --read[reader];
    return true;
  });
  if (!marker.to_read) return;
  for (const TenantId reader : wanted) {
    if (marker.readers.contains(reader) || read[reader] >= GPUROTA_MOST_HOLDS) continue;
    auto hold = make_message<gpurota_msg_hold>(GPUROTA_MSG_HOLD, 0);
    hold.tenant = id.value;
    hold.budget = kBudget;
    const std::array fds{marker.to_read.get()};
    const Tenant* const tenant = table_.find(reader);
    if (!tenant || !send_message(tenant->event.get(), hold, fds)) continue;
    marker.readers.insert(reader);
    ++read[reader];
  }
}

void LatencyPages::refresh() {
  if (interactive_.empty() && markers_.empty()) return;
  std::map<TenantId, std::size_t> read;
  for (const auto& [id, marker] : markers_) {
    for (const TenantId reader : marker.readers) ++read[reader];
  }
  std::vector<TenantId> unwanted;
  for (auto& [id, marker] : markers_) {
    const Tenant* const tenant = table_.find(id);
    const bool stays = tenant && takes_part(*tenant) && is_interactive(*tenant);
    const std::set<TenantId> wanted = stays ? beside(*tenant) : std::set<TenantId>{};
    tell_readers(id, marker, wanted, read);
    if (wanted.empty()) unwanted.push_back(id);
  }
  for (const TenantId id : unwanted) {
    markers_.erase(id);
    const Tenant* const tenant = table_.find(id);
    if (!tenant || !tenant->event) continue;
    (void)send_message(tenant->event.get(), make_message<gpurota_msg_mark>(GPUROTA_MSG_MARK, 0));
  }
  for (const LeaseId lease : interactive_) {
    for (const auto& [id, tenant] : table_.of_lease(lease)) {
      if (!markers_.contains(id) && takes_part(*tenant) && !beside(*tenant).empty()) mark(*tenant);
    }
  }
}

void LatencyPages::on_marked(const Tenant& tenant, const gpurota_msg_marked& message) {
  const auto found = markers_.find(tenant.id);
  if (found == markers_.end() || found->second.seq != message.header.seq) return;
  if (found->second.to_read) return;
  auto to_read = found->second.page->seal();
  if (!to_read) {
    return log::warn("no page for a latency class", {{"message", to_read.error().message}});
  }
  found->second.to_read = std::move(*to_read);
  found->second.page.reset();
  refresh();
}

}  // namespace gpurota::daemon
