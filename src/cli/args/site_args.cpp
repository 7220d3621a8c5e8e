#include "cli/args/site_args.h"

namespace gpurota::cli {

Result<Command> setup_command(const Raw& raw) {
  SetupOptions setup;
  const auto add = [&](const char* option, const std::optional<std::string>& text) {
    if (text) setup.answers[option] = *text;
  };
  add("--group", raw.group);
  add("--admin-group", raw.admin_group);
  add("--user-gpus", raw.user_gpus);
  add("--longest", raw.longest);
  add("--automatic", raw.automatic);
  add("--strict", raw.strict);
  setup.yes = raw.yes;
  setup.no_start = raw.no_start;
  return setup;
}

Result<Command> notify_command(const Raw& raw) {
  if (!raw.test) {
    return fail(
        Code::kInvalid,
        "gpurota sends notices by itself; to see whether they arrive: gpurota notify --test");
  }
  NotifyOptions notify;
  if (!raw.positional.empty()) notify.user = raw.positional.front();
  return notify;
}

}  // namespace gpurota::cli
