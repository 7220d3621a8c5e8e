// gpurota notify.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/site/account_names.h"
#include "cli/text/output.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

// "mail: sent in 12 ms", "command: not sent (exit status 3: no such user) after 8 ms".
std::string result_text(const proto::TestNotice::Reply& reply) {
  const std::string channel = display_text(reply.channel, 40);
  if (reply.sent) return fmt::format("{}: sent in {} ms\n", channel, reply.took_ms);
  return fmt::format("{}: not sent ({}) after {} ms\n", channel,
                     display_text(reply.detail.value_or("no reason given"), 300), reply.took_ms);
}

// Prints the result of each channel as it comes. Returns whether all channels succeeded.
Result<bool> read_results(client::Connection& connection, const proto::TestNotice& call) {
  GPUROTA_TRY(connection.start_stream(call));
  bool all_sent = true;
  for (bool more = true; more;) {
    GPUROTA_ASSIGN_OR_RETURN(const auto answer, connection.next_answer<proto::TestNotice>());
    if (!answer) {
      if (!wait_while_read(connection.fd(), -1)) return false;
      continue;
    }
    GPUROTA_TRY(print(result_text(answer->reply)));
    all_sent = all_sent && answer->reply.sent;
    more = answer->continues;
  }
  return all_sent;
}

}  // namespace

int notify(const Context& context, const NotifyOptions& options) {
  proto::TestNotice call;
  const auto uid = uid_of(options.user);
  if (!uid) return failed(uid.error());
  call.uid = *uid;
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto all_sent = read_results(*connection, call);
  if (!all_sent) return failed(all_sent.error());
  return *all_sent ? kExitOk : kExitFailed;
}

}  // namespace gpurota::cli
