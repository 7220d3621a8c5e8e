// `gpurota job logs`: what a job has printed, and with -f what it prints from now on.
#include "base/text.h"
#include "cli/args/program_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gpurota::cli {
namespace {

// The pause before the daemon is asked again for output, or before the next attempt to connect:
// short enough that a reader hardly notices, and long enough that the calls cost nearly nothing.
constexpr int kQueryPauseMs = 200;
// The bytes of one answer, and the most that a log can hold.
constexpr int kMostLog = 1 << 20;
constexpr std::size_t kWholeLog = std::size_t{32} << 20;

class Follower {
 public:
  Follower(const Context& context, const JobOptions& options)
      : context_(context), options_(options) {}

  // Returns only after an error, or when nobody reads the output any more. Ctrl-C ends the process.
  Result<void> follow(std::string cursor) {
    proto::ReadJobLog call{options_.name, options_.user, kMostLog, std::move(cursor),
                           options_.item};
    for (;;) {
      if (auto reached = reach(); !reached) {
        if (!wait_while_read(-1, kQueryPauseMs)) return {};
        continue;
      }
      auto reply = connection_->call(call);
      if (!reply && (reply.error().code == Code::kGone || reply.error().code == Code::kTimeout)) {
        connection_.reset();
        continue;
      }
      if (!reply && reply.error().code == Code::kNotFound) {
        return fail(Code::kNotFound, fmt::format("job {} has been removed, and its log with it",
                                                 display_text(options_.name, 64)));
      }
      if (!reply) return tl::unexpected(reply.error());
      if (reply->missed)
        complain("some output is missing: it was printed faster than it could be read");
      call.cursor = reply->cursor;
      if (reply->text.empty()) {
        if (!wait_while_read(-1, kQueryPauseMs)) return {};
      } else if (auto printed = print(printable_log(reply->text, options_.user)); !printed) {
        return printed;
      }
    }
  }

 private:
  Result<void> reach() {
    if (connection_) return {};
    auto connection = context_.connect();
    if (!connection) {
      if (!told_) complain("gpurotad has gone away; waiting for it to come back");
      told_ = true;
      return tl::unexpected(connection.error());
    }
    told_ = false;
    connection_ = std::move(*connection);
    return {};
  }

  const Context& context_;
  const JobOptions& options_;
  std::optional<client::Connection> connection_;
  bool told_ = false;
};

// The whole log, from the beginning; the cursor is its end.
Result<proto::ReadJobLog::Reply> read_whole_log(client::Connection& connection,
                                                const JobOptions& options) {
  proto::ReadJobLog call{options.name, options.user, kMostLog, "0:0", options.item};
  proto::ReadJobLog::Reply all;
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const proto::ReadJobLog::Reply reply, connection.call(call));
    all.text += reply.text;
    all.cursor = reply.cursor;
    call.cursor = reply.cursor;
    // An answer with fewer bytes than were asked for is the last one.
    if (reply.text.size() < kMostLog / 2 || all.text.size() > kWholeLog) return all;
  }
}

}  // namespace

int job_logs(const Context& context, const JobOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto all = read_whole_log(*connection, options);
  if (!all) return failed(all.error());
  const int code = show_log(options, all->text, "gpurota job show");
  if (code != 0 || !options.follow) return code;
  const auto followed = Follower(context, options).follow(all->cursor);
  return followed ? 0 : failed(followed.error());
}

}  // namespace gpurota::cli
