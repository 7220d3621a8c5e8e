// gpurota __complete: the names that the shells' completions offer. Silent when no daemon answers.
#include "cli/args/program_commands.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/text/output.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace gpurota::cli {
namespace {

// Only names that need no quotes: a driver's strings are untrusted, too.
bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  });
}

// Offers the user's own leases and jobs; administrators are offered everybody's.
class Offer {
 public:
  explicit Offer(const Context& context) {
    const auto info = ask_daemon(context, proto::GetInfo{});
    everybodys_ = ::geteuid() == 0 || (info && info->administrator.value_or(false));
  }

  void add(const std::string& word) { lines_ += word + "\n"; }
  template <class Id>
  void add(uid_t owner, Id id, const std::optional<std::string>& name = {}) {
    if (owner != ::geteuid() && !everybodys_) return;
    add(to_string(id));
    if (name) add(*name);
  }
  int show() const { return shown(lines_); }

 private:
  bool everybodys_ = false;
  std::string lines_;
};

void offer_requests(const Context& context, Offer& offer) {
  if (const auto requests = ask_daemon(context, proto::ListRequests{})) {
    for (const proto::Request& each : requests->requests) {
      offer.add(each.uid, each.request_id, each.name);
    }
  }
  if (const auto booked = ask_daemon(context, proto::ListBookings{})) {
    for (const proto::Booking& each : booked->bookings) offer.add(each.uid, each.request_id);
  }
}

void offer_jobs(const Context& context, Offer& offer) {
  const auto own = std::to_string(::geteuid());
  const auto jobs = ask_daemon(context, proto::ListJobs{std::nullopt, own});
  if (!jobs) return;
  for (const proto::Job& job : jobs->jobs) offer.add(job.name);
}

void offer_fillers(const Context& context, Offer& offer) {
  const auto own = std::to_string(::geteuid());
  const auto fillers = ask_daemon(context, proto::ListFillers{std::nullopt, own});
  if (!fillers) return;
  for (const proto::Filler& filler : fillers->fillers) offer.add(filler.name);
}

void offer_leases(const Context& context, Offer& offer) {
  const auto status = ask_daemon(context, proto::Status{});
  if (!status) return;
  for (const proto::Lease& lease : status->leases) offer.add(lease.uid, lease.lease_id, lease.name);
}

void offer_gpus(const Context& context, Offer& offer) {
  const auto status = ask_daemon(context, proto::Status{});
  if (!status) return;
  for (const proto::Gpu& gpu : status->gpus) {
    if (!gpu.parent) offer.add(std::to_string(gpu.index));
    if (is_plain(gpu.uuid.value)) offer.add(gpu.uuid.value);
  }
  offer.add("all");
}

// The words of this machine's model names; each word selects GPUs.
void offer_models(const Context& context, Offer& offer) {
  const auto status = ask_daemon(context, proto::Status{});
  if (!status) return;
  std::set<std::string> words;
  for (const proto::Gpu& gpu : status->gpus) {
    for (std::size_t at = 0; at < gpu.name.size();) {
      const std::size_t end = std::min(gpu.name.find(' ', at), gpu.name.size());
      const std::string word = gpu.name.substr(at, end - at);
      if (word != "NVIDIA" && is_plain(word)) words.insert(word);
      at = end + 1;
    }
  }
  for (const std::string& word : words) offer.add(word);
}

// The site's classes of GPUs.
void offer_classes(const Context& context, Offer& offer) {
  const auto status = ask_daemon(context, proto::Status{});
  if (!status) return;
  std::set<std::string> names;
  for (const proto::Gpu& gpu : status->gpus) {
    for (const std::string& name : gpu.classes.value_or(std::vector<std::string>())) {
      if (is_plain(name)) names.insert(name);
    }
  }
  for (const std::string& name : names) offer.add(name);
}

}  // namespace

int complete(const Context& context, const CompleteOptions& options) {
  constexpr std::pair<std::string_view, void (*)(const Context&, Offer&)> kOffers[] = {
      {"requests", offer_requests}, {"jobs", offer_jobs},     {"fillers", offer_fillers},
      {"leases", offer_leases},     {"models", offer_models}, {"classes", offer_classes},
      {"gpus", offer_gpus}};
  for (const auto& [what, make] : kOffers) {
    if (options.what != what) continue;
    Offer offer(context);
    make(context, offer);
    return offer.show();
  }
  return kExitOk;
}

}  // namespace gpurota::cli
