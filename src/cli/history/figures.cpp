// gpurota history.
#include "cli/args/command_parts.h"
#include "cli/args/since.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/text/figures_text.h"
#include "cli/text/output.h"

namespace gpurota::cli {
namespace {

bool has_graph_characters(const Look& look) { return look.width > 0 && !look.ascii; }

}  // namespace

int history(const Context& context, const HistoryOptions& options) {
  proto::History call;
  if (options.since) {
    const auto since = parse_since("--since", *options.since, now());
    if (!since) return misused(since.error());
    call.since = *since;
  }
  if (!options.gpu_ids.empty()) call.gpu_ids = options.gpu_ids;
  if (options.lease) {
    call.lease_ids = {{*options.lease}};
    call.gpu_ids = std::vector<std::string>();
  }
  const auto reply = ask_daemon(context, call);
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::History>(*reply));
  const Look look = terminal_look();
  return shown(figures_text(*reply, look, has_graph_characters(look)));
}

}  // namespace gpurota::cli
