// turns and set.
#include "cli/commands.h"
#include "cli/text/done_text.h"
#include "cli/text/output.h"
#include "cli/turns/turns_text.h"
#include "proto/codec.h"

namespace gpurota::cli {

int turns(const Context& context, const TurnsOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  proto::ListTurns call;
  if (!options.gpu_ids.empty()) call.gpu_ids = options.gpu_ids;
  const auto reply = connection->call(call);
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::ListTurns>(*reply));
  return shown(turns_text(*reply, terminal_layout(), now()));
}

int set(const Context& context, const SetOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  proto::SetGpus call;
  call.gpu_ids = options.gpu_ids;
  call.capacity = options.capacity;
  call.quantum = options.quantum;
  call.turns = options.turns;
  if (options.reset) call.reset = true;
  const auto reply = connection->call(call);
  return reply ? done(context, set_text(options)) : failed(reply.error());
}

}  // namespace gpurota::cli
