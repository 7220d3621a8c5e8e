#include "cli/jobs/job_wait.h"

#include "base/text.h"
#include "cli/args/program_commands.h"
#include "cli/exit_codes.h"
#include "cli/jobs/job_view.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gpurota::cli {
namespace {

using Clock = std::chrono::steady_clock;

// The pauses between calls: the end of a short job is seen at once, and a long job costs one call a
// second.
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{1000};

class EndWaiter {
 public:
  EndWaiter(const Context& context, const JobOptions& options)
      : context_(context), options_(options), pending_({options.name}) {
    pending_.insert(pending_.end(), options.others.begin(), options.others.end());
    if (options.most_wait) until_ = Clock::now() + *options.most_wait;
  }

  // Returns an exit status, or an error if one of the jobs is not there, or the daemon does not
  // answer.
  Result<int> wait() {
    GPUROTA_TRY(ask(true));
    for (auto pause = kFirstPause; !pending_.empty(); pause = std::min(2 * pause, kLongestPause)) {
      const auto now = Clock::now();
      if (until_ && now >= *until_) return time_over();
      std::this_thread::sleep_for(until_ ? std::min<Clock::duration>(pause, *until_ - now)
                                         : Clock::duration(pause));
      GPUROTA_TRY(ask(false));
    }
    return worst_;
  }

 private:
  // `first`: all jobs are asked for, for the first time. If a job is not found the first time, the
  // caller has made a mistake. If a job is not found later, the job has been removed since.
  Result<void> ask(bool first) {
    if (const auto reached = reach(); !reached) {
      if (first) return reached;
      return {};
    }
    std::vector<std::string> left;
    for (const std::string& name : pending_) {
      const auto reply = connection_->call(proto::ListJobs{name, options_.user});
      if (!reply) {
        const Code code = reply.error().code;
        if (first || (code != Code::kGone && code != Code::kTimeout && code != Code::kNotFound)) {
          return tl::unexpected(reply.error());
        }
        if (code == Code::kNotFound) {
          complain(fmt::format("job {} has been removed", display_text(name, 64)));
          worst_ = std::max(worst_, kExitFailed);
          continue;
        }
        connection_.reset();
        return {};  // the next call asks for all of them again
      }
      if (!note(reply->jobs.at(0))) left.push_back(name);
    }
    pending_ = std::move(left);
    return {};
  }

  bool note(const proto::Job& job) {
    if (!has_ended(job)) return false;
    // After a restart of the daemon all jobs are asked for again; the end of each is shown once.
    if (std::find(told_.begin(), told_.end(), job.name) != told_.end()) return true;
    told_.push_back(job.name);
    worst_ = std::max(worst_, exit_status_of(job));
    std::string text = fmt::format("{}: {}", display_text(job.name, 64), job.state);
    if (job.state == "cancelled" && job.detail) text += ": " + display_text(*job.detail, 200);
    if (job.state == "failed" && !job.runs.empty()) text += ": " + run_text(job.runs.back());
    (void)done(context_, text);
    return true;
  }

  int time_over() const {
    std::string names;
    for (const std::string& name : pending_) {
      names += (names.empty() ? "" : ", ") + display_text(name, 64);
    }
    complain(fmt::format("not ended after {}: {}", duration_text(*options_.most_wait), names));
    return kExitTimedOut;
  }

  Result<void> reach() {
    if (connection_) return {};
    auto connection = context_.connect();
    if (!connection) {
      if (reached_ && !away_) complain("gpurotad has gone away; waiting for it to come back");
      away_ = true;
      return tl::unexpected(connection.error());
    }
    away_ = false;
    reached_ = true;
    connection_ = std::move(*connection);
    return {};
  }

  const Context& context_;
  const JobOptions& options_;
  std::vector<std::string> pending_, told_;
  std::optional<Clock::time_point> until_;
  std::optional<client::Connection> connection_;
  bool reached_ = false, away_ = false;
  int worst_ = kExitOk;
};

}  // namespace

bool has_ended(const proto::Job& job) {
  return job.state == "stopped" || job.state == "finished" || job.state == "failed" ||
         job.state == "cancelled";
}

int exit_status_of(const proto::Job& job) {
  if (job.state == "finished") return kExitOk;
  if (job.state != "failed" || job.runs.empty()) return kExitFailed;
  const proto::JobRun& run = job.runs.back();
  if (run.reason == "exited" && run.code != 0) return run.code;
  if (run.reason == "signalled") return 128 + run.code;
  return kExitFailed;
}

int job_wait(const Context& context, const JobOptions& options) {
  const auto status = EndWaiter(context, options).wait();
  return status ? *status : failed(status.error());
}

}  // namespace gpurota::cli
