#include "kube/dra/claim_review.h"

#include <utility>

namespace gpurota::kube {

std::vector<UsedClaim> ClaimReview::due(const std::vector<UsedClaim>& claims, TimePoint now) {
  std::vector<UsedClaim> due;
  std::map<std::string, Seen> still;
  const bool is_first = !std::exchange(has_looked_, true);
  for (const UsedClaim& claim : claims) {
    const auto before = seen_.find(claim.id.uid);
    Seen& seen = still[claim.id.uid] =
        before == seen_.end() ? Seen{.asked = now, .is_due = is_first} : before->second;
    seen.is_used = claim.is_used;
    if (claim.is_used) seen.gone = 0;
    const Duration pause = claim.is_used ? kUsedPauses * pause_ : pause_;
    if ((!seen.is_due && now - seen.asked < pause) || due.size() == kMost) continue;
    seen.asked = now;
    seen.is_due = false;
    due.push_back(claim);
  }
  seen_ = std::move(still);
  return due;
}

void ClaimReview::on_kubelet() {
  for (auto& [uid, seen] : seen_) seen.is_due = true;
}

bool ClaimReview::has_gone(const std::string& uid, bool is_there) {
  const auto seen = seen_.find(uid);
  if (seen == seen_.end() || seen->second.is_used) return false;
  seen->second.gone = is_there ? 0 : seen->second.gone + 1;
  return seen->second.gone >= kAnswers;
}

}  // namespace gpurota::kube
