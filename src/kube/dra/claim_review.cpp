#include "kube/dra/claim_review.h"

#include <utility>

namespace gpurota::kube {

std::vector<UsedClaim> ClaimReview::look(const std::vector<UsedClaim>& claims, TimePoint now) {
  std::vector<UsedClaim> due;
  std::map<std::string, Seen> still;
  for (const UsedClaim& claim : claims) {
    const auto before = seen_.find(claim.id.uid);
    Seen& seen = still[claim.id.uid] = before == seen_.end() ? Seen{now} : before->second;
    if (claim.is_used || claim.pod_uid.empty()) seen = Seen{now};
    if (now - seen.since < pause_ || due.size() == kMost) continue;
    seen.since = now;
    due.push_back(claim);
  }
  seen_ = std::move(still);
  return due;
}

bool ClaimReview::has_gone(const std::string& uid, bool is_there) {
  const auto seen = seen_.find(uid);
  if (seen == seen_.end()) return false;
  seen->second.gone = is_there ? 0 : seen->second.gone + 1;
  return seen->second.gone >= kAnswers;
}

}  // namespace gpurota::kube
