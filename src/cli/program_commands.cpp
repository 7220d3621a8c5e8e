#include "cli/program_commands.h"

#include "base/text.h"

#include <fmt/format.h>

namespace gpurota::cli {

Result<Surroundings> read_surroundings(const ProgramOptions& options) {
  Surroundings read;
  GPUROTA_ASSIGN_OR_RETURN(read.workdir, absolute_workdir(options.workdir));
  GPUROTA_ASSIGN_OR_RETURN(read.environment,
                           read_variables(options.variable_files, options.variables));
  GPUROTA_TRY(check_text(options.command));
  GPUROTA_TRY(check_text(read.environment));
  GPUROTA_TRY(check_text(std::vector<std::string>{read.workdir}));
  return read;
}

int show_log(const ProgramOptions& options, std::string_view text, const char* see) {
  if (text.empty() && see != nullptr) {
    complain(
        fmt::format("no output yet: '{} {}' shows its state", see, display_text(options.name, 64)));
  }
  if (options.lines) text = last_lines(text, *options.lines);
  return shown(printable_log(text, options.user));
}

}  // namespace gpurota::cli
