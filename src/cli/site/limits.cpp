// gpurota limits.
#include "cli/commands.h"
#include "cli/site/account_names.h"
#include "cli/site/limits_view.h"
#include "cli/text/output.h"
#include "proto/codec.h"

#include <grp.h>

namespace gpurota::cli {
namespace {

std::string group_name(gid_t gid) {
  const group* const found = ::getgrgid(gid);
  return found ? found->gr_name : "";
}

}  // namespace

int limits(const Context& context, const LimitsOptions& options) {
  proto::GetLimits call;
  const auto uid = uid_of(options.user);
  if (!uid) return failed(uid.error());
  call.uid = *uid;
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto reply = connection->call(call);
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::GetLimits>(*reply));
  return shown(limits_text(*reply, terminal_layout(), group_name));
}

}  // namespace gpurota::cli
