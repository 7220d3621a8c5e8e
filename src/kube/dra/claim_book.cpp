#include "kube/dra/claim_book.h"

#include "kube/message_file.h"
#include "kube/proto/claims.pb.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::kube {
namespace {

// More than the pods of any node have.
constexpr std::size_t kMostClaims = 8192;

stored::Claim row_of(const Claim& claim) {
  stored::Claim row;
  row.set_uid(claim.id.uid);
  row.set_part(claim.part);
  row.set_number(claim.number);
  row.set_namespace_(claim.id.space);
  row.set_name(claim.id.name);
  row.set_pod(claim.pod);
  row.set_pod_uid(claim.pod_uid);
  row.set_token(claim.token);
  row.set_resource(to_string(claim.resource));
  for (const ClaimDevice& device : claim.devices) {
    stored::ClaimDevice& shown = *row.add_devices();
    shown.set_request(device.request);
    shown.set_pool(device.pool);
    shown.set_device(device.device);
    shown.set_share_id(device.share_id);
    shown.set_gpu(device.gpu.value);
    shown.set_memory_bytes(device.memory.count());
  }
  if (claim.terms.soft_limit) row.set_soft_limit_bytes(claim.terms.soft_limit->count());
  if (claim.terms.priority) row.set_priority(*claim.terms.priority);
  row.set_quantum(claim.terms.quantum);
  row.set_oversize(claim.terms.oversize);
  row.set_compute_percent(claim.terms.compute.least);
  row.set_compute_max_percent(claim.terms.compute.most);
  return row;
}

Result<Claim> claim_of(const stored::Claim& row) {
  Claim claim;
  claim.id = {row.uid(), row.namespace_(), row.name()};
  claim.part = row.part();
  claim.number = row.number();
  GPUROTA_TRY(check_uid(claim.id.uid));
  claim.pod = row.pod();
  claim.pod_uid = row.pod_uid();
  claim.token = row.token();
  GPUROTA_ASSIGN_OR_RETURN(claim.resource, parse_resource(row.resource()));
  for (const stored::ClaimDevice& device : row.devices()) {
    claim.devices.push_back({device.request(), device.pool(), device.device(), device.share_id(),
                             GpuUuid{device.gpu()}, Bytes(device.memory_bytes())});
  }
  if (row.soft_limit_bytes() > 0) claim.terms.soft_limit = Bytes(row.soft_limit_bytes());
  if (row.has_priority()) claim.terms.priority = row.priority();
  claim.terms.quantum = row.quantum();
  claim.terms.oversize = row.oversize();
  claim.terms.compute = {row.compute_percent(), row.compute_max_percent()};
  return claim;
}

}  // namespace

Result<ClaimBook> ClaimBook::open(std::string file) {
  ClaimBook book(std::move(file));
  stored::Claims rows;
  GPUROTA_TRY(read_message(book.file_, rows));
  for (const stored::Claim& row : rows.claims()) {
    auto claim = claim_of(row);
    if (!claim) return damaged_file(book.file_, claim.error().message);
    claim->is_kept = true;
    std::string key = key_of(*claim);
    book.claims_.emplace(std::move(key), std::move(*claim));
  }
  return book;
}

Result<void> ClaimBook::store() const {
  stored::Claims rows;
  for (const auto& [key, claim] : claims_) {
    if (claim.is_kept) *rows.add_claims() = row_of(claim);
  }
  auto stored = store_message(file_, rows);
  if (!stored)
    return tl::unexpected(
        std::move(stored).error().context("cannot store which claims are prepared"));
  return {};
}

Result<void> ClaimBook::add(std::vector<Claim> leases) {
  if (leases.empty() || !leases_of(leases.front().id.uid).empty()) return {};
  if (claims_.size() + leases.size() > kMostClaims) {
    return fail(Code::kLimit, fmt::format("{} claims are prepared on this node, which is the most: "
                                          "delete pods",
                                          claims_.size()));
  }
  for (Claim& each : leases) {
    std::string key = key_of(each);
    claims_.insert_or_assign(std::move(key), std::move(each));
  }
  return {};
}

Result<void> ClaimBook::keep(const std::string& uid) {
  std::vector<Claim*> added;
  for (auto& [key, claim] : claims_) {
    if (claim.id.uid == uid && !claim.is_kept) added.push_back(&claim);
  }
  if (added.empty()) return {};
  for (Claim* const claim : added) claim->is_kept = true;
  auto stored = store();
  if (!stored) {
    for (Claim* const claim : added) claim->is_kept = false;
  }
  return stored;
}

Result<void> ClaimBook::remove(const std::string& uid) {
  const std::vector<const Claim*> leases = leases_of(uid);
  const bool is_kept =
      std::any_of(leases.begin(), leases.end(), [](const Claim* claim) { return claim->is_kept; });
  std::map<std::string, Claim> before = claims_;
  drop(uid);
  if (!is_kept) return {};
  auto stored = store();
  if (!stored) claims_ = std::move(before);
  return stored;
}

void ClaimBook::drop(const std::string& uid) {
  std::erase_if(claims_, [&](const auto& each) { return each.second.id.uid == uid; });
}

Claim* ClaimBook::find(const std::string& key) {
  const auto at = claims_.find(key);
  return at == claims_.end() ? nullptr : &at->second;
}

std::vector<const Claim*> ClaimBook::leases_of(const std::string& uid) const {
  std::vector<const Claim*> leases;
  for (auto at = claims_.lower_bound(uid); at != claims_.end() && at->first.starts_with(uid);
       ++at) {
    if (at->second.id.uid == uid) leases.push_back(&at->second);
  }
  return leases;
}

}  // namespace gpurota::kube
