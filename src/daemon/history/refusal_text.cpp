#include "daemon/history/refusal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gpurota::daemon {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr auto kOperations = std::to_array<Pair>({{"Enqueue", "a request for GPUs"},
                                                  {"Acquire", "a request for GPUs"},
                                                  {"AcquireForPod", "a lease for a pod"},
                                                  {"Start", "the start of a command"},
                                                  {"GetEnvironment", "the use of a reservation"},
                                                  {"Release", "the release of a lease"},
                                                  {"Update", "the change of a lease"},
                                                  {"Park", "parking a lease"},
                                                  {"Unpark", "bringing back a parked lease"},
                                                  {"Cancel", "cancelling a request"},
                                                  {"Book", "a booking"},
                                                  {"Claim", "the use of a booking"},
                                                  {"Drain", "taking a GPU out of service"},
                                                  {"Undrain", "putting a GPU back into service"},
                                                  {"SetGpus", "changing a GPU's settings"},
                                                  {"Reload", "reading the configuration again"},
                                                  {"TestNotice", "a test notice"},
                                                  {"AddJob", "adding a job"},
                                                  {"UpdateJob", "changing a job"},
                                                  {"ControlJob", "an action on a job"},
                                                  {"ApplyJobs", "applying a file of jobs"},
                                                  {"ExportJobs", "exporting jobs"},
                                                  {"AddFiller", "adding a filler"},
                                                  {"ControlFiller", "an action on a filler"},
                                                  {"ServeWeb", "serving the web page"},
                                                  {"MakeWebLink", "a link to the web page"},
                                                  {"GetWebLink", "asking whose link it is"},
                                                  {"SignIn", "signing in at the web page"},
                                                  {"SignInByProxy", "signing in by a proxy"},
                                                  {"EndWebSessions", "signing out"},
                                                  {"grant", "more memory"},
                                                  {"process", "another process of a lease"}});
constexpr auto kErrors = std::to_array<Pair>({{"LimitExceeded", "it is above a limit"},
                                              {"Denied", "it is not permitted"},
                                              {"NoGpu", "no GPU was free"},
                                              {"NotFound", "what it names does not exist"},
                                              {"InvalidRequest", "it makes no sense as asked"},
                                              {"InvalidParameter", "it makes no sense as asked"},
                                              {"Unavailable", "it is not available now"},
                                              {"Failed", "it failed"}});

// A name without words here is from a newer protocol, and is shown as it is.
template <class Pairs>
std::string_view words_of(const Pairs& pairs, std::string_view name) {
  const auto* const known = std::find_if(pairs.begin(), pairs.end(),
                                         [name](const Pair& each) { return each.first == name; });
  return known == pairs.end() ? name : known->second;
}

}  // namespace

std::string refusal_text(std::string_view operation, std::string_view error, std::uint64_t more) {
  const std::string times = more == 0   ? ""
                            : more == 1 ? " once more"
                                        : fmt::format(" {} more times", more);
  return fmt::format("{} was refused{}: {}", words_of(kOperations, operation), times,
                     words_of(kErrors, error));
}

}  // namespace gpurota::daemon
